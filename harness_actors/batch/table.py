"""The table at the end of a batch: what its summary says, in words."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness_actors.batch.causes import CHECK_FAILED, short_question
from harness_actors.batch.changes import SHOWN_HASH
from harness_actors.batch.words import counted, dollars, short_time
from harness_actors.printing.plain import one_line

MOST_SHOWN = 3
"""Causes of one ending, and ids of removed tasks."""

ENDINGS: Mapping[str, str] = {
    "complete": "all tasks have ended",
    "budget": "the budget is spent; the same command with a larger one goes on",
    "failures": "too many tasks failed; the same command goes on with the others",
    "interrupted": "interrupted: what finished is kept; the same command goes on",
    "parked": "runs were put aside, see `harness doctor`; the same command goes on",
    "waiting": "runs wait for answers; answered, the same command goes on with them",
    "error": "stopped by an error, which says how to go on",
}

Row = tuple[str, str]


def final_rows(
    summary: Mapping[str, Any], results: str | None, run_dir: str | None = None
) -> list[Row]:
    """The table at the end: names with their values; a row without a name belongs to the last.

    Args:
        summary: As `summary.json` has it.
        results: Where the results are; None where there are none.
        run_dir: Where commands find the runs; None where that need not be said.
    """
    where = "" if run_dir is None else f" --run-dir {shlex.quote(run_dir)}"
    usage = summary["usage"]
    rows = [("ending", _ending(summary)), ("ok", _ok(summary)), *_ending_rows(summary)]
    if left := summary["without_result"]:
        rows.append(("not ended", f"{counted(left, 'task')} without a result"))
    rows += [*_waiting_rows(summary, where), *_setup_rows(summary), *_removed_rows(summary)]
    tokens = f"{usage.get('input_tokens', 0):,} in, {usage.get('output_tokens', 0):,} out"
    rows += [
        ("tokens", f"{tokens}, {usage.get('cached_tokens', 0):,} cached"),
        ("cost", dollars(usage["cost_usd"])),
        *_unlisted_rows(summary),
        *_fallback_rows(summary["command"]),
        ("time", short_time(summary["command"]["wall_s"])),
    ]
    if results is not None:
        rows.append(("results", results))
    return rows


def _ending(summary: Mapping[str, Any]) -> str:
    waiting = summary["waiting"]
    if summary["ending"] != "waiting" or not waiting:
        return ENDINGS[summary["ending"]]
    runs = waiting["tasks"] - waiting["answered"]
    if not runs:
        return "answers have come; the same command goes on with their runs"
    told = f"{counted(runs, 'run')} {'waits' if runs == 1 else 'wait'} for answers"
    return f"{told}; answered, the same command goes on"


def _waiting_rows(summary: Mapping[str, Any], where: str) -> list[Row]:
    """Which runs wait for their user, what they ask, and how they are answered."""
    waiting = summary["waiting"]
    if not waiting or not waiting["tasks"]:
        return []
    if waiting["runs"]:
        names = [_asking(run) for run in waiting["runs"][:MOST_SHOWN]]
        open_runs = waiting["tasks"] - waiting["answered"]
        if open_runs > len(names):
            names.append(f"and {open_runs - len(names)} more, see `harness ctl run list{where}`")
        names.append(f"{_how(waiting['runs'], where)}, then the same command again")
    else:
        names = []
    if answered := waiting["answered"]:
        names.append(f"{counted(answered, 'run')} answered: the same command goes on")
    return [("waiting" if at == 0 else "", name) for at, name in enumerate(names)]


def _asking(run: Mapping[str, Any]) -> str:
    first, *others = run["questions"]
    more = f" (and {counted(len(others), 'more question')})" if others else ""
    asked = short_question(f"{first['text']} {first.get('arguments') or ''}")
    return f"{one_line(run['id'])}, run {run['run_id']}: {asked}{more}"


def _how(runs: Sequence[Mapping[str, Any]], where: str) -> str:
    """By which commands runs are answered that wait for their user."""
    kinds = {asked.get("kind") for run in runs for asked in run["questions"]}
    told = []
    if "approval" in kinds:
        told.append(f"to decide: harness ctl run approve RUN_ID …{where}, or deny")
    if kinds != {"approval"}:
        told.append(f"to answer: harness ctl run answer RUN_ID …{where}")
    return "; ".join(told)


def _ok(summary: Mapping[str, Any]) -> str:
    total = summary["tasks"] + (summary["without_result"] or 0)
    return f"{summary['verdicts'].get('ok', 0)} of {counted(total, 'task')}"


def _ending_rows(summary: Mapping[str, Any]) -> list[Row]:
    """How many tasks ended in which way, and why those did that are not ok."""
    causes: dict[str, list[Mapping[str, Any]]] = {}
    for cause in summary["causes"]:
        if cause["cause"]:
            causes.setdefault(cause["ending"], []).append(cause)
    rows: list[Row] = []
    for ending, tasks in sorted(summary["reasons"].items()):
        rows += _with_causes(ending, str(tasks), tasks, causes.get(ending, ()))
    checks = summary["checks"]
    if any(checks.values()):
        told = f"{checks['passed']} passed, {checks['failed']} failed"
        rows += _with_causes("checks", told, checks["failed"], causes.get(CHECK_FAILED, ()))
        if stopped := checks["failed"] - summary["verdicts"].get(CHECK_FAILED, 0):
            rows.append(("", f"{stopped} × of runs that were stopped, see above"))
    return rows


def _with_causes(
    name: str, told: str, tasks: int, causes: Sequence[Mapping[str, Any]]
) -> Iterator[Row]:
    if len(causes) == 1 and causes[0]["tasks"] == tasks:
        yield name, f"{told}: {causes[0]['cause']}"
        return
    yield name, told
    for cause in causes[:MOST_SHOWN]:
        yield "", f"{cause['tasks']} × {cause['cause']}"
    if len(causes) > MOST_SHOWN:
        yield "", f"and {counted(len(causes) - MOST_SHOWN, 'more cause')}, see summary.json"


def _setup_rows(summary: Mapping[str, Any]) -> list[Row]:
    """What the results were made with; nothing where no version noted it."""
    setups = summary["setups"]
    if not any(one["setup"] for one in setups):
        return []
    if len(setups) == 1:
        return [("made with", _made_with(setups[0]))]
    rows = [("made with", f"{len(setups)} set-ups, of which these results are a mixture")]
    return rows + [("", f"{one['tasks']} × {_made_with(one)}") for one in setups]


def _made_with(setup: Mapping[str, Any]) -> str:
    if setup["setup"] is None:
        return "one that an earlier version did not note"
    short = setup["setup"][:SHOWN_HASH]
    return f"{setup['agent']} on {setup['model']} ({short})" if setup["agent"] else short


def _removed_rows(summary: Mapping[str, Any]) -> list[Row]:
    removed = summary["removed"]
    if not removed or not removed["tasks"]:
        return []
    shown = removed["ids"][:MOST_SHOWN]
    names = ", ".join(shown) + (", …" if removed["tasks"] > len(shown) else "")
    what = f"{counted(removed['tasks'], 'result')} of tasks that this command does not have"
    return [("removed", f"{what}, not counted above: {names}")]


def _unlisted_rows(summary: Mapping[str, Any]) -> list[Row]:
    """How much of tokens and cost is of runs that the results do not tell of."""
    unfinished, unlisted = summary["unfinished"], summary["unlisted"]
    if unfinished is None:
        return [("unfinished", "runs are not counted in these: their journal cannot be read")]
    rows = []
    if stranded := unfinished["of_removed_tasks"]:
        runs = f"{counted(unfinished['runs'], 'run')}, {stranded} of them of removed tasks"
    else:
        runs = counted(unfinished["runs"], "run")
    if unfinished["runs"]:
        used = _used(unfinished["usage"])
        rows.append(("unfinished", f"{runs}: {used}" if used else runs))
    waiting = unlisted["to_be_written"]
    if waiting:
        what = f"{counted(waiting, 'run')} ended, the same command writes the results"
        rows.append(("to be told", what))
    if used := _used(unlisted["usage"]):
        what = f"{counted(unlisted['runs'], 'run')} that no result tells of"
        if not waiting:
            what = f"{counted(unlisted['runs'], 'attempt')} that another one followed"
        rows.append(("earlier", f"{what}: {used}"))
    return rows


def _fallback_rows(command: Mapping[str, Any]) -> list[Row]:
    if not (rounds := command.get("fallbacks")):
        return []
    told = f"a model did not answer in {counted(rounds, 'round')}, see `harness ctl run show`"
    return [("fallback", told)]


def _used(usage: Mapping[str, Any]) -> str:
    """Tokens and cost in words; empty where there are none."""
    tokens = _tokens(usage)
    if not tokens and not usage["cost_usd"]:
        return ""
    if (cost := dollars(usage["cost_usd"])) == "-":
        return f"{tokens:,} of the tokens"
    return f"{tokens:,} of the tokens and {cost} of the cost"


def _tokens(usage: Mapping[str, Any]) -> int:
    return int(usage.get("input_tokens", 0) + usage.get("output_tokens", 0))
