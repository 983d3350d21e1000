"""What a task gives for its check: which tests run, and how, is its to say and not the run's.

What steers a check comes from the check's own files, else from the workspace that the run began
with; what a run has made of it is left out of the copy in which the check runs.
"""

import hashlib
import os
import re
import tomllib
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from harness_actors.batch.installed import files_state, tree_state
from harness_actors.errors import BadInputError
from harness_actors.tools.trees import walk_paths

STEERING = frozenset({"conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"})
"""Files that have no use but to steer tests."""
SECTIONED = frozenset({"pyproject.toml", "setup.cfg", "tox.ini"})
"""Files of which one section steers tests."""
_OF_NODE = frozenset({"package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs"})
RECIPES = {
    "make": frozenset({"GNUmakefile", "makefile", "Makefile"}),
    "npm": _OF_NODE,
    "npx": _OF_NODE,
    "pnpm": _OF_NODE,
    "yarn": _OF_NODE,
    "tox": frozenset({"tox.ini"}),
    "nox": frozenset({"noxfile.py"}),
    "just": frozenset({"justfile", "Justfile", ".justfile"}),
}
"""The files in which each program finds what to do."""
TESTS = frozenset({"test", "tests"})
"""Folders that belong to the check where its files have one."""
TEST_MODULES = ("test*.py", "*_test.py")
"""What unittest and pytest take for tests and run in one process with those of the check."""
_NAMED_RECIPE = re.compile(r"\bmake\b.*?(?:-f|--file|--makefile)[ =]*([\w./-]+)")
_PACKAGES = (".dist-info", ".egg-info")
_GIT = frozenset({"config", "config.worktree", "commondir", "hooks", "info"})
_NOT_OURS = frozenset({"node_modules", "site-packages", "dist-packages"})
_MOST_BYTES = 1 << 20
"""Size of a file of settings that is looked into; a larger one counts as a whole."""
_MOST_READ = 1 << 26
_CHANGED = (
    "what it gives to checks was changed since this command began the task, perhaps by a run; "
    "put it right, and begin the task anew with --retry-failed"
)


