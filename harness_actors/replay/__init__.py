"""Runs again from their journals: without a model, or onwards from a turn with one."""

from harness_actors.replay.differences import Difference as Difference
from harness_actors.replay.fork import Fork as Fork
from harness_actors.replay.fork import plan_fork as plan_fork
from harness_actors.replay.recording import Recording as Recording
from harness_actors.replay.recording import load_recording as load_recording
from harness_actors.replay.rerun import Replay as Replay
from harness_actors.replay.rerun import replay as replay
