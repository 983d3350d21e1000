"""A run directory that was made with another agent, model or settings than are given now."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from harness_actors.agents import ChatAgent
from harness_actors.batch import run_batch
from harness_actors.batch.batch import Batch
from harness_actors.batch.results_file import read_outcomes
from harness_actors.batch.table import final_rows
from harness_actors.config import HarnessConfig, Limits
from harness_actors.errors import BadInputError, ConfigError, SetupChangedError
from harness_actors.records import RunSpec
from harness_actors.results import HarnessResult
from harness_actors.testing import ScriptedModel
from harness_actors.testing.agents import completes_at_once
from tests.batch.fake_runtime import (
    FakeRuntime,
    Journal,
    a_batch,
    ended,
    never_ends,
    outcomes_of,
    tasks,
    tasks_of,
)


def agent_on(model: str, instructions: str = "Be kind.") -> ChatAgent:
    return ChatAgent(
        model=ScriptedModel(completes_at_once, name=model), instructions=instructions, name="ann"
    )


OLD, NEW = agent_on("old"), agent_on("new")


@pytest.fixture
def journal() -> Journal:
    return Journal()


async def done_with(agent: ChatAgent, folder: Path, journal: Journal, count: int = 3) -> Batch:
    batch = a_batch(tasks(count), folder, FakeRuntime(journal), agent=agent)
    await outcomes_of(batch)
    return batch


async def begun_with(agent: ChatAgent, folder: Path, journal: Journal, count: int = 3) -> None:
    """Leave runs unfinished."""
    runtime = FakeRuntime(journal, never_ends)
    batch = a_batch(tasks(count), folder, runtime, agent=agent)
    command = asyncio.create_task(outcomes_of(batch))
    await runtime.until_in_flight(count - len(journal.ends))
    batch.park()
    await command


def made_with(folder: Path) -> dict[str, tuple[str | None, str | None]]:
    return {one.id: (one.agent, one.model) for one in read_outcomes(folder / "results.jsonl")}


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


async def test_results_name_what_they_were_made_with(tmp_path: Path, journal: Journal) -> None:
    batch = await done_with(OLD, tmp_path, journal)

    lines = list(read_outcomes(tmp_path / "results.jsonl"))
    (setup,) = {line.setup for line in lines}
    assert setup is not None
    assert made_with(tmp_path) == dict.fromkeys(("t1", "t2", "t3"), ("ann", "old"))
    told = {"setup": setup, "agent": "ann", "model": "old", "tasks": 3}
    assert batch.summary["setups"] == [told]
    assert dict(final_rows(batch.summary, None))["made with"] == f"ann on old ({setup[:8]})"
    specs = journal.specs.values()
    assert {spec.made_with and spec.made_with.setup for spec in specs} == {setup}
    stored = json.loads((tmp_path / "setups.json").read_bytes())["setups"]
    assert stored[setup]["parts"]["instructions"] == "Be kind."


class Looking(FakeRuntime):
    """Looks, when it gets a run, at what is on disk of what that is made with."""

    async def submit(
        self, specs: Sequence[RunSpec], *, code: Mapping[str, bytes], secrets: Mapping[str, str]
    ) -> None:
        for spec in specs:
            assert spec.workspace is not None
            assert spec.made_with is not None
            folder = Path(spec.workspace.path).parents[1]
            known = json.loads((folder / "setups.json").read_bytes())["setups"]
            assert known[spec.made_with.setup]["model"] == spec.made_with.model
        await super().submit(specs, code=code, secrets=secrets)


async def test_what_a_run_is_made_with_is_on_disk_before_it_is_run(
    tmp_path: Path, journal: Journal
) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("model: {id: m, base_url: 'http://127.0.0.1:9/v1'}\n")
    given = tmp_path / "given"
    given.mkdir()
    kept = {"task": "x", "workspace": str(given)}
    tasks_of_two = [{"id": "t1", **kept}, {"id": "t2", "agent": str(own), **kept}]

    batch = a_batch(tasks_of_two, tmp_path / "run", Looking(journal), agent=OLD, concurrency=1)
    await outcomes_of(batch)

    assert [one["model"] for one in batch.summary["setups"]] == ["old", "m"]


async def test_another_model_is_refused_before_anything_runs(
    tmp_path: Path, journal: Journal
) -> None:
    await done_with(OLD, tmp_path, journal)
    before = files_of(tmp_path)
    runtime = FakeRuntime(journal)
    other = agent_on("new", "Be quick.")

    with pytest.raises(SetupChangedError) as caught:
        await outcomes_of(a_batch(tasks(9), tmp_path, runtime, agent=other))

    assert not runtime.opened
    (fault,) = caught.value.faults
    assert fault.startswith("3 results made with ann on old (")
    assert ", now ann on new (" in fault
    assert fault.endswith("model 'old' → 'new'; instructions 'Be kind.' → 'Be quick.'")
    assert "--accept-changes" in str(caught.value)
    assert files_of(tmp_path) == before


async def test_a_finished_batch_is_refused_as_well(tmp_path: Path, journal: Journal) -> None:
    await done_with(OLD, tmp_path, journal)

    with pytest.raises(SetupChangedError):
        await outcomes_of(a_batch(tasks(3), tmp_path, FakeRuntime(journal), agent=NEW))


async def test_unfinished_runs_alone_are_refused_as_well(tmp_path: Path, journal: Journal) -> None:
    await begun_with(OLD, tmp_path, journal)
    runtime = FakeRuntime(journal)

    with pytest.raises(SetupChangedError, match="3 runs made with ann on old"):
        await outcomes_of(a_batch(tasks(9), tmp_path, runtime, agent=NEW))

    assert not runtime.opened


@pytest.mark.parametrize(
    "config",
    [HarnessConfig(max_turns=9), HarnessConfig(limits=Limits(tokens=100))],
)
async def test_other_settings_of_runs_are_refused(
    tmp_path: Path, journal: Journal, config: HarnessConfig
) -> None:
    await done_with(OLD, tmp_path, journal)

    with pytest.raises(SetupChangedError):
        await outcomes_of(
            a_batch(tasks(3), tmp_path, FakeRuntime(journal), agent=OLD, config=config)
        )


async def test_settings_of_the_batch_are_no_change(tmp_path: Path, journal: Journal) -> None:
    await done_with(OLD, tmp_path, journal)

    again = a_batch(
        tasks(5),
        tmp_path,
        FakeRuntime(journal),
        agent=agent_on("old"),
        concurrency=2,
        budget_usd=7,
        retry_on_error=1,
        retry_failed=True,
        epochs=2,
    )

    assert len(await outcomes_of(again)) == 7
    assert again.ok


async def test_results_alone_are_refused_before_a_runtime_is_opened(
    tmp_path: Path, journal: Journal
) -> None:
    """As where the journal was removed; and where nothing differs, the rest is begun."""
    await done_with(OLD, tmp_path, journal)
    runtime = FakeRuntime(Journal())

    with pytest.raises(SetupChangedError, match="3 results made with ann on old"):
        await outcomes_of(a_batch(tasks(9), tmp_path, runtime, agent=NEW))

    assert not runtime.opened
    again = FakeRuntime(Journal())
    assert len(await outcomes_of(a_batch(tasks(9), tmp_path, again, agent=OLD))) == 6


async def test_each_set_up_of_before_is_told_of(tmp_path: Path, journal: Journal) -> None:
    await done_with(OLD, tmp_path, journal, 2)
    older = a_batch(
        tasks(3), tmp_path, FakeRuntime(journal), agent=agent_on("older"), on_change="accept"
    )
    await outcomes_of(older)

    with pytest.raises(SetupChangedError) as caught:
        await outcomes_of(a_batch(tasks(4), tmp_path, FakeRuntime(journal), agent=NEW))

    faults = [fault.split(" (")[0] for fault in caught.value.faults]
    assert faults == ["2 results made with ann on old", "1 result made with ann on older"]


async def test_accepted_changes_keep_what_is_there_and_are_counted(
    tmp_path: Path, journal: Journal
) -> None:
    await done_with(OLD, tmp_path, journal, 2)
    await begun_with(OLD, tmp_path, journal, 3)
    runtime = FakeRuntime(journal)

    batch = a_batch(tasks(5), tmp_path, runtime, agent=NEW, on_change="accept")
    outcomes = await outcomes_of(batch)

    assert sorted(outcomes) == ["t3", "t4", "t5"]
    # The run that was unfinished goes on with the agent that it has.
    assert (len(runtime.resumed), outcomes["t3"].model) == (1, "old")
    assert [(one["model"], one["tasks"]) for one in batch.summary["setups"]] == [
        ("old", 3),
        ("new", 2),
    ]
    rows = final_rows(batch.summary, None)
    at = rows.index(("made with", "2 set-ups, of which these results are a mixture"))
    assert [value.split(" (")[0] for _, value in rows[at + 1 : at + 3]] == [
        "3 × ann on old",
        "2 × ann on new",
    ]


async def test_changed_ones_are_done_again_by_choice_and_then_nothing_is_mixed(
    tmp_path: Path, journal: Journal
) -> None:
    await done_with(OLD, tmp_path, journal, 2)
    await begun_with(OLD, tmp_path, journal, 3)
    (unfinished,) = journal.specs.keys() - journal.ends.keys()
    runtime = FakeRuntime(journal)

    batch = a_batch(tasks(4), tmp_path, runtime, agent=NEW, on_change="retry")
    outcomes = await outcomes_of(batch)

    assert {name: one.attempt for name, one in outcomes.items()} == {
        "t1": 2,
        "t2": 2,
        "t3": 2,
        "t4": 1,
    }
    assert runtime.resumed == []
    assert journal.ends[unfinished].status == "cancelled"
    assert set(made_with(tmp_path).values()) == {("ann", "new")}
    same = a_batch(tasks(4), tmp_path, FakeRuntime(journal), agent=NEW)
    assert await outcomes_of(same) == {}
    assert same.ok


async def test_a_run_that_is_over_is_not_cancelled_when_its_task_is_done_again(
    tmp_path: Path, journal: Journal
) -> None:
    await done_with(OLD, tmp_path, journal, 1)
    (tmp_path / "results.jsonl").unlink()

    batch = a_batch(tasks(1), tmp_path, FakeRuntime(journal), agent=NEW, on_change="retry")
    outcome = (await outcomes_of(batch))["t1"]

    assert outcome.attempt == 2
    assert [end.status for end in journal.ends.values()] == ["done", "done"]


async def test_an_interrupted_retry_does_nothing_a_third_time(
    tmp_path: Path, journal: Journal
) -> None:
    await done_with(OLD, tmp_path, journal, 4)

    def half(spec: RunSpec) -> HarnessResult | None:
        return ended(spec) if spec.metadata["task_id"] in ("t1", "t2") else None

    runtime = FakeRuntime(journal, half)
    batch = a_batch(tasks(4), tmp_path, runtime, agent=NEW, on_change="retry", concurrency=4)
    command = asyncio.create_task(outcomes_of(batch))
    await runtime.until_in_flight(2)
    while len(batch.tally.verdicts) == 0 or batch.tally.ended < 2:  # noqa: ASYNC110
        await asyncio.sleep(0)
    batch.park()
    await command

    again = FakeRuntime(journal)
    outcomes = await outcomes_of(a_batch(tasks(4), tmp_path, again, agent=NEW, on_change="retry"))

    assert sorted(outcomes) == ["t3", "t4"]
    assert len(again.resumed) == 2
    assert len(journal.specs) == 8


async def test_failures_that_are_retried_mix_with_nothing(tmp_path: Path, journal: Journal) -> None:
    def fails(spec: RunSpec) -> HarnessResult:
        return ended(spec, "failed", "model_error")

    await outcomes_of(a_batch(tasks(2), tmp_path, FakeRuntime(journal, fails), agent=OLD))

    again = a_batch(tasks(2), tmp_path, FakeRuntime(journal), agent=NEW, retry_failed=True)

    assert len(await outcomes_of(again)) == 2
    assert [one["model"] for one in again.summary["setups"]] == ["new"]


async def test_with_a_larger_limit_of_runs_only_those_that_it_stopped_are_done_again(
    tmp_path: Path, journal: Journal
) -> None:
    def bound(spec: RunSpec) -> HarnessResult:
        stopped = spec.metadata["task_id"] == "t2"
        return ended(spec, "limit", "max_turns") if stopped else ended(spec)

    small, large = HarnessConfig(max_turns=5), HarnessConfig(max_turns=50)
    runtime = FakeRuntime(journal, bound)
    await outcomes_of(a_batch(tasks(3), tmp_path, runtime, agent=OLD, config=small))
    refused = a_batch(tasks(3), tmp_path, runtime, agent=OLD, config=large, retry_failed=True)
    with pytest.raises(SetupChangedError, match=r"2 results made with .* max_turns 5 → 50"):
        await outcomes_of(refused)

    rest = a_batch(
        tasks(3),
        tmp_path,
        FakeRuntime(journal),
        agent=OLD,
        config=large,
        retry_failed=True,
        on_change="accept",
    )

    assert (await outcomes_of(rest)).keys() == {"t2"}
    assert rest.ok


async def test_what_no_version_noted_is_not_held_against_anybody(
    tmp_path: Path, journal: Journal
) -> None:
    await done_with(OLD, tmp_path, journal)
    path = tmp_path / "results.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        for name in ("agent", "model", "setup"):
            del line[name]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    batch = a_batch(tasks(4), tmp_path, FakeRuntime(journal), agent=NEW)

    assert (await outcomes_of(batch)).keys() == {"t4"}
    assert [(one["model"], one["tasks"]) for one in batch.summary["setups"]] == [
        (None, 3),
        ("new", 1),
    ]


async def test_a_tasks_own_agent_file_counts_for_its_tasks_alone(
    tmp_path: Path, journal: Journal
) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("model: {id: m, base_url: 'http://127.0.0.1:9/v1'}\n")
    given = [{"id": "t1", "task": "x", "agent": str(own)}, *tasks(3)[1:]]
    await outcomes_of(a_batch(given, tmp_path / "run", FakeRuntime(journal), agent=OLD))
    own.write_text(own.read_text() + "persona: {instructions: Be quick.}\n")

    with pytest.raises(SetupChangedError) as caught:
        await outcomes_of(a_batch(given, tmp_path / "run", FakeRuntime(journal), agent=OLD))
    (fault,) = caught.value.faults
    assert fault.startswith("1 result made with own on m (")

    runtime = FakeRuntime(journal)
    retried = a_batch(given, tmp_path / "run", runtime, agent=OLD, on_change="retry")
    assert (await outcomes_of(retried)).keys() == {"t1"}
    assert tasks_of(journal.specs.values()) == ["t1", "t2", "t3", "t1"]


async def test_a_result_stands_while_the_agent_file_of_its_task_is_at_fault(
    tmp_path: Path, journal: Journal
) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("model: {id: m, base_url: 'http://127.0.0.1:9/v1'}\n")
    given = [{"id": "t1", "task": "x", "agent": str(own)}]
    await outcomes_of(a_batch(given, tmp_path / "run", FakeRuntime(journal), agent=OLD))
    own.write_text("model: [")

    again = a_batch(given, tmp_path / "run", FakeRuntime(journal), agent=OLD, on_change="retry")

    assert await outcomes_of(again) == {}
    assert again.ok


async def test_what_was_told_before_a_refusal_is_in_the_summary(
    tmp_path: Path, journal: Journal
) -> None:
    await done_with(OLD, tmp_path, journal, 1)

    def once() -> Iterator[Mapping[str, str]]:
        yield {"id": "bad"}
        yield from tasks(1)

    with pytest.raises(SetupChangedError):
        await outcomes_of(a_batch(once(), tmp_path, FakeRuntime(journal), agent=NEW))

    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["ending"], summary["statuses"]) == ("error", {"done": 1, "failed": 1})


async def test_tasks_that_can_be_read_only_once_are_refused_when_they_are_come_by(
    tmp_path: Path, journal: Journal
) -> None:
    await done_with(OLD, tmp_path, journal, 1)
    runs, before = len(journal.specs), files_of(tmp_path)

    def once() -> Iterator[Mapping[str, str]]:
        yield from tasks(4)

    with pytest.raises(SetupChangedError):
        await outcomes_of(a_batch(once(), tmp_path, FakeRuntime(journal), agent=NEW))

    assert len(journal.specs) == runs
    assert files_of(tmp_path) == before


async def test_where_the_file_of_setups_is_gone_it_is_refused_all_the_same(
    tmp_path: Path, journal: Journal
) -> None:
    await done_with(OLD, tmp_path, journal)
    (tmp_path / "setups.json").unlink()

    with pytest.raises(SetupChangedError, match="in what, is not on record"):
        await outcomes_of(a_batch(tasks(3), tmp_path, FakeRuntime(journal), agent=NEW))


async def test_a_line_that_is_written_late_has_its_hash_though_its_names_are_gone(
    tmp_path: Path, journal: Journal
) -> None:
    await done_with(OLD, tmp_path, journal, 1)
    (line,) = read_outcomes(tmp_path / "results.jsonl")
    (tmp_path / "setups.json").unlink()
    (tmp_path / "results.jsonl").unlink()

    batch = a_batch(tasks(1), tmp_path, FakeRuntime(journal), agent=OLD)
    (late,) = (await outcomes_of(batch)).values()

    assert (late.run_id, late.setup, late.agent) == (line.run_id, line.setup, None)
    assert line.setup is not None
    assert dict(final_rows(batch.summary, None))["made with"] == line.setup[:8]


@pytest.mark.parametrize("content", ["", "[]", '{"setups": {"a": 1}}', '{"other": 1}'])
async def test_a_file_of_setups_that_is_none_of_ours_is_refused_and_left_alone(
    tmp_path: Path, journal: Journal, content: str
) -> None:
    (tmp_path / "setups.json").write_text(content)

    with pytest.raises(BadInputError, match="not the set-ups of a batch"):
        await outcomes_of(a_batch(tasks(1), tmp_path, FakeRuntime(journal)))

    assert (tmp_path / "setups.json").read_text() == content


async def test_another_folder_to_begin_with_counts_for_tasks_that_begin_with_it(
    tmp_path: Path,
) -> None:
    for name in ("one", "two", "own"):
        (tmp_path / name).mkdir()
    given = [
        {"id": "t1", "task": "x"},
        {"id": "t2", "task": "x", "workspace": str(tmp_path / "own")},
    ]

    async def begin_with(name: str) -> list[str]:
        stream = run_batch(
            given, OLD, runtime="local", run_dir=tmp_path / "run", workspace=tmp_path / name
        )
        return [outcome.id async for outcome in stream]

    assert sorted(await begin_with("one")) == ["t1", "t2"]
    with pytest.raises(SetupChangedError, match=r"1 result made with .*: workspace"):
        await begin_with("two")
    assert await begin_with("one") == []


async def test_run_batch_has_the_same_choice(tmp_path: Path) -> None:
    async def models(agent: ChatAgent, on_change: str = "refuse") -> list[str | None]:
        stream = run_batch(
            ["one", "two"],
            agent,
            runtime="local",
            run_dir=tmp_path,
            on_change=on_change,  # type: ignore[arg-type]
        )
        return [outcome.model async for outcome in stream]

    assert await models(OLD) == ["old", "old"]
    with pytest.raises(SetupChangedError):
        await models(NEW)
    assert await models(NEW, "accept") == []
    assert await models(NEW, "retry") == ["new", "new"]
    with pytest.raises(ConfigError, match="on_change"):
        await models(NEW, "perhaps")
