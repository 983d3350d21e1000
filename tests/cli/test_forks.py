"""From flags to a forked run: its code, its keys, its place."""

import asyncio
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from harness_actors.actors.embedded import EMBEDDED_MODEL_URL
from harness_actors.actors.packing import unpack
from harness_actors.agents import ChatAgent, Program
from harness_actors.cli.forks import BegunFork, ForkFlags, begin_fork
from harness_actors.compaction.deterministic import DeterministicSummarizer
from harness_actors.config import SubAgentConfig
from harness_actors.errors import AgentCodeError, BadInputError
from harness_actors.models import OpenAIModel
from harness_actors.policies import ApprovalRule, Approvals, Deny, Hooks, Redact
from harness_actors.records import WorkspaceSpec
from harness_actors.replay import Recording, load_recording
from harness_actors.stores import JournalReader
from harness_actors.subagents import explore
from harness_actors.testing import Reply, ScriptedModel
from tests.actors.followers import results
from tests.replay.families import grown, scouts
from tests.replay.recorded_runs import (
    FIRST_COMMAND,
    TOOLS,
    Session,
    done,
    opened_locally,
    program,
)

CODE = program([Reply.text("hm"), done()])


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """A run of two turns."""
    store = tmp_path_factory.mktemp("recorded") / "runs.db"
    session = Session(store, CODE, {}, "the task", "first1", "talk", {"mine": 1})
    asyncio.run(session.to_its_end())
    return session.recording()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def with_spec(recording: Recording, **facts: Any) -> Recording:
    return replace(recording, spec=replace(recording.spec, **facts))


def forked(recording: Recording, **flags: Any) -> Any:
    return begin_fork(recording, CODE.stored, 2, ForkFlags(**flags))


def test_a_fork_is_a_run_of_its_own_with_the_code_and_settings_of_the_first(
    first: Recording,
) -> None:
    one, other = forked(first), forked(first)

    assert len({"first1", one.spec.run_id, other.spec.run_id}) == 3
    assert one.spec.conversation_id == one.spec.run_id
    assert (one.spec.code, one.spec.config) == (first.spec.code, first.spec.config)
    assert one.spec.made_with == first.spec.made_with
    assert one.code == CODE.stored
    # Of a batch, it is no further attempt of the task that the first one was for.
    assert one.spec.metadata == {"forked_from": {"run_id": "first1", "turn": 2}}
    assert one.notes == (f"run {one.spec.run_id}, from turn 2 of run first1",)
    # What was said until then is its task, so that it is told no second time.
    assert [message.role for message in one.spec.task][:2] == ["user", "assistant"]


def test_a_fork_of_code_that_is_gone_is_refused(first: Recording) -> None:
    with pytest.raises(AgentCodeError, match="the journal has dropped its code"):
        begin_fork(first, {}, 2, ForkFlags())


