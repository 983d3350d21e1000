"""One script per framework, as its documentation writes it. Each needs its own environment."""
