"""The conversation of a run, whole and as plain values: read back without the run's code."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from harness_actors.errors import RunNotFoundError, StoreError
from harness_actors.messages import Message, encode_json
from harness_actors.records import RunSpec, StoredRun
from harness_actors.stores.readable import ReadableJournal
from harness_actors.stores.reader import JournalReader
from harness_actors.stores.standing import FileId, out_of_place

BEGIN_ANEW = (
    "the conversation goes on where it is back; begin_conversation() begins another one in "
    "what is there now"
)
_REQUEST = ".request"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHead:
    """What stands before the conversation in every request of a program.

    Attributes:
        instructions: The system prompt; empty for none.
        tools: The agent's tools, in the Chat Completions format.
        completion: The same of the tool that the harness adds where a run ends by it.
        asked: What the instructions end with where a run ends by its answer, and that is to be a
            value; empty for nothing.
        guidance: What follows on the instructions where the agent may delegate.
        delegates: Names of those of its tools by which it does.
        below: Of each agent to which it delegates the same, by the agent's name.
    """

    instructions: str
    tools: tuple[Mapping[str, Any], ...]
    completion: Mapping[str, Any]
    asked: str = ""
    guidance: str = ""
    delegates: tuple[str, ...] = ()
    below: Mapping[str, "RequestHead"] = field(default_factory=dict)

    @property
    def schemas(self) -> dict[str, Mapping[str, Any]]:
        """The JSON schemas of the parameters of the agent's tools, by name."""
        functions = [tool.get("function") or {} for tool in self.tools]
        return {one["name"]: one.get("parameters") or {} for one in functions if "name" in one}

    def encode(self) -> bytes:
        """As the journal keeps it, beside the blob that only actors open."""
        return encode_json(self._as_plain())

    def _as_plain(self) -> dict[str, Any]:
        below = {name: head._as_plain() for name, head in self.below.items()}
        more = {"asked": self.asked, "guidance": self.guidance, "delegates": self.delegates}
        return {
            "instructions": self.instructions,
            "tools": self.tools,
            "completion": self.completion,
            **{name: value for name, value in (*more.items(), ("below", below)) if value},
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "RequestHead":
        """What `encode` wrote, or an earlier version of it."""
        below = plain.get("below") or {}
        return cls(
            instructions=plain["instructions"],
            tools=tuple(plain["tools"]),
            completion=plain["completion"],
            asked=plain.get("asked", ""),
            guidance=plain.get("guidance", ""),
            delegates=tuple(plain.get("delegates", ())),
            below={name: cls.from_plain(head) for name, head in below.items()},
        )

    def without_delegates(self) -> "RequestHead":
        """The same of an agent that stands too deep to delegate, or whose settings forbid it."""
        functions = [(tool, tool.get("function") or {}) for tool in self.tools]
        left = tuple(tool for tool, one in functions if one.get("name") not in self.delegates)
        return replace(self, tools=left, guidance="", delegates=())

    @property
    def takes_output(self) -> bool:
        """Whether a run comes to a value with the tool that it ends by."""
        function = self.completion.get("function") or {}
        return "output" in (function.get("parameters") or {}).get("properties", {})


def request_name(code: str) -> str:
    """Under which name the journal keeps the head of a program's requests."""
    return code + _REQUEST


def program_of(name: str) -> str:
    """Hash of the program that something is kept for under a name."""
    return name.removesuffix(_REQUEST)


def code_of(journal: ReadableJournal, code: str) -> Mapping[str, bytes]:
    """All that a journal keeps of a program, by name; nothing opens it."""
    found = {name: journal.load_code(name) for name in (code, request_name(code))}
    return {name: kept for name, kept in found.items() if kept is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredConversation:
    """A conversation as a run of it had it before its model, with all that came since.

    Attributes:
        conversation_id: Which.
        messages: In the Chat Completions format, oldest first, the system prompt included
            where it is on record.
        tools: What the model could call, in the same format; None where that is not on
            record, as in journals of earlier versions.
    """

    conversation_id: str
    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...] | None

    def as_openai(self) -> dict[str, Any]:
        """One line of OpenAI's files: the messages, and the tools if there were any."""
        plain: dict[str, Any] = {"messages": list(self.messages)}
        if self.tools:
            plain["tools"] = list(self.tools)
        return plain


def conversation_of(
    journal: ReadableJournal, run: StoredRun, *, reader: Mapping[str, Any] | None = None
) -> StoredConversation:
    """The conversation of a run.

    Args:
        journal: Its journal.
        run: The run.
        reader: The tool that the harness adds where long results are kept, in the Chat
            Completions format; None leaves it out.

    Raises:
        StoreError: The journal cannot be read.
    """
    head = head_of_run(journal, run.spec)
    messages = [message.body for message in run.state.log]
    tools: tuple[Mapping[str, Any], ...] | None = None
    if head is not None:
        config, tools = run.spec.config, head.tools
        if (config.artifacts is not None or run.state.plan is not None) and reader is not None:
            tools = (*tools, reader)
        if config.completion == "explicit":
            tools = (*tools, head.completion)
        asked = head.asked if config.completion == "answer" else ""
        if words := "\n\n".join(filter(None, (head.instructions, head.guidance, asked))):
            messages.insert(0, Message.system(words).body)
    return StoredConversation(
        conversation_id=run.spec.conversation_id, messages=tuple(messages), tools=tools
    )


def find_conversation(stores: Iterable[Path], run_id: str) -> StoredConversation:
    """The conversation of a run of any of these journals.

    Raises:
        RunNotFoundError: None of them has the run.
        StoreError: A journal cannot be read, and no other has it.
    """
    broken: StoreError | None = None
    paths = list(stores)
    for path in paths:
        try:
            journal = JournalReader(path)
            run = journal.load_run(run_id)
        except StoreError as error:
            broken = error
            continue
        if run is not None:
            return conversation_of(journal, run)
    raise broken or RunNotFoundError(run_id, ", ".join(map(str, paths)) or "any journal")


def head_of(journal: ReadableJournal, code: str) -> RequestHead | None:
    """What stands before the conversation in every request of a program; None where that is not
    on record."""
    kept = journal.load_code(request_name(code))
    if kept is None:
        return None
    return RequestHead.from_plain(orjson.loads(kept))


def head_of_run(journal: ReadableJournal, spec: RunSpec) -> RequestHead | None:
    """The same of one run of it, which a child of another may be."""
    head, link, settings = head_of(journal, spec.code), spec.parent, spec.config.sub_agents
    for name in () if link is None else link.agent.split("/"):
        head = None if head is None else head.below.get(name)
    depth = 0 if link is None else link.depth - bool(link.forked)
    if head is None or (settings is not None and depth < settings.max_depth):
        return head
    return head.without_delegates()


def check_continued(store: Path, known: FileId, conversation_id: str) -> None:
    """Refuse to go on with a conversation in a journal that does not have it.

    Args:
        store: The journal's file.
        known: Which file it was when the conversation was last written to. A copy that was put
            in its place has the conversation, too.
        conversation_id: The conversation.

    Raises:
        StoreError: The journal was removed, moved, or replaced by another one.
    """
    # Another file may have the inode of one that was removed.
    if FileId.of(store) is None or not JournalReader(store).has_conversation(conversation_id):
        raise out_of_place(store, known, what_now=BEGIN_ANEW)