def test_a_fork_on_another_model_needs_the_key_of_that_one(
    first: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    recorded = with_spec(first, keys=("ITS_KEY",))
    with pytest.raises(BadInputError, match="the model needs ITS_KEY"):
        forked(recorded)
    with pytest.raises(BadInputError, match="the model needs OPENAI_API_KEY"):
        forked(recorded, model="gpt-4.1-mini")

    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    other = forked(recorded, model="gpt-4.1-mini")
    assert other.spec.keys == ("OPENAI_API_KEY",)
    assert other.secrets == {"OPENAI_API_KEY": "secret"}
    assert other.spec.code in other.code
    assert other.spec.code != first.spec.code
    assert other.spec.made_with.model == "gpt-4.1-mini"
    assert other.spec.made_with.agent == first.spec.made_with.agent  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("keys", "flags", "variables"),
    [
        (("ITS_KEY",), {}, {"ITS_KEY": "secret"}),
        (("ITS_KEY",), {"address": "10.0.0.1:6379"}, {}),
        (("ITS_KEY",), {}, {"RAY_ADDRESS": "10.0.0.1:6379"}),
        ((EMBEDDED_MODEL_URL,), {}, {}),
    ],
    ids=["in the environment", "a Ray that is named", "a Ray of the environment", "embedded"],
)
def test_no_key_is_asked_for_that_is_there_or_may_be(
    first: Recording,
    monkeypatch: pytest.MonkeyPatch,
    keys: tuple[str, ...],
    flags: Mapping[str, str],
    variables: Mapping[str, str],
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert forked(with_spec(first, keys=keys), **flags).spec.keys == keys


@pytest.mark.parametrize("is_there", [True, False])
def test_a_fork_begins_with_a_copy_of_what_the_first_began_with_or_with_nothing(
    first: Recording, tmp_path: Path, is_there: bool
) -> None:
    template, place = tmp_path / "template", tmp_path / "first"
    if is_there:
        template.mkdir()
    recorded = with_spec(first, workspace=WorkspaceSpec(path=str(place), source=str(template)))

    begun = forked(recorded)

    workspace = begun.spec.workspace
    assert workspace.source == (str(template) if is_there else None)
    assert Path(workspace.path).name == begun.spec.run_id
    words = f"a fresh copy of {template}" if is_there else "an empty folder"
    assert begun.notes[1:] == (
        f"workspace {workspace.path}: {words}; the files of that turn are not kept anywhere",
    )


def test_a_fork_of_a_run_that_began_in_an_empty_folder_begins_in_one(
    first: Recording, tmp_path: Path
) -> None:
    begun = forked(with_spec(first, workspace=WorkspaceSpec(path=str(tmp_path / "first"))))
    assert begun.spec.workspace.source is None
    assert "an empty folder" in begun.notes[1]


def test_a_fork_works_in_the_folder_that_is_named_and_copies_nothing_there(
    first: Recording, tmp_path: Path
) -> None:
    template = WorkspaceSpec(path=str(tmp_path / "first"), source=str(tmp_path))
    begun = forked(with_spec(first, workspace=template), workspace=tmp_path)
    assert begun.spec.workspace == WorkspaceSpec(path=str(tmp_path))
    assert len(begun.notes) == 1


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"model": "m"}, "--model"),
        ({"base_url": "http://x"}, "--model-base-url"),
        ({"settings": ("seed=1",)}, "-M"),
        ({"workspace": Path(".")}, "--workspace"),
    ],
)
def test_where_nothing_is_done_anew_flags_of_a_fork_are_refused(
    flags: Mapping[str, Any], named: str
) -> None:
    ForkFlags(address="auto").refuse_any()
    with pytest.raises(BadInputError, match="a replay asks no model") as refused:
        ForkFlags(**flags).refuse_any()
    assert refused.value.source == named


