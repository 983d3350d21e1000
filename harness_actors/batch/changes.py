"""What of a run directory was made with another set-up than its tasks have now."""

from collections import Counter
from pathlib import Path

from harness_actors.batch.history import Continue, Done, NextStep, Wait, differ
from harness_actors.batch.run_directory import RunDirectory
from harness_actors.batch.settings import BatchSettings
from harness_actors.batch.words import counted
from harness_actors.errors import BadInputError, SetupChangedError
from harness_actors.setups import Setup, differences

SHOWN_HASH = 8
"""Digits of a hash that people read."""


class Changes:
    """Finds what would stand beside results of another set-up.

    What is begun anew mixes with nothing, whatever was there before; and of what was made by
    a version that did not note its set-up nobody knows.

    Args:
        directory: The run directory, locked.
        settings: Whether to refuse what is found.
    """

    def __init__(self, directory: RunDirectory, settings: BatchSettings) -> None:
        self._directory = directory
        self._refuses = settings.on_change == "refuse"
        self._results: Counter[tuple[str, str]] = Counter()
        self._runs: Counter[tuple[str, str]] = Counter()
        self._now: dict[str, Setup] = {}
        self._elsewhere: Counter[str] = Counter()

    def note(self, step: NextStep, now: Setup | None) -> None:
        """What is left to do for a task that has this set-up now."""
        place = step.attempt.elsewhere if isinstance(step, Continue | Wait) else None
        if place and self._refuses:
            self._elsewhere[str(Path(place).parent)] += 1
        before = _setup_of(step)
        if before is None or now is None or not self._refuses or not differ(before, now):
            return
        self._now[now.hash] = now
        found = self._results if isinstance(step, Done) else self._runs
        found[before, now.hash] += 1

    def refuse(self) -> None:
        """Stop where something was found.

        Raises:
            SetupChangedError: Results or runs were made with another set-up.
            BadInputError: Unfinished runs work in another folder.
        """
        pairs = dict.fromkeys((*self._results, *self._runs))
        if pairs:
            found = tuple(self._sentence(before, now) for before, now in pairs)
            raise SetupChangedError(str(self._directory.path), found)
        if self._elsewhere:
            moved = tuple(
                f"{counted(runs, 'unfinished run')} in {place!r}, not here: the run directory was "
                'copied or moved; move it back, or --retry-changed (on_change="retry") or '
                '--accept-changes (on_change="accept") begins these tasks anew here'
                for place, runs in self._elsewhere.items()
            )
            raise BadInputError(str(self._directory.path), moved)

    def _sentence(self, before: str, now: str) -> str:
        results, runs = self._results[before, now], self._runs[before, now]
        what = [counted(results, "result")] if results else []
        what += [counted(runs, "run")] if runs else []
        old, new = self._directory.setups.known.get(before), self._now[now]
        changes = differences(old.parts, new.parts) if old else ("in what, is not on record",)
        made = _named(old) if old else before[:SHOWN_HASH]
        return f"{' and '.join(what)} made with {made}, now {_named(new)}: {'; '.join(changes)}"


def _setup_of(step: NextStep) -> str | None:
    """The hash of what stands for a task; None where nothing does, or it is not known."""
    match step:
        case Done(setup=setup):
            return setup
        case Continue(attempt) | Wait(attempt):
            return attempt.setup
        case _:
            return None


def _named(setup: Setup) -> str:
    return f"{setup.agent} on {setup.model} ({setup.hash[:SHOWN_HASH]})"
