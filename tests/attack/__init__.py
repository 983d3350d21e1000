"""Attacks on real processes, files and servers: `make attack`; the tests try each a little."""
