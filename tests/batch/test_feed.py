import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from harness_actors.batch.feed import Feed, TaskSource
from harness_actors.batch.task_file import TaskFile
from harness_actors.batch.tasks import BadTask, Task
from harness_actors.errors import ConfigError


async def taken(source: TaskSource, *, epochs: int = 1) -> list[Task | BadTask]:
    return [task async for task in Feed(source, epochs=epochs)]


async def test_tasks_may_be_texts_mappings_or_tasks() -> None:
    tasks = await taken(["one", {"id": "b", "task": "two"}, Task(id="c", task="three")])

    assert [task.task for task in tasks if isinstance(task, Task)] == ["one", "two", "three"]


async def test_tasks_may_come_from_an_async_iterable() -> None:
    async def coming() -> AsyncIterator[str]:
        yield "one"
        yield "two"

    assert len(await taken(coming())) == 2


async def test_equal_tasks_without_an_id_get_numbered_names() -> None:
    one, two, three = await taken(["same", "same", "same"])

    assert (two.id, three.id) == (f"{one.id}#2", f"{one.id}#3")
    assert one.task_hash == two.task_hash == three.task_hash


async def test_an_id_given_twice_makes_the_second_a_bad_task() -> None:
    one, two = await taken([{"id": "a", "task": "x"}, {"id": "a", "task": "y"}])

    assert isinstance(one, Task)
    assert isinstance(two, BadTask)
    assert two.id == f"a#{two.task_hash}"


async def test_a_name_that_was_made_is_none_that_a_later_task_has() -> None:
    given = ["a", "a", "a", "a#2", "a#3"]
    tasks = await taken({"id": name, "task": "x"} for name in given)

    assert len({task.id for task in tasks}) == 5
    assert [task.id for task in tasks if isinstance(task, Task)] == ["a", "a#2", "a#3"]


async def test_a_bad_task_with_a_name_that_is_taken_keeps_its_own_faults() -> None:
    _, bad, again = await taken([{"id": "a", "task": "x"}, {"id": "a"}, {"id": "a"}])

    assert isinstance(bad, BadTask)
    assert isinstance(again, BadTask)
    assert bad.faults == again.faults == ("task: this field is required",)
    assert len({"a", bad.id, again.id}) == 3


async def test_a_repeat_passes_over_a_name_that_another_task_has() -> None:
    (first,) = await taken(["same"])

    tasks = await taken(["same", {"id": f"{first.id}#2", "task": "x"}, "same", "same"])

    assert [task.id for task in tasks] == [first.id, *(f"{first.id}#{at}" for at in (2, 3, 4))]


async def test_a_task_whose_folder_is_not_there_is_a_bad_task_of_its_name(tmp_path: Path) -> None:
    given = Task(id="c", task="x", workspace=str(tmp_path / "gone"))

    (task,) = await taken([given])

    fault = f"workspace: there is no folder {given.workspace!r}"
    assert task == BadTask(id="c", task_hash=given.task_hash, faults=(fault,))


async def test_something_that_is_no_task_is_a_bad_task() -> None:
    (task,) = await taken([17])  # type: ignore[list-item]

    assert isinstance(task, BadTask)


async def test_further_epochs_follow_their_task() -> None:
    feed = Feed([{"id": "a", "task": "x"}, {"id": "b", "task": "y"}], epochs=2)

    assert feed.count == 4
    assert [task.id async for task in feed] == ["a", "a@2", "b", "b@2"]


async def test_tasks_are_taken_only_when_they_are_needed() -> None:
    made = []

    def making() -> Iterator[str]:
        for number in range(1000):
            made.append(number)
            yield f"task {number}"

    feed = Feed(making())
    async for _ in feed:
        break

    assert feed.count is None
    assert made == [0]


def test_one_text_is_not_taken_for_a_list_of_letters() -> None:
    with pytest.raises(ConfigError, match="put the one task into a list"):
        Feed("do it")


def test_a_path_is_told_how_its_tasks_are_read(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"task": "x"}\n')
    with pytest.raises(ConfigError, match=re.escape(f"TaskFile({str(file)!r})")):
        Feed(file)  # type: ignore[arg-type]
    assert Feed(TaskFile(str(file))).count == 1