class CheckFiles:
    """What a task gives for its check, as it is now; blocks while it looks at that.

    Args:
        command: The command of the check.
        files: What is laid over the workspace; None for nothing.
        source: What the workspace began with; None for nothing.
        keep: Patterns of steering files that may be the run's own.

    Attributes:
        files: As given.
        laid: The files in it, by path below it.
        laid_folders: The folders above these, as `.` the top.
        given: What steers in the source, by path below it.
    """

    def __init__(
        self, command: str, files: Path | None, source: Path | None, keep: Sequence[str]
    ) -> None:
        self.files = files
        self.laid = frozenset() if files is None else frozenset(name for name, _ in _walk(files))
        self.laid_folders = frozenset(
            str(folder) for name in self.laid for folder in PurePosixPath(name).parents
        )
        self._source = source
        self._keep = keep
        words = set(re.findall(r"[\w.-]+", command))
        self._recipes = frozenset[str]().union(
            *(names for program, names in RECIPES.items() if program in words),
            (PurePosixPath(name).name for name in _NAMED_RECIPE.findall(command)),
        )
        self._has_tests = any(_is_test(PurePosixPath(name)) for name in self.laid)
        self.given = {} if source is None else self.steering(source)
        self._files_state = None if files is None else tree_state(files)
        self._given_state = files_state(self.given.values())

    def check_standing(self) -> None:
        """Refuse to go on where something of it was changed since.

        Raises:
            BadInputError: It names the folder.
        """
        if self.files is not None and tree_state(self.files) != self._files_state:
            raise BadInputError(str(self.files), (_CHANGED,))
        if self._source is not None and files_state(self.given.values()) != self._given_state:
            raise BadInputError(str(self._source), (_CHANGED,))

    def steering(self, top: Path) -> dict[str, Path]:
        """The files below a folder that steer this check, by their paths below it."""
        return {name: path for name, path in _walk(top) if self._steers(PurePosixPath(name), path)}

    def may_be(self, name: str, place: Path) -> bool:
        """Whether a check may see a steering file as the run has left it.

        Args:
            name: Its path below the workspace.
            place: Where it is, or is not any more.
        """
        if name in self.laid or any(fnmatchcase(name, pattern) for pattern in self._keep):
            return True
        given = self.given.get(name)
        if given is None:
            # Where the task gives no recipe, to write one may be the task.
            return place.name in self._recipes and not self._gives_recipe()
        if place.name in SECTIONED - self._recipes:
            return _test_settings(given) == _test_settings(place)
        return False

    def _steers(self, name: PurePosixPath, path: Path) -> bool:
        folders = name.parts[:-1]
        if name.name in STEERING or name.name in self._recipes or name.name == ".git":
            return True
        if ".git" in folders:
            return name.parts[name.parts.index(".git") + 1] in _GIT
        if name.name in SECTIONED:
            return bool(_test_settings(path))
        if name.name == "entry_points.txt" or path.is_symlink():
            # By these pytest takes what lies anywhere on its path for a plugin.
            holders = (*folders, name.name)[-2:]
            if any(holder.lower().endswith(_PACKAGES) for holder in holders):
                return True
        if name.name == "pyvenv.cfg":
            # pytest passes over folders that have one.
            return str(name.parent) in self.laid_folders
        if folders and (folders[-1], name.name) == ("conda-meta", "history"):
            return str(name.parent.parent) in self.laid_folders
        if self._has_tests and (_is_test(name) or self._encloses_tests(name)):
            return True
        return any(
            folder in TESTS and "/".join(folders[: depth + 1]) in self.laid_folders
            for depth, folder in enumerate(folders)
        )

    def _encloses_tests(self, name: PurePosixPath) -> bool:
        """Whether it makes a package of a folder that is there for hidden tests alone, or of the
        workspace: importing them runs it first."""
        if name.name != "__init__.py" or str(name.parent) not in self.laid_folders:
            return False
        is_new = self._source is None or not (self._source / name.parent).is_dir()
        has_tests = any(
            _is_test(PurePosixPath(one)) and PurePosixPath(one).parent == name.parent
            for one in self.laid
        )
        return has_tests and (is_new or str(name.parent) == ".")

    def _gives_recipe(self) -> bool:
        given = {PurePosixPath(name).name for name in (*self.given, *self.laid)}
        return bool(given & self._recipes)


def _walk(top: Path) -> Iterator[tuple[str, Path]]:
    """Files and links below a folder; what installers of packages made is passed over."""
    for folder, names, files in walk_paths(top):
        here = Path(folder)
        relative = here.relative_to(top)
        # Below what a path may be long nothing is found, and nothing steers: not even links.
        links = [name for name in names if os.path.islink(here / name)]
        for name in (*files, *links):
            yield (relative / name).as_posix(), here / name
        names[:] = [name for name in names if name not in _NOT_OURS and name not in links]


def _is_test(name: PurePosixPath) -> bool:
    return any(fnmatchcase(name.name, pattern) for pattern in TEST_MODULES)


def _test_settings(path: Path) -> object:
    """What a file says to pytest; empty for nothing."""
    if os.path.islink(path):
        return os.readlink(path)
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
            if len(content) > _MOST_BYTES:
                if os.fstat(file.fileno()).st_size > _MOST_READ:
                    # It may have no end: it is the same as no other, not even as itself.
                    return object()
                file.seek(0)
                return hashlib.file_digest(file, "sha256").digest()
        # As it is read: any of the ends that a line may have.
        text = re.sub(r"\r\n?", "\n", content.decode(errors="replace"))
    except OSError:
        # It is not there, or a folder, or nobody can read it.
        return ""
    if path.suffix == ".toml":
        try:
            tool = tomllib.loads(text).get("tool", {})
        except (tomllib.TOMLDecodeError, RecursionError):
            return text
        return tool.get("pytest", "") if isinstance(tool, dict) else text
    sections = re.split(r"^(?=\[)", text, flags=re.MULTILINE)
    return "".join(one for one in sections if "pytest" in one.partition("]")[0])
