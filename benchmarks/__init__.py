"""Benchmarks: one file per question, `bench_<question>.py`, each run as a command."""

import os

# What most users have: uvloop is there for tests, and Ray would take it. With 1 it is measured.
os.environ.setdefault("RAY_USE_UVLOOP", "0")
# Else each process that one starts compiles all that it imports, which no user's does.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
