"""Whether a run comes on: what its rounds have brought, and when they only repeat themselves."""

from harness_actors.progress.rounds import MadeCall as MadeCall
from harness_actors.progress.rounds import Round as Round
from harness_actors.progress.rounds import round_of as round_of
from harness_actors.progress.run_progress import RunProgress as RunProgress
from harness_actors.progress.stalls import Stall as Stall
from harness_actors.progress.stalls import StallKind as StallKind
from harness_actors.progress.watch import ProgressWatch as ProgressWatch
