"""No text reaches a terminal as anything but text, and all of it can be seen."""

import ast
import io
import json
import logging
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

import harness_actors
from harness_actors.printing.console import PlainConsole
from harness_actors.printing.plain import (
    PlainFormatter,
    escaped,
    json_line,
    one_line,
    printable,
    say,
)

HARMFUL = [
    *(chr(code) for code in range(0x20) if chr(code) not in "\t\n"),
    *(chr(code) for code in range(0x7F, 0xA0)),
    *"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029",
    "\ud800",
    "\udfff",
]
PROSE = "Grüße, שלום، सलाम 👩\u200d👩\u200d👧 → ✗\n\tindented"


@pytest.mark.parametrize("sign", HARMFUL, ids=ascii)
def test_what_a_terminal_would_obey_is_shown(sign: str) -> None:
    for clean in (printable(f"a{sign}b"), one_line(f"a{sign}b")):
        assert sign not in clean
        assert clean[0] + clean[-1] == "ab"
        assert len(clean) > 2, "and not left out"
        assert clean.encode()
    for line in (json_line({sign: sign}, ensure_ascii=False), escaped(f'{{"{sign}": "{sign}"}}')):
        if not line.startswith("{") or sign >= " ":
            assert sign not in line
    assert json.loads(json_line({sign: sign}, ensure_ascii=False)) == {sign: sign}


def test_what_is_harmless_stays_as_it_is() -> None:
    assert printable(PROSE) is PROSE
    assert printable("one\r\ntwo\n") == "one\ntwo\n"
    assert one_line("no control at all, but שלום") == "no control at all, but שלום"
    assert one_line("a\nb\tc") == "a␊b␉c"
    assert json.loads(json_line(PROSE, ensure_ascii=False)) == PROSE


def test_a_sequence_that_comes_in_pieces_is_shown_too() -> None:
    assert "".join(map(printable, ["\x1b", "]0;title", "\x07"])) == "␛]0;title␇"


def test_a_console_lets_its_own_sequences_pass_and_no_others() -> None:
    out = io.StringIO()
    console = PlainConsole(file=out, force_terminal=True, width=60, color_system="standard")
    table = Table("[bold]name[/]", title="\x1b[2J")
    table.add_row("\x9b2J")
    table.add_row(Text("\x1b]0;x\x07", style="red"))
    console.print(table)
    console.print("a \x1b[8m line", markup=False, highlight=False)

    shown = out.getvalue()
    assert "\x1b[31m" in shown, "what it colours itself"
    assert [bad for bad in ("\x1b[2J", "\x1b[8m", "\x1b]", "\x9b", "\x07") if bad in shown] == []
    assert [good for good in ("␛[2J", "␛]0;x", "␛[8m", "\\x9b2J") if good not in shown] == []


def test_what_is_said_and_logged_is_clean(capsys: pytest.CaptureFixture[str]) -> None:
    say("\x1b[2J")
    record = logging.LogRecord("x", logging.WARNING, "", 1, "%s", ("\x07",), None)
    assert capsys.readouterr().out == "␛[2J\n"
    assert PlainFormatter().format(record) == "␇"


def test_nothing_is_printed_past_it() -> None:
    """Commands and batches print by `say` and `PlainConsole` alone."""
    package = Path(harness_actors.__file__).parent
    past = [
        f"{file.relative_to(package)}:{node.lineno}"
        for room in ("cli", "batch")
        for file in sorted((package / room).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and _prints(node)
    ]
    assert past == []


def _prints(call: ast.Call) -> bool:
    match call.func:
        case ast.Name(id="Console"):
            return True
        case ast.Name(id="print"):
            # A line's end, and the prompt.
            return bool(call.args) and not (
                isinstance(call.args[0], ast.Name) and call.args[0].id.lower() == "prompt"
            )
    return False
