import json
import os
import tracemalloc
from pathlib import Path

import pytest

from harness_actors.batch.task_file import MAX_LINE_BYTES, TaskFile
from harness_actors.batch.tasks import BadTask, Task
from harness_actors.errors import BadInputError, ConfigError


def write(folder: Path, *lines: object) -> Path:
    path = folder / "tasks.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n")
    return path


def faults_of(path: Path) -> tuple[str, ...]:
    with pytest.raises(BadInputError) as caught:
        TaskFile(path)
    assert caught.value.source == str(path)
    return caught.value.faults


def test_tasks_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, {"id": "a", "task": "x"}, {"id": "b", "task": "y"})

    tasks = TaskFile(path)

    assert tasks.count == 2
    assert [task.id for task in tasks] == ["a", "b"]
    assert [task.id for task in tasks] == ["a", "b"]


def test_every_bad_line_is_told_with_its_number(tmp_path: Path) -> None:
    path = write(tmp_path, {"task": "x"}, "{not json", {"task": "x", "colour": 1}, {"id": "q"})

    faults = faults_of(path)

    assert faults[0].startswith("line 2: not JSON")
    assert faults[1:] == (
        "line 3: colour: there is no such field",
        "line 4: task: this field is required",
    )


def test_a_field_that_is_given_twice_is_told_and_not_dropped(tmp_path: Path) -> None:
    twice = '{"task": "x", "task": "y"}'
    inside = '{"task": "x", "metadata": {"a": 1, "a": 2}}'
    deep = '{"task": "x", "metadata": {"a": ' + "[" * 1010 + "]" * 1010 + "}}"
    faults = faults_of(write(tmp_path, twice, inside, deep))
    assert faults[:2] == (
        "line 1: the key 'task' is given twice",
        "line 2: the key 'a' is given twice",
    )
    assert faults[2].startswith("line 3: ")


