"""Whose code is at work: by which what it prints is told from what others print."""

from contextvars import ContextVar

ORIGIN: ContextVar[str] = ContextVar("harness_origin", default="")
"""The tool or model of a user that is being called; empty between two."""