def test_a_setting_alone_changes_the_model_of_a_fork(
    first: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    model = OpenAIModel("mine", base_url="http://x", settings={"seed": 1})
    recorded = program(model)
    spec = recorded.spec("the task", first.spec.config)
    forking = replace(first, spec=replace(first.spec, code=spec.code, keys=spec.keys))

    begun = begin_fork(forking, recorded.stored, 2, ForkFlags(settings=("seed=2",)))

    assert begun.spec.code != spec.code
    assert begun.spec.made_with.setup != spec.made_with.setup  # type: ignore[union-attr]


def deny(call: Any) -> Deny:
    return Deny("too much")


class Longest:
    """A strategy of its user's."""

    name, action = "longest", "clear"

    def choose(self, groups: Any) -> Any:
        return groups


def forked_agent(first: Recording, agent: Any) -> Any:
    """What is run of an agent in a fork on another model."""
    recorded = Program.of(agent)
    spec = recorded.spec("the task", first.spec.config)
    forking = replace(first, spec=replace(first.spec, code=spec.code, keys=spec.keys))
    begun = begin_fork(forking, recorded.stored, 2, ForkFlags(model="other", base_url="http://x"))
    return unpack(begun.code[begun.spec.code]).agent


def test_on_another_model_all_that_surrounds_an_agent_stays(first: Recording) -> None:
    agent = ChatAgent(
        model=ScriptedModel([done()]),
        instructions="Be brief.",
        tools=TOOLS,
        name="careful",
        hooks={"pre_tool": [deny]},
        middleware=[Redact()],
        capabilities=["filesystem"],
        approvals=Approvals(rules=[ApprovalRule(decide="ask", tools=["write"])]),
        predicates={"held": bool},
        judges={"judge": ScriptedModel([done()])},
        output_type={"type": "object"},
        summarizer=DeterministicSummarizer(),
        strategies=[Longest()],
        sub_agents=[explore()],
    )
    changed = forked_agent(first, agent)
    assert changed.model.name == "other"
    for one in fields(ChatAgent):
        if one.name != "model":
            plain = getattr(ChatAgent(model=agent.model), one.name)
            kept = getattr(changed, one.name)
            assert repr(kept) != repr(plain), f"{one.name} is left out"
    assert changed.hooks.of("pre_tool"), "it still denies"


class Own:
    """An agent of a class of its user."""

    def __init__(self) -> None:
        self.model: Any = ScriptedModel([done()])
        self.instructions, self.tools, self.name = "Be brief.", TOOLS, "own"
        self.hooks = Hooks.given({"pre_tool": [deny]})


class Fixed(Own):
    """One whose model is no attribute that can be set."""

    @property
    def model(self) -> Any:
        return ScriptedModel([done()])

    @model.setter
    def model(self, given: Any) -> None:
        if isinstance(given, OpenAIModel):
            raise AttributeError("fixed")


def test_so_does_what_an_agent_of_a_users_class_has(first: Recording) -> None:
    changed = forked_agent(first, Own())
    assert (changed.model.name, changed.name) == ("other", "own")
    assert changed.hooks.of("pre_tool"), "it still denies"
    with pytest.raises(BadInputError, match=r"takes no other one \(AttributeError: fixed\)"):
        forked_agent(first, Fixed())


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """A run of two turns that has sent out another one, which has sent out one in turn."""
    store = tmp_path_factory.mktemp("tree") / "runs.db"
    replies = [scouts("ask read a"), Reply.text("hm"), done()]
    return asyncio.run(grown(store, replies, sub_agents={"max_depth": 2}))


async def went_on(begun: BegunFork, store: Path) -> Recording:
    """The recording of a fork that has ended."""
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await begun.submission(runtime)()
        run_id = begun.spec.run_id
        await results(runtime, [run_id])
    return load_recording(JournalReader(store), run_id)


@pytest.mark.parametrize("turn", [1, 2])
async def test_a_fork_of_a_run_that_delegates_does_so_again(
    tree: Session, tmp_path: Path, turn: int
) -> None:
    begun = begin_fork(tree.recording(), tree.program.stored, turn, ForkFlags())

    forked = await went_on(begun, tmp_path / "runs.db")

    assert forked.end is not None
    assert forked.end.status == "done"
    assert list(forked.children) == ([f"{begun.spec.run_id}.1"] if turn == 1 else [])


@pytest.mark.parametrize("model", [None, "gpt-4.1-mini"])
async def test_a_fork_of_a_child_is_a_run_of_its_own_of_the_childs_agent(
    tree: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str | None
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    child = load_recording(JournalReader(tree.store), "run.1")

    begun = begin_fork(child, tree.program.stored, 1, ForkFlags(model=model))

    assert begun.spec.parent is None
    assert begun.spec.made_with is not None
    assert begun.spec.made_with.agent == "scout"
    assert begun.spec.made_with.model == (model or child.spec.made_with.model)  # type: ignore[union-attr]
    assert begun.spec.config.sub_agents == SubAgentConfig(max_depth=1)
    assert begun.spec.task == child.spec.task
    if model is None:
        forked = await went_on(begun, tmp_path / "runs.db")
        assert forked.end is not None
        assert child.end is not None
        assert forked.end.output_text == child.end.output_text
        assert list(forked.children) == [f"{begun.spec.run_id}.1"]
