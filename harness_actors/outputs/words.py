"""What models are told of outputs."""

import json
from collections.abc import Mapping
from typing import Any

SUMMARY, OUTPUT = "summary", "output"
"""The arguments of a `work_complete` that takes one."""
SUMMARY_IS = "What was done and how it was checked, in a few sentences."
OUTPUT_IS = "What came of the task, in this form."
NOT_CHECKED = "The run ends here: what looks at the output has failed."

PROMPT_CHARS, FINDING_CHARS = 20_000, 4_000
"""Of a schema, in what a model is told before it answers, and of an answer that does not fit."""

ASKED = (
    "When the task is done, answer with JSON and with nothing else. It must fit this JSON "
    "schema:\n{schema}"
)
UNFIT = (
    "Your answer is not the output that is asked for: {problem}\n"
    "Answer with JSON and with nothing else, of this schema: {schema}"
)


def shown_schema(schema: Mapping[str, Any], most_chars: int) -> str:
    """A schema as a model is shown it, cut where it is very long."""
    text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= most_chars else f"{text[:most_chars]}…"
