"""Checks a document by a JSON schema; also a program of its own.

Where that may take long it is run in a process, for only a process can be stopped. Besides the
standard library it imports jsonschema alone, from where the asking process has it.
"""

import json
import os
import resource
import signal
import sys
from collections.abc import Mapping
from itertools import islice
from typing import Any

MOST_FAULTS = 5
"""Of one document, that are told."""
SHOWN_CHARS = 60
MAX_MEMORY_BYTES = 1_000_000_000


class UntoldError(Exception):
    """Whether a document is valid cannot be told; says why."""


def faults_of(document: Any, schema: Mapping[str, Any]) -> tuple[str, ...]:
    """In what a document breaks a schema that was checked, `MOST_FAULTS` of it at most.

    Args:
        document: A value of JSON.
        schema: The schema.

    Returns:
        One sentence each; none where it is valid.

    Raises:
        UntoldError: The schema goes in a circle, or the document is nested too deeply for it.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    # A registry of our own: without one, jsonschema fetches what a reference names.
    kind = validator_for(schema, default=Draft202012Validator)
    validator = kind(dict(schema), registry=Registry())
    try:
        found = islice(validator.iter_errors(document), MOST_FAULTS)
        return tuple(sentence_of(error) for error in found)
    except Unresolvable as error:
        raise UntoldError(f"the schema has no {brief(error.ref)}") from None
    except RecursionError:
        raise UntoldError("it is nested too deeply for this schema") from None


def sentence_of(error: Any) -> str:
    """An error of jsonschema in short: its own message holds the whole value."""
    path: str = error.json_path
    where = path if len(path) <= 2 * SHOWN_CHARS else f"…{path[-SHOWN_CHARS:]}"
    wanted = brief(error.validator_value)
    match error.validator:
        case "required":
            missing = [name for name in error.validator_value if name not in error.instance]
            return f"{where}: {', '.join(map(brief, missing[:5]))} is missing"
        case "type":
            return f"{where}: must be of type {wanted}, not {brief(error.instance)}"
        case "additionalProperties" if error.validator_value is False:
            known = error.schema.get("properties", {})
            more = [brief(name) for name in error.instance if name not in known]
            return f"{where}: there may be no {', '.join(more[:5])}"
        case "anyOf" | "oneOf" if ways := [one for one in error.context if not one.context]:
            return ", or ".join(map(sentence_of, ways[:MOST_FAULTS]))
        case _:
            return f"{where}: {brief(error.instance)} breaks {error.validator!r}, which is {wanted}"


def brief(value: Any) -> str:
    """A value in a few characters, whatever its size.

    >>> brief("x" * 1_000_000)[:5], brief([1] * 1_000_000)
    ("'xxxx", 'an array')
    """
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        short = len(value) <= 5 and all(isinstance(one, str | int) for one in value)
        text = f"[{', '.join(map(brief, value))}]" if short else "an array"
        return text if len(text) <= 2 * SHOWN_CHARS else "an array"
    if isinstance(value, str) and len(value) > SHOWN_CHARS:
        return f"{value[:SHOWN_CHARS]!r}…"
    if isinstance(value, int) and value.bit_length() > 64:
        return "a large number"
    return "null" if value is None else repr(value)


def parsed(data: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: It is none; says why.
        UntoldError: It is nested too deeply.
    """
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8, at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}: it is not JSON: {error.msg}") from None
    except RecursionError:
        raise UntoldError("it is nested too deeply") from None


def _no_constant(word: str) -> Any:
    raise ValueError(f"it is not JSON: {word}")


def main() -> None:
    """Read a question from stdin, write the answer as a line of JSON."""
    question: dict[str, Any] = json.load(sys.stdin)
    # Whoever asked may be killed.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, question["seconds"])
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY or most > MAX_MEMORY_BYTES:
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, most))
    sys.path[:] = question["path"]
    try:
        with open(question["file"], "rb", closefd=False) as file:
            document = parsed(file.read())
        answer: dict[str, Any] = {"faults": faults_of(document, question["schema"])}
    except ValueError as error:
        answer = {"faults": (str(error),)}
    except UntoldError as error:
        answer = {"broken": str(error)}
    except MemoryError:
        answer = {"broken": f"it took more than {MAX_MEMORY_BYTES // 1_000_000} MB"}
    _say(answer)


def _say(answer: Mapping[str, Any]) -> None:
    os.write(1, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()
