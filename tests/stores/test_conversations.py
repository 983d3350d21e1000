"""The conversation of a run is read back with what stood before it in each request."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness_actors.config import HarnessConfig, SubAgentConfig
from harness_actors.errors import RunNotFoundError, StoreError
from harness_actors.messages import Message
from harness_actors.records import CodeStored, ParentLink, RunAdded
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
    path: Path,
    head: RequestHead | None,
    *,
    completion: str = "explicit",
    run_id: str = "run-1",
    parent: ParentLink | None = None,
    sub_agents: SubAgentConfig | None = None,
) -> Path:
    """A closed journal of a run that has said something, with the head of its requests."""
    config = HarnessConfig.from_mapping({"completion": completion})
    config = replace(config, sub_agents=sub_agents)
    journal = SqliteJournal(path)
    heads = [] if head is None else [CodeStored(code=request_name("c0de"), blob=head.encode())]
    spec = replace(a_spec(run_id, "talk"), config=config, parent=parent)
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


DELEGATE: dict[str, Any] = {"type": "function", "function": {"name": "explore"}}
BELOW = RequestHead(instructions="You look.", tools=(LOOK,), completion=COMPLETE)
ABOVE = RequestHead(
    instructions="Be brief.",
    tools=(LOOK, DELEGATE),
    completion=COMPLETE,
    guidance="You can delegate.",
    delegates=("explore",),
    below={"explore": replace(BELOW, tools=(LOOK, DELEGATE), delegates=("explore",))},
)
LINK = ParentLink(run_id="run-1", root="run-1", call_id="c", agent="explore", pool="explore")


@pytest.mark.parametrize(
    ("parent", "depth", "system", "tools"),
    [
        (None, 1, "Be brief.\n\nYou can delegate.", (LOOK, DELEGATE)),
        (None, 0, "Be brief.", (LOOK,)),
        (LINK, 1, "You look.", (LOOK,)),
        (LINK, 2, "You look.", (LOOK, DELEGATE)),
        (replace(LINK, agent="explore/explore", depth=2), 2, None, None),
    ],
    ids=["at the top", "may not", "too deep", "deep enough", "not on record"],
)
def test_a_child_has_what_its_own_agent_was_sent(
    path: Path,
    parent: ParentLink | None,
    depth: int,
    system: str | None,
    tools: tuple[Any, ...] | None,
) -> None:
    sub_agents = SubAgentConfig(max_depth=depth)
    kept(path, ABOVE, completion="answer", parent=parent, sub_agents=sub_agents)

    found = find_conversation([path], "run-1")

    said = BODIES if system is None else (Message.system(system).body, *BODIES)
    assert (found.messages, found.tools) == (said, tools)


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
