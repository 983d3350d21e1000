"""The simulated runtime: the shipped actors in one process, on a time of their own."""
