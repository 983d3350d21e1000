"""What stands in the place of a message says what it was, and how to have it again."""

import json

import pytest

from harness_actors.messages import Message, ToolCall
from harness_actors.plan import Shown, ToolPolicy

SHOWN = Shown(
    {
        "read_file": ToolPolicy(durability="replayable"),
        "draw": ToolPolicy(durability="non_replayable"),
        "order": ToolPolicy(keep=("id", "total")),
    }
)
LONG = "line of text\n" * 100


def a_call(name: str, **arguments: object) -> ToolCall:
    return ToolCall("c1", name, json.dumps(arguments))


def cleared(text: str, call: ToolCall | None, **facts: object) -> str:
    result = Message.tool_result("c1", text, **facts)  # type: ignore[arg-type]
    return SHOWN.cleared(result, 7, call).text


def test_a_result_that_can_be_had_again_names_the_call() -> None:
    told = cleared(LONG, a_call("read_file", path="a.py"))
    assert 'path="a.py"' in told
    assert 'Call read_file again for it, or read_artifact(id="m7").' in told
    assert "1,300 characters" in told


def test_a_call_that_failed_is_not_to_be_made_again() -> None:
    told = cleared(LONG, a_call("read_file", path="a.py"), failure="failed", is_error=True)
    assert "it failed" in told
    assert "Call read_file" not in told


def test_the_fields_that_a_tool_keeps_stay_in_sight() -> None:
    result = json.dumps({"id": 4711, "total": 9.5, "path": "no", "more": LONG})
    told = cleared(result, a_call("order", id=1))
    assert "id=4711, total=9.5." in told
    assert "path" not in told


def test_without_fields_it_says_how_the_result_begins() -> None:
    told = cleared('"quoted" ' + LONG, a_call("think"))
    assert 'It begins: "\\"quoted\\" line of text".' in told


@pytest.mark.parametrize(
    ("text", "name"), [("short", "read_file"), (LONG, "draw"), ("x" * 300, "read_file")]
)
def test_what_is_short_or_never_comes_again_stays(text: str, name: str) -> None:
    assert cleared(text, a_call(name)) == text


def test_a_field_that_is_too_long_is_cut() -> None:
    told = cleared(LONG, a_call("think", command="x" * 5000))
    assert len(told) < 400


def test_a_long_text_shows_its_beginning_and_its_end() -> None:
    message = Message.assistant("begin " + "x" * 9000 + " end", tokens=2000)
    shown = SHOWN.in_part(message, 3, None, 300)
    assert shown.text.startswith("begin ")
    assert shown.text.endswith(" end")
    assert "8,710 of 9,010 characters left out" in shown.text
    assert 'read_artifact(id="m3")' in shown.text
    assert shown.tokens < 300


def test_long_arguments_stay_an_object_that_names_them() -> None:
    call = a_call("write_file", path="a.py", content="x" * 9000, lines=[1, 2])
    shown = SHOWN.in_part(Message.assistant(None, [call]), 3, None, 300)
    (short,) = shown.tool_calls
    arguments = json.loads(short.arguments)
    assert (short.id, short.name) == ("c1", "write_file")
    assert (arguments["path"], arguments["lines"]) == ("a.py", [1, 2])
    assert 'read_artifact(id="m3")' in arguments["content"]
    assert len(short.arguments) < 500


@pytest.mark.parametrize("arguments", ["no JSON" * 500, "[1, 2]" * 900, '"' + "x" * 4000 + '"'])
def test_arguments_of_any_kind_are_shortened_to_an_object(arguments: str) -> None:
    message = Message.assistant(None, [ToolCall("c1", "write_file", arguments)])
    (short,) = SHOWN.in_part(message, 3, None, 300).tool_calls
    assert list(json.loads(short.arguments)) == ["arguments"]


def test_images_are_left_out_with_the_text_that_names_them() -> None:
    url = "data:image/png;base64," + "A" * 4000
    result = Message.tool_result("c1", "a picture", images=[url], tokens=90)
    shown = SHOWN.cleared(result, 7, a_call("read_file", path="a.png"))
    assert shown.images == ()
    assert shown.tool_call_id == "c1"
    assert shown.text.endswith("\n[1 image left out to make room.]")


def test_images_of_a_message_that_is_shown_in_part_are_counted() -> None:
    urls = ["data:image/png;base64," + "A" * 4000] * 2
    result = Message.tool_result("c1", "two pictures", images=urls, tokens=180)
    shown = SHOWN.in_part(result, 7, a_call("draw", number=1), 1_000)
    assert shown.text == "two pictures\n[2 images left out to make room.]"
    assert shown.tokens < result.tokens
    words = Message.user('they say "image_url" often ' * 200)
    assert "left out to make room.]" not in SHOWN.in_part(words, 1, None, 300).text
