"""The code of docs/extending.md runs as it stands, and prints what is said of it."""

import re
from pathlib import Path

import pytest

from tests.pages import run_python, text_of

PAGE = "docs/extending.md"


@pytest.mark.timeout(240)
def test_a_model_and_an_executor_of_ones_own_are_as_the_docs_say(tmp_path: Path) -> None:
    text = text_of(PAGE)
    examples = re.findall(r"```python\n(.*?)```\n\nIt prints `(.*?)`\.\n", text, re.DOTALL)
    assert len(examples) == text.count("```python") == 4

    for code, said in examples:
        ended = run_python(code, tmp_path)

        assert (ended.returncode, ended.stderr) == (0, "")
        assert ended.stdout == f"{said}\n"
