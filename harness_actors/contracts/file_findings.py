"""Predicates that look into files, or the answer: what is asked for them, and what comes of it."""

from harness_actors.contracts.findings import Finding, cut, met
from harness_actors.contracts.leaves import ContainsText, FileExists, JsonSchemaValid, place_of
from harness_actors.contracts.ledger import EvidenceKind
from harness_actors.contracts.patterns import is_plain, with_case
from harness_actors.ports import Exists, FileFact, FileQuestion, Find, InFile, Look, Validate

FilePredicate = FileExists | ContainsText | JsonSchemaValid


def is_of_answer(predicate: FilePredicate) -> bool:
    """Whether it looks at the last answer, and at no file."""
    return not isinstance(predicate, FileExists) and predicate.file is None


def question_of(predicate: FilePredicate, answer: str) -> FileQuestion:
    """What a workspace is asked for a predicate; `answer` is the last one."""
    match predicate:
        case FileExists(path=path):
            return Exists(path)
        case ContainsText(pattern=pattern, file=file, ignore_case=ignored):
            where = answer if file is None else InFile(file)
            return Find(with_case(pattern, ignored=ignored), where, is_plain(pattern))
        case JsonSchemaValid(schema=schema, file=file):
            return Validate(schema, answer if file is None else InFile(file))


def of_seen(predicate: FilePredicate, seen: FileFact | Look) -> Finding:
    """The finding of what was seen."""
    if isinstance(predicate, FileExists):
        assert isinstance(seen, FileFact)
        return _of_fact(predicate, seen)
    assert isinstance(seen, Look)
    place = place_of(predicate.file)
    match seen.holds:
        case True:
            kind: EvidenceKind = "response" if predicate.file is None else "artifact"
            return met(kind, predicate.file or "", seen.told)
        case False if isinstance(predicate, ContainsText):
            why = f"{place} has nothing that matches {predicate.pattern!r}: {seen.told}"
            return Finding(verdict="unmet", why=cut(why))
        case False:
            why = f"{place} is not as its schema has it: {seen.told}"
            return Finding(verdict="unmet", why=cut(why))
        case None:
            return Finding(verdict="unknown", why=cut(f"{place}: {seen.told}"))


def _of_fact(predicate: FileExists, fact: FileFact) -> Finding:
    wanted = "folder" if predicate.folder else "file"
    match fact.found:
        case "refused":
            return Finding(verdict="unknown", why=cut(fact.problem))
        case "missing":
            return Finding(verdict="unmet", why=f"there is no {wanted} {predicate.path!r}")
        case found if found != wanted:
            return Finding(verdict="unmet", why=f"{predicate.path!r} is a {found}, not a {wanted}")
    if fact.size_bytes < predicate.min_bytes:
        why = f"{predicate.path!r} has {fact.size_bytes:,} bytes, and needs {predicate.min_bytes:,}"
        return Finding(verdict="unmet", why=why)
    size = "" if predicate.folder else f"{fact.size_bytes:,} bytes"
    return met("artifact", predicate.path, size)
