"""Benchmarks: one file per question, `bench_<question>.py`, each run as a command."""
