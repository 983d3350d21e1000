"""docs/contracts.md is true of the code."""

import re
from dataclasses import fields
from pathlib import Path

from typer.testing import CliRunner

import harness_actors.contracts as room
from harness_actors.cli.app import app
from harness_actors.contracts import AcceptabilityCriteria, CustomQuestion, TaskContract
from harness_actors.contracts.contract import OUTPUT_TYPES, RequiredOutput, UserQuestion
from harness_actors.contracts.plain import KINDS, SHORT_NAMES
from tests.pages import run_python, text_of

PAGE = text_of("docs/contracts.md")
COMBINED = {"all", "any", "not"}


def rows(first: str) -> list[list[str]]:
    """The cells of the table whose first column has this name."""
    _, found, below = PAGE.partition(f"\n| {first} |")
    assert found
    return [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in below.partition("\n\n")[0].splitlines()[2:]
    ]


def named(text: str) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", text))


def test_the_contract_of_the_page_is_checked_as_the_page_says(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (shown,) = re.findall(r"```console\n\$ harness .*?\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "contract.yaml").write_text(text)
    out = tmp_path / "out"
    out.mkdir()
    (out / "report.md").write_text("# Sales of March\n\nTotal: 42\n\nend\n\n")
    (out / "figures.json").write_text('{"total": "42"}')

    told = CliRunner().invoke(
        app, ["contract", "check", str(tmp_path / "contract.yaml"), "--workspace", str(out)]
    )

    assert told.exit_code == 1
    # However wide the columns are.
    assert [line.split() for line in told.stdout.splitlines()] == [
        line.split() for line in shown.splitlines()
    ]


def test_the_example_in_python_prints_what_is_said_of_it(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (said,) = re.findall(r"It prints:\n\n```\n(.*?)```", PAGE, re.DOTALL)

    ended = run_python(code, tmp_path)

    assert (ended.returncode, ended.stderr, ended.stdout) == (0, "", said)


def test_every_predicate_is_there_with_its_fields_and_their_defaults() -> None:
    told = {row[0].strip("`"): row for row in rows("name")}

    assert told.keys() == KINDS.keys()
    for name, kind in KINDS.items():
        _, python, about, _ = told[name]
        assert getattr(room, python.strip("`")) is kind
        if name in COMBINED:
            continue
        assert named(about) == {field.name for field in fields(kind)}
        for field in fields(kind):
            if isinstance(field.default, bool | int | float):
                shown = f"{field.default:g}" if field.name == "timeout_s" else str(field.default)
                assert f"`{field.name}` ({shown.lower()}" in about
    for short in SHORT_NAMES:
        assert f"`{short}` is another name of `{SHORT_NAMES[short]}`" in PAGE


def test_every_field_of_a_contract_is_there() -> None:
    told = {row[0].strip("`"): row[2] for row in rows("field")}

    assert told.keys() == {field.name for field in fields(TaskContract)}
    for name, kind in (
        ("outputs", RequiredOutput),
        ("questions", UserQuestion),
        ("acceptability", AcceptabilityCriteria),
    ):
        assert {field.name for field in fields(kind)} <= named(told[name])
    assert set(OUTPUT_TYPES) <= named(told["outputs"])
    about = PAGE.partition("A function of yours is registered")[2].partition("\n\n")[0]
    assert {field.name for field in fields(CustomQuestion)} <= named(about.replace("\n", " "))