def test_a_line_that_is_too_long_is_told_and_never_held(tmp_path: Path) -> None:
    path = write(tmp_path, {"task": "x"})
    with path.open("a") as file:
        file.write('{"task": "')
        for _ in range(10):
            file.write("x" * MAX_LINE_BYTES)
        file.write('"}\n{"task": "y"\n')
    tracemalloc.start()
    faults = faults_of(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert faults[0] == (
        "line 2: it has 20,000,013 bytes, and may have 2,000,000; "
        "put what is long into a file of its workspace"
    )
    assert faults[1].startswith("line 3: not JSON")
    assert peak < 5 * MAX_LINE_BYTES


def test_a_line_that_became_too_long_is_an_outcome(tmp_path: Path) -> None:
    path = write(tmp_path, {"task": "x"}, {"task": "y"})
    tasks = TaskFile(path)
    lines = [{"task": "x" * MAX_LINE_BYTES}, {"task": "y" * (MAX_LINE_BYTES + 1)}, {"task": "z"}]
    write(tmp_path, *lines)

    first, second, third = tasks

    assert isinstance(first, BadTask)
    assert isinstance(second, BadTask)
    assert first.id != second.id
    assert isinstance(third, Task)


def test_lines_that_are_too_long_are_told_apart_by_all_that_is_in_them(tmp_path: Path) -> None:
    path = write(tmp_path, {"task": "x"}, {"task": "y"})
    tasks = TaskFile(path)
    write(tmp_path, "x" * MAX_LINE_BYTES + "one", "x" * MAX_LINE_BYTES + "two")

    assert len({task.id for task in tasks}) == 2


@pytest.mark.parametrize(("more", "fits"), [(0, True), (1, False)])
def test_a_line_may_have_as_many_bytes_as_is_said_and_no_more(
    tmp_path: Path, more: int, fits: bool
) -> None:
    around = len('{"task": ""}') + 1
    path = write(tmp_path, {"task": "x" * (MAX_LINE_BYTES - around + more)})

    if fits:
        assert TaskFile(path).count == 1
    else:
        assert "it has 2,000,001 bytes" in faults_of(path)[0]


def test_an_id_given_twice_is_bad_input(tmp_path: Path) -> None:
    path = write(tmp_path, {"id": "a", "task": "x"}, {"id": "a", "task": "y"})

    assert faults_of(path) == ("line 2: the id 'a' is that of line 1, too",)


@pytest.mark.parametrize(
    ("ids", "fault"),
    [
        (["a", "a@2"], "line 2: the id 'a@2' is what --epochs names a further run of line 1"),
        (["a@2", "a"], "line 2: with --epochs it is run as 'a@2', too, which is the id of line 1"),
        (["a", "a"], "line 2: the id 'a' is that of line 1, too"),
        (["a", "a@2@2", "a@2"], "line 3: the id 'a@2' is what --epochs names a further run"),
    ],
)
def test_an_id_that_further_epochs_would_have_is_bad_input(
    tmp_path: Path, ids: list[str], fault: str
) -> None:
    path = write(tmp_path, *({"id": name, "task": "x"} for name in ids))

    with pytest.raises(BadInputError) as caught:
        TaskFile(path, epochs=2)

    assert caught.value.faults[0].startswith(fault)
    assert len(ids) < 3 or TaskFile(path).count == 3


def test_an_id_that_a_repeated_line_has_is_bad_input(tmp_path: Path) -> None:
    (once,) = TaskFile(write(tmp_path, {"task": "x"}))
    path = write(tmp_path, {"task": "x"}, {"task": "x"}, {"id": f"{once.id}#2", "task": "y"})

    assert faults_of(path) == (f"line 3: the id '{once.id}#2' is that of line 2, too",)


def test_names_with_an_at_sign_are_good_where_no_epoch_has_them(tmp_path: Path) -> None:
    path = write(tmp_path, *({"id": name, "task": "x"} for name in ("a", "a@1", "a@02", "a@4")))

    assert TaskFile(path, epochs=3).count == 4


def test_equal_lines_without_an_id_are_tasks_of_their_own(tmp_path: Path) -> None:
    assert TaskFile(write(tmp_path, {"task": "x"}, {"task": "x"})).count == 2


def test_empty_lines_and_a_byte_order_mark_are_no_faults(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"task": "x"}\r\n\n   \n{"task": "y"}')

    assert [task.task for task in TaskFile(path) if isinstance(task, Task)] == ["x", "y"]
    path.write_bytes(b'{"task": "x"}\n\xef\xbb\xbf{"task": "y"}\n')
    assert faults_of(path)[0].startswith("line 2: not JSON")


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    os.mkfifo(path)

    assert faults_of(path) == (
        "is a pipe, and the tasks are read twice; save them to a file first",
    )


def test_a_line_that_is_not_utf_8_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_bytes('{"task": "é"}\n'.encode("latin-1"))

    assert faults_of(path) == ("line 1: not UTF-8 (byte 11); save the file as UTF-8",)


def test_faults_stop_at_a_number_that_people_read(tmp_path: Path) -> None:
    with pytest.raises(BadInputError) as refused:
        TaskFile(write(tmp_path, *(["{"] * 500)))

    head, *told, last = str(refused.value).splitlines()
    assert head.endswith(": more than 20 faults")
    assert [line.partition(":")[0] for line in told] == [f"line {n}" for n in range(1, 21)]
    assert last == "and more after these"


def test_as_many_faults_as_are_told_are_counted(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=": 20 faults\n"):
        TaskFile(write(tmp_path, *(["{"] * 20)))


@pytest.mark.parametrize(("content", "fault"), [(None, "No such file"), (b"\n", "no task in it")])
def test_a_missing_or_empty_file_is_bad_input(
    tmp_path: Path, content: bytes | None, fault: str
) -> None:
    path = tmp_path / "tasks.jsonl"
    if content is not None:
        path.write_bytes(content)

    assert fault in faults_of(path)[0]


def test_an_agent_file_is_checked_once_for_all_its_tasks(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").touch()
    path = write(tmp_path, *({"id": f"t{n}", "task": "x", "agent": "a.yaml"} for n in range(3)))
    loaded: list[Path] = []

    def refuse(agent: Path) -> None:
        loaded.append(agent)
        raise ConfigError("persona.contract", "not built yet")

    with pytest.raises(BadInputError) as caught:
        TaskFile(path, load_agent=refuse)

    assert len(loaded) == 1
    assert caught.value.faults[0] == "line 1: agent: persona.contract: not built yet"
    assert len(caught.value.faults) == 3
    assert TaskFile(path).count == 3


@pytest.mark.parametrize(
    ("agents", "needs"),
    [(["a.yaml"], False), (["a.yaml", None], True), ([None, "a.yaml"], True)],
)
def test_a_file_says_whether_a_task_of_it_needs_the_agent_of_the_command(
    tmp_path: Path, agents: list[str | None], needs: bool
) -> None:
    (tmp_path / "a.yaml").touch()
    path = write(
        tmp_path,
        *({"id": f"t{at}", "task": "x", "agent": agent} for at, agent in enumerate(agents)),
    )
    loaded: list[Path] = []

    assert TaskFile(path, load_agent=loaded.append).needs_agent is needs
    assert loaded == [tmp_path / "a.yaml"]


def test_a_limit_takes_the_first_tasks_and_checks_all(tmp_path: Path) -> None:
    good = write(tmp_path, *({"id": f"t{n}", "task": "x"} for n in range(5)))
    tasks = TaskFile(good, limit=2)

    assert tasks.count == 2
    assert [task.id for task in tasks] == ["t0", "t1"]
    assert TaskFile(good, limit=9).count == 5

    with pytest.raises(BadInputError):
        TaskFile(write(tmp_path, {"task": "x"}, "{"), limit=1)


def test_a_line_that_goes_bad_after_it_was_checked_is_a_bad_task(tmp_path: Path) -> None:
    path = write(tmp_path, {"task": "x"})
    tasks = TaskFile(path)
    path.write_text("{")

    assert isinstance(next(iter(tasks)), BadTask)


def test_what_no_line_shows_is_told_with_its_line_too(tmp_path: Path) -> None:
    held = {"goal": "x", "outputs": ["a"]}
    lines = [{"task": "x"}, {"task": "y", "contract": held}, {"task": "z"}]
    tasks = TaskFile(write(tmp_path, *lines))
    assert tasks.has_contracts
    assert not TaskFile(write(tmp_path, lines[0])).has_contracts
    write(tmp_path, *lines)

    tasks.refuse(lambda task: ())
    with pytest.raises(BadInputError) as caught:
        tasks.refuse(lambda task: ("one", "two") if task.contract else ())
    assert caught.value.faults == ("line 2: one", "line 2: two")
