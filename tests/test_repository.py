"""What holds for the files of this repository, whatever is in them."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAX_MODULE_LINES = 400

# Split, so that this file does not name what it forbids.
FORBIDDEN = {
    "a path of one machine": r"(?<![\w.\-])/(?:wor" + r"k|ro" + r"ot|opt/pyp" + r"i)/",
    "a package registry's host": r"pypi\.or" + r"g|pythonhosted\.or" + r"g|registry\.npmj" + r"s",
    "a registry's address": r"--(?:extra-)?index-ur" + r"l|--trusted-hos" + r"t",
}
NOT_TEXT = {".tiktoken", ".gz", ".gguf", ".png", ".ico"}


def files_of_the_repository() -> list[Path]:
    """Every file that is, or could be, committed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_module_is_too_long_to_read() -> None:
    too_long = {
        str(path.relative_to(ROOT)): lines
        for path in (ROOT / "harness_actors").rglob("*.py")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > MAX_MODULE_LINES
    }
    assert not too_long, "look for the second idea in these modules"


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_names_what_belongs_to_one_machine(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what])
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in files_of_the_repository()
        if path.suffix not in NOT_TEXT
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found, f"{what} is named"


def test_the_pattern_for_paths_finds_them() -> None:
    pattern = re.compile(FORBIDDEN["a path of one machine"])
    assert pattern.search('open("/wor' + 'k/main/x")')
    assert not pattern.search("runs/work/main/x")
