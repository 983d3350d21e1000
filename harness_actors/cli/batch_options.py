"""Flags of the commands that do many runs, each defined once."""

from pathlib import Path
from typing import Annotated

import typer

from harness_actors.cli.options import QuestionChoice

MANY = "Many runs"


TasksArgument = Annotated[
    Path, typer.Argument(metavar="TASKS.jsonl", help="A task a line; only `task` is required.")
]
RunDirOption = Annotated[
    Path,
    typer.Option("--run-dir", metavar="DIR", help="Where results, journal and workspaces go."),
]
WorkspaceOption = Annotated[
    Path | None,
    typer.Option("--workspace", metavar="DIR", help="Copied for each task that names none."),
]
ConcurrencyOption = Annotated[
    int,
    typer.Option("-n", "--concurrency", metavar="N", help="Runs at once.", rich_help_panel=MANY),
]
LimitOption = Annotated[
    int | None,
    typer.Option(
        "--limit", metavar="N", min=1, help="Only the first N tasks.", rich_help_panel=MANY
    ),
]
EpochsOption = Annotated[
    int, typer.Option("--epochs", metavar="N", help="Runs of each task.", rich_help_panel=MANY)
]
RetryOnErrorOption = Annotated[
    int,
    typer.Option(
        "--retry-on-error",
        metavar="N",
        help="Further attempts for a run that failed.",
        rich_help_panel=MANY,
    ),
]
FailOnErrorOption = Annotated[
    float | None,
    typer.Option(
        "--fail-on-error",
        metavar="P",
        help="Failed tasks, a share below 1 or else a number, from which nothing new starts.",
        rich_help_panel=MANY,
    ),
]
RetryFailedOption = Annotated[
    bool,
    typer.Option(
        "--retry-failed",
        help="Another attempt for what earlier commands ended without success.",
        rich_help_panel=MANY,
    ),
]
AcceptChangesOption = Annotated[
    bool,
    typer.Option(
        "--accept-changes",
        help="Keep what was made with another agent, model or settings, and do the rest.",
        rich_help_panel=MANY,
    ),
]
RetryChangedOption = Annotated[
    bool,
    typer.Option(
        "--retry-changed",
        help="Another attempt for what was made with another agent, model or settings.",
        rich_help_panel=MANY,
    ),
]
BudgetOption = Annotated[
    float | None,
    typer.Option(
        "--budget",
        metavar="USD",
        help="Cost, earlier commands included, from which nothing new starts.",
        rich_help_panel=MANY,
    ),
]
OnQuestionOption = Annotated[
    QuestionChoice | None,
    typer.Option(
        "--on-question",
        help="When an agent asks its user: wait, say that nobody is there, or fail the run.",
        rich_help_panel=MANY,
    ),
]
