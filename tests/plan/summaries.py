"""Summaries of any shape, drawn."""

from typing import TypeVar

from hypothesis import strategies as st

from harness_actors.plan import Decision, OpenItem, Reference, Summary, ToolOutcome

WORDS = st.sampled_from(["port 80", "Port  80", "IPv6", "use A", "write docs", "Write Docs", " "])
TEXTS = WORDS | st.text(max_size=30)
AT = st.integers(0, 400)
Drawn = TypeVar("Drawn")


def decisions() -> st.SearchStrategy[Decision]:
    return st.builds(Decision, what=TEXTS, why=TEXTS, at=AT)


def open_items(*, done: st.SearchStrategy[bool]) -> st.SearchStrategy[OpenItem]:
    priority = st.sampled_from(["high", "normal", "low"])
    return st.builds(OpenItem, what=TEXTS, context=TEXTS, priority=priority, done=done)


def outcomes() -> st.SearchStrategy[ToolOutcome]:
    # A position has one result, so its content follows from it.
    return st.builds(outcome, AT)


def outcome(at: int) -> ToolOutcome:
    failed = at % 3 == 0
    return ToolOutcome(
        tool=f"tool{at % 5}",
        came="failure" if failed else "success",
        fields={"path": f'"{at}.py"'} if at % 2 else {},
        error="no such file" if failed else "",
        at=at,
    )


def references() -> st.SearchStrategy[Reference]:
    return st.builds(lambda at: Reference(at=at, what=f"web_search({at})"), AT)


def some(most: int, of: st.SearchStrategy[Drawn]) -> st.SearchStrategy[tuple[Drawn, ...]]:
    return st.lists(of, max_size=most).map(tuple)


def summaries(*, done: bool = True, most: int = 4) -> st.SearchStrategy[Summary]:
    return st.builds(
        Summary,
        facts=some(most, TEXTS),
        decisions=some(most, decisions()),
        open_items=some(most, open_items(done=st.booleans() if done else st.just(False))),
        outcomes=some(most, outcomes()),
        references=some(most, references()),
        current_task=TEXTS,
        current_plan=some(most, TEXTS),
    )
