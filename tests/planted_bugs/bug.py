"""A bug that is planted into a copy of the project, and where it must be found."""

from dataclasses import dataclass
from pathlib import Path


class NotPlantableError(Exception):
    """The code of a bug is not in its file, or not once; says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """A small mistake that an engineer could make, kept as an edit of one file.

    Attributes:
        name: What goes wrong, in few words.
        path: The file, below the project's root.
        before: The code as it is, in whole lines; it is there exactly once.
        after: The same with the mistake.
        promise: What a user is promised, and this breaks.
        tests: Where it is found: tests, files or folders, as pytest takes them.
        seeds: Schedules of the simulator that find it, too; 0 for none.
    """

    name: str
    path: str
    before: str
    after: str
    promise: str
    tests: tuple[str, ...] = ()
    seeds: int = 0

    @property
    def room(self) -> str:
        """The folder of the file, which is also that of the tests that mirror it."""
        return Path(self.path).parts[1]

    def planted(self, text: str) -> str:
        """The text of its file with the mistake.

        Raises:
            NotPlantableError: The code is not in it once; the bug must follow it, or go.
        """
        found = text.count(self.before)
        if found != 1:
            raise NotPlantableError(
                f"{self.name}: its code is {found} times in {self.path}, not once; "
                "bring `before` and `after` up to what the file says now"
            )
        return text.replace(self.before, self.after)
