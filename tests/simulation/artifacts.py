"""Long results in a schedule: chosen by its seed, kept in files, watched when they are named."""

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from zlib import crc32

from harness_actors.config import ArtifactsConfig
from harness_actors.errors import ToolError
from harness_actors.messages import Message
from harness_actors.ports import ConversationArtifacts
from harness_actors.records import RunChanged, RunSpec
from harness_actors.stores.artifacts import ArtifactFolder, folder_of
from tests.simulation.disk import DiskRun
from tests.simulation.ledger import Ledger
from tests.simulation.workload import PlannedRound, PlannedRun, PlannedTool, ToolKind, Workload

KEEPING = 0.2
"""Share of the schedules in which long results are kept."""
READS: tuple[ToolKind, ...] = ("read", "read", "pry")
"""Kinds of calls that read in them."""
INLINE_CHARS = 2_000
CAPS = (6_000, 1_000_000)
"""What the artifacts of one conversation may take, in bytes: two of them, or any number."""
UNKNOWN = "a0000000000"

WHOLE = "a long result that a log names is on disk, whole, before the log is"
OWN = "nobody reads the long results of another conversation"
SHORT = "no result in a log is longer than it may be"
BELOW_CAP = "what is kept of a conversation stays below its cap"

_NAMED = re.compile(r"\[The result of .* is kept whole as artifact (a[0-9a-f]+)")
_DONE = re.compile(r"^done (\S+)$", re.MULTILINE)


def plan_artifacts(workload: Workload, seed: int) -> Workload:
    """The workload of a seed, perhaps with long results and calls that read in them."""
    chance = Random(f"{seed}/artifacts")
    if chance.random() >= KEEPING:
        return workload
    return replace(
        workload, runs={name: _keeping(chance, run) for name, run in workload.runs.items()}
    )


def _keeping(chance: Random, run: PlannedRun) -> PlannedRun:
    config = ArtifactsConfig(inline_chars=INLINE_CHARS, cap_bytes=chance.choice(CAPS))
    rounds = [_with_reading(chance, one) if chance.random() < 0.5 else one for one in run.rounds]
    return replace(run, rounds=tuple(rounds), config=replace(run.config, artifacts=config))


def _with_reading(chance: Random, planned: PlannedRound) -> PlannedRound:
    calls = list(planned.calls)
    calls.insert(chance.randint(0, len(calls)), PlannedTool(chance.choice(READS), 0.0))
    return replace(planned, calls=tuple(calls))


def result_of(key: str, artifacts: ConversationArtifacts | None) -> str:
    """What a tool answers: of every second call, where it may be, a long text."""
    short = f"done {key}\n"
    return short if artifacts is None or crc32(key.encode()) % 2 else short * (3_000 // len(short))


class Keeping:
    """Watches what is kept of long results.

    Attributes:
        folder: Where that is; made for the first who keeps something.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._root: Path | None = None
        self._named: dict[str, tuple[str, str]] = {}
        """By id: the conversation and the call that it is of."""

    def artifacts_of(self, conversation_id: str, config: ArtifactsConfig) -> ConversationArtifacts:
        """As a host is given them."""
        return ArtifactFolder(self._store()).of(conversation_id, config)

    def to_read(self, kind: ToolKind, messages: Sequence[Message]) -> str:
        """The id that a call reads: the newest of its conversation, or another's."""
        own = [named[1] for message in messages if (named := _NAMED.match(message.text))]
        if kind == "read":
            return own[-1] if own else UNKNOWN
        return next((named for named in reversed(self._named) if named not in own), UNKNOWN)

    def changed(self, run: DiskRun, change: RunChanged) -> None:
        """A change is on disk."""
        if run.spec.config.artifacts is None:
            return
        for message in change.delta.messages:
            if message.role == "tool":
                self._check(run.spec, run.spec.config.artifacts, message.text)

    def check_end(self, runs: Mapping[str, DiskRun]) -> None:
        """All that was named can be read as long as its conversation is there."""
        configs = {run.spec.conversation_id: run.spec.config.artifacts for run in runs.values()}
        for artifact_id, (conversation_id, key) in self._named.items():
            config = configs[conversation_id]
            assert config is not None
            self._check_whole(conversation_id, config, artifact_id, key)

    def dispose(self) -> None:
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)

    def _check(self, spec: RunSpec, config: ArtifactsConfig, text: str) -> None:
        conversation_id = spec.conversation_id
        if len(text) > config.inline_chars:
            self._ledger.broken(SHORT, f"{spec.run_id} has one of {len(text)} characters")
        if (named := _NAMED.match(text)) is not None:
            (key, *_) = _DONE.findall(text)
            self._named[named[1]] = (conversation_id, key)
            self._check_whole(conversation_id, config, named[1], key)
            self._check_cap(spec, config)
        elif text.startswith("[Characters "):
            for key in set(_DONE.findall(text)):
                whose = self._ledger.disk.runs[key.partition("/")[0]].spec.conversation_id
                if whose != conversation_id and not _is_brought(spec, whose, key):
                    self._ledger.broken(OWN, f"{spec.run_id} reads what {key} answered")

    def _check_whole(
        self, conversation_id: str, config: ArtifactsConfig, artifact_id: str, key: str
    ) -> None:
        artifacts = self.artifacts_of(conversation_id, config)
        try:
            with artifacts.open(artifact_id) as file:
                whole = file.read().decode()
        except ToolError as error:
            self._ledger.broken(WHOLE, f"{artifact_id} of {key}: {error}")
            return
        if whole != result_of(key, artifacts):
            self._ledger.broken(WHOLE, f"{artifact_id} of {key} is {whole[:80]!r}…")

    def _check_cap(self, spec: RunSpec, config: ArtifactsConfig) -> None:
        """A fork has what it begins with, which may be more than it may add to."""
        brought = {named[1] for message in spec.task if (named := _NAMED.match(message.text))}
        files = list(folder_of(self._store(), spec.conversation_id).iterdir())
        sizes = {path: path.stat().st_size for path in files}
        begun = sum(size for path, size in sizes.items() if path.name.partition("-")[0] in brought)
        if (size := sum(sizes.values())) > max(config.cap_bytes, begun):
            self._ledger.broken(BELOW_CAP, f"{spec.conversation_id} has {size} bytes")

    def _store(self) -> Path:
        if self._root is None:
            memory = Path("/dev/shm")
            self._root = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        return self._root / "journal.db"


def _is_brought(spec: RunSpec, conversation_id: str, key: str) -> bool:
    """Whether a fork has the result of another conversation, which it begins with."""
    link = spec.parent
    if link is None or link.forked_from != conversation_id:
        return False
    return any(key in _DONE.findall(message.text) for message in spec.task)
