"""Flags that several commands share, each defined once."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

MODEL = "Model"
BOUNDS = "Bounds"
WHERE = "Where it runs"


class RuntimeChoice(StrEnum):
    """What runs the runs."""

    ray = "ray"
    local = "local"


class QuestionChoice(StrEnum):
    """What becomes of questions of an agent to its user."""

    wait = "wait"
    deny = "deny"
    fail = "fail"


AgentOption = Annotated[
    Path | None,
    typer.Option(
        "--agent", metavar="FILE.yaml", help="The agent: model, persona, tools, settings."
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="ID",
        help="Model, such as gpt-4.1-mini; `local` is the embedded one, without a key.",
        rich_help_panel=MODEL,
    ),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option(
        "--model-base-url",
        metavar="URL",
        help="An OpenAI-compatible endpoint; by default OPENAI_BASE_URL, or OpenAI's own.",
        rich_help_panel=MODEL,
    ),
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "-M",
        metavar="KEY=VALUE",
        help="A field of each request to the model, such as temperature=0; repeatable.",
        rich_help_panel=MODEL,
    ),
]
WorkspaceOption = Annotated[
    Path | None,
    typer.Option("--workspace", metavar="DIR", help="The folder to work in, in place."),
]
MaxTurnsOption = Annotated[
    int | None,
    typer.Option("--max-turns", metavar="N", help="Turns of a run.", rich_help_panel=BOUNDS),
]
TokenLimitOption = Annotated[
    int | None,
    typer.Option(
        "--token-limit", metavar="N", help="Tokens of a run, in and out.", rich_help_panel=BOUNDS
    ),
]
CostLimitOption = Annotated[
    float | None,
    typer.Option("--cost-limit", metavar="USD", help="Cost of a run.", rich_help_panel=BOUNDS),
]
TimeLimitOption = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="S",
        help="Seconds of a run since its first start, pauses included.",
        rich_help_panel=BOUNDS,
    ),
]
WorkingLimitOption = Annotated[
    float | None,
    typer.Option(
        "--working-limit",
        metavar="S",
        help="Seconds of work on a run, without pauses and waits on rate limits.",
        rich_help_panel=BOUNDS,
    ),
]
OnQuestionOption = Annotated[
    QuestionChoice | None,
    typer.Option(
        "--on-question",
        help="When the agent asks its user, or for approval: wait, say that nobody is there, or "
        "fail the run.",
    ),
]
ContractOption = Annotated[
    Path | None,
    typer.Option(
        "--contract",
        metavar="FILE",
        help="What the run must have come to before it is over, YAML or JSON; in place of the "
        "contract of the agent file.",
    ),
]
RuntimeOption = Annotated[
    RuntimeChoice,
    typer.Option(
        "--runtime",
        help="`ray`, or `local` for this process alone.",
        rich_help_panel=WHERE,
    ),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="auto|local|HOST:PORT",
        help="Which Ray: one that is up, or else our own; always our own; or that one.",
        rich_help_panel=WHERE,
    ),
]


def _trust(is_trusted: bool) -> bool:
    # In the environment, so that processes which are started to ask that Ray know it, too.
    if is_trusted:
        os.environ["HARNESS_TRUST_RAY"] = "1"
    return is_trusted


TrustRayOption = Annotated[
    bool,
    typer.Option(
        "--trust-ray",
        callback=_trust,
        help="Join the Ray of --address or RAY_ADDRESS also where it is another user's.",
        rich_help_panel=WHERE,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON on stdout, for scripts.")]
DebugOption = Annotated[
    bool,
    typer.Option(
        "--debug",
        help="Show where tools, models and executors of your own failed: their tracebacks.",
    ),
]
VerboseOption = Annotated[
    bool,
    typer.Option(
        "-v",
        "--verbose",
        help="Show what your tools, models and executors print and log while they do.",
    ),
]
