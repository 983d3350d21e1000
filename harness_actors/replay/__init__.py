"""Runs again from their journals: without a model, or onwards from a turn with one."""

from harness_actors.replay.differences import Difference
from harness_actors.replay.fork import Fork, plan_fork
from harness_actors.replay.recording import Recording, load_recording
from harness_actors.replay.rerun import Replay, replay

__all__ = [
    "Difference",
    "Fork",
    "Recording",
    "Replay",
    "load_recording",
    "plan_fork",
    "replay",
]
