"""Tests, in the same rooms as the package."""

import os

# What most users have: uvloop is there for tests of just that, and Ray would take it for all.
os.environ.setdefault("RAY_USE_UVLOOP", "0")
