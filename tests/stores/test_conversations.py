"""The conversation of a run is read back with what stood before it in each request."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness_actors.config import HarnessConfig
from harness_actors.errors import RunNotFoundError, StoreError
from harness_actors.messages import Message
from harness_actors.records import CodeStored, RunAdded
from harness_actors.stores import SqliteJournal
from harness_actors.stores.conversations import (
    RequestHead,
    StoredConversation,
    code_of,
    find_conversation,
    program_of,
    request_name,
)
from tests.stores.entries import a_spec, added, changed

LOOK: dict[str, Any] = {"type": "function", "function": {"name": "look"}}
COMPLETE: dict[str, Any] = {"type": "function", "function": {"name": "work_complete"}}
SAID = [Message.user("Which?"), Message.assistant("Käse.")]
BODIES = tuple(message.body for message in SAID)
SYSTEM = Message.system("Be brief.").body


def kept(
    path: Path, head: RequestHead | None, *, completion: str = "explicit", run_id: str = "run-1"
) -> Path:
    """A closed journal of a run that has said something, with the head of its requests."""
    config = HarnessConfig.from_mapping({"completion": completion})
    journal = SqliteJournal(path)
    heads = [] if head is None else [CodeStored(code=request_name("c0de"), blob=head.encode())]
    spec = replace(a_spec(run_id, "talk"), config=config)
    journal.commit(
        journal.begin_term(),
        [
            CodeStored(code="c0de", blob=b"x"),
            *heads,
            RunAdded(spec=spec, command="", at=1.0),
            changed(1, run_id, messages=SAID),
        ],
    )
    journal.close()
    return path


@pytest.mark.parametrize(
    ("head", "completion", "messages", "tools"),
    [
        (("Be brief.", (LOOK,)), "explicit", (SYSTEM, *BODIES), (LOOK, COMPLETE)),
        (("Be brief.", (LOOK,)), "answer", (SYSTEM, *BODIES), (LOOK,)),
        (("", ()), "explicit", BODIES, (COMPLETE,)),
        (("", ()), "answer", BODIES, ()),
        (None, "explicit", BODIES, None),
    ],
    ids=["with all", "ending with an answer", "bare", "with nothing", "not on record"],
)
def test_a_conversation_has_what_its_model_was_sent(
    path: Path,
    head: tuple[str, tuple[dict[str, Any], ...]] | None,
    completion: str,
    messages: tuple[Any, ...],
    tools: tuple[Any, ...] | None,
) -> None:
    whole = head and RequestHead(instructions=head[0], tools=head[1], completion=COMPLETE)
    kept(path, whole, completion=completion)

    found = find_conversation([path], "run-1")

    assert found == StoredConversation(conversation_id="talk", messages=messages, tools=tools)
    line: dict[str, Any] = {"messages": list(messages)}
    assert found.as_openai() == (line | {"tools": list(tools)} if tools else line)


def test_what_is_kept_of_a_program_goes_by_its_name(journal: SqliteJournal) -> None:
    names = ["one", request_name("one"), "two", request_name("three")]
    code = [CodeStored(code=name, blob=name.encode()) for name in names]
    journal.commit(journal.begin_term(), [*code, added()])

    assert [program_of(name) for name in names] == ["one", "one", "two", "three"]
    assert code_of(journal, "one") == {name: name.encode() for name in names[:2]}
    assert code_of(journal, "two") == {"two": b"two"}
    assert code_of(journal, "three") == {names[3]: names[3].encode()}


def test_a_run_is_looked_for_in_all_journals_that_can_be_read(tmp_path: Path) -> None:
    broken = tmp_path / "broken.db"
    broken.write_text("no journal")
    stores = [broken, *(kept(tmp_path / f"{n}.db", None, run_id=f"run-{n}") for n in (1, 2))]
    for order in (stores, stores[::-1]):
        assert find_conversation(iter(order), "run-1").messages == BODIES
        assert find_conversation(iter(order), "run-2").messages == BODIES
        # It may be in the broken one.
        with pytest.raises(StoreError, match=str(broken)):
            find_conversation(order, "run-3")

    with pytest.raises(RunNotFoundError, match=f"no run 'run-3' in {stores[1]}, {stores[2]}"):
        find_conversation(iter(stores[1:]), "run-3")
    with pytest.raises(RunNotFoundError, match="no run 'run-3' in any journal"):
        find_conversation([], "run-3")
