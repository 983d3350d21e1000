"""One module for each class of attack; each has `ATTACKS`."""
