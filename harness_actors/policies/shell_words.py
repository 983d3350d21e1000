"""Commands of a shell read roughly: which programs they start, with which words."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from posixpath import basename

MOST_CHARS = 20_000
"""Characters of a command that are looked at, without its here-documents."""
MOST_DEPTH = 5
"""Commands within commands, as of ``bash -c``, that are looked at."""
FETCHED = "\x01fetched"
"""Stands in a word for what a program has downloaded, as of ``$(curl …)``."""
OTHER = "\x01other"
"""Stands in a word for what another program prints."""

DOWNLOADERS = frozenset(("curl", "wget", "fetch", "aria2c"))
SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "ash", "fish"))

_HERE = re.compile(r"<<(-?)[ ]{0,4}(['\"]?)(\w{1,64})\2")
_WITHIN = re.compile(r"\$\(([^()]{1,4000})\)|`([^`]{1,4000})`|[<>]\(([^()]{1,4000})\)")

# A program that runs what follows it, and which of its options take a word of their own.
_RUNNERS: dict[str, frozenset[str]] = {
    "sudo": frozenset(("-u", "-g", "-p", "-C", "-h", "-r", "-t", "-U", "--user", "--group")),
    "doas": frozenset(("-u", "-C")),
    "env": frozenset(("-u", "-C", "-S", "--unset", "--chdir")),
    "nohup": frozenset(),
    "nice": frozenset(("-n",)),
    "ionice": frozenset(("-c", "-n", "-p")),
    "time": frozenset(("-f", "-o")),
    "exec": frozenset(("-a",)),
    "command": frozenset(),
    "builtin": frozenset(),
    "setsid": frozenset(),
    "stdbuf": frozenset(("-i", "-o", "-e")),
    "busybox": frozenset(),
    "xargs": frozenset(("-I", "-n", "-P", "-L", "-d", "-s", "-E", "-a")),
    "timeout": frozenset(("-s", "-k", "--signal", "--kill-after")),
    "chroot": frozenset(),
}
_LEADING_WORDS = {"timeout": 1, "chroot": 1}
"""Words of their own that come before the program."""
_KEYWORDS = {"then", "do", "else", "elif", "if", "while", "until", "!", "{", "}", "fi", "done"}
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")
_SEPARATORS = frozenset(";&|()\n")


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A program with its words.

    Attributes:
        program: Its name, without a folder; empty where there is only a redirection.
        words: What follows it.
        written: Files that its output is sent to.
        piped: It reads what the command before it prints.
    """

    program: str
    words: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    piped: bool = False


@dataclass(slots=True)
class _Pending:
    words: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    piped: bool = False


def simple_commands(command: str, depth: int = 0) -> Iterator[SimpleCommand]:
    """The programs that a command starts, as far as that can be read from it.

    Raises:
        ValueError: It cannot be read: a quote is not closed.
    """
    if depth > MOST_DEPTH:
        return
    text, bodies = _without_documents(command)
    for body in bodies:
        yield from simple_commands(body, depth + 1)
    text = text[:MOST_CHARS]
    for found in _WITHIN.finditer(text):
        yield from simple_commands(_inner(found), depth + 1)
    for pending in _split(_WITHIN.sub(_stand_in, text)):
        yield from _expanded(pending, depth)


def _inner(found: re.Match[str]) -> str:
    return next(part for part in found.groups() if part)


def _stand_in(found: re.Match[str]) -> str:
    words = _inner(found).split(maxsplit=3)
    return FETCHED if DOWNLOADERS & {basename(word) for word in words[:2]} else OTHER


def _without_documents(text: str) -> tuple[str, list[str]]:
    """The text without its here-documents, and those of them that a shell reads."""
    if "<<" not in text:
        return text, []
    kept: list[str] = []
    bodies: list[str] = []
    ends: list[tuple[str, bool]] = []
    body: list[str] = []
    for line in text.split("\n"):
        if ends:
            if line.strip() != ends[0][0]:
                body.append(line)
                continue
            if ends.pop(0)[1]:
                bodies.append("\n".join(body))
            body = []
            continue
        runs = bool(SHELLS & set(re.split(r"[\s|;&/]+", line)))
        ends = [(found[3], runs) for found in _HERE.finditer(line)]
        kept.append(_HERE.sub(" ", line))
    return "\n".join(kept), bodies


def _split(text: str) -> Iterator[_Pending]:
    lexer = shlex.shlex(text.replace("\\\n", " "), posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    pending, target, comment = _Pending(), False, False
    for token in lexer:
        is_punctuation = bool(token) and not set(token) - set(";&|()<>\n")
        if comment and not (is_punctuation and "\n" in token):
            continue
        comment = token.startswith("#")
        if comment:
            continue
        if is_punctuation and set(token) & _SEPARATORS and token not in (">&", "<&", "&>", ">|"):
            if pending.words or pending.written:
                yield pending
            pending = _Pending(piped=token in ("|", "|&"))
            target = False
        elif is_punctuation:
            target = ">" in token
        elif target:
            pending.written.append(token)
            target = False
        else:
            pending.words.append(token)
    if pending.words or pending.written:
        yield pending


def _expanded(pending: _Pending, depth: int) -> Iterator[SimpleCommand]:
    """A command without what only runs it; of a shell, what that is given, too."""
    words = list(pending.words)
    while words and (words[0] in _KEYWORDS or _ASSIGNED.match(words[0])):
        words.pop(0)
    name = basename(words[0]) if words else ""
    written = tuple(pending.written)
    yield SimpleCommand(name, tuple(words[1:]), written, pending.piped)
    if name in _RUNNERS and depth < MOST_DEPTH:
        rest = _after_options(name, words[1:])
        if rest:
            yield from _expanded(_Pending(rest, [], pending.piped), depth + 1)
    elif name in SHELLS and (given := _given_to_shell(words[1:])):
        yield from simple_commands(given, depth + 1)
    elif name == "eval":
        yield from simple_commands(" ".join(words[1:]), depth + 1)
    elif name == "find" and depth < MOST_DEPTH:
        for place, word in enumerate(words):
            if word in ("-exec", "-execdir", "-ok"):
                yield from _expanded(_Pending(words[place + 1 :], []), depth + 1)


def _after_options(runner: str, words: list[str]) -> list[str]:
    rest = list(words)
    while rest and (rest[0].startswith("-") or _ASSIGNED.match(rest[0])):
        option = rest.pop(0)
        if option in _RUNNERS[runner] and rest:
            rest.pop(0)
    return rest[_LEADING_WORDS.get(runner, 0) :]


def _given_to_shell(words: list[str]) -> str:
    for place, word in enumerate(words[:-1]):
        if word.startswith("-") and not word.startswith("--") and word.endswith("c"):
            return words[place + 1]
    return ""
