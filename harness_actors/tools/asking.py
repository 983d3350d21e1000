"""`ask_user`: how a model asks the user of its run, and waits for the answer."""

from functools import cached_property

from harness_actors.errors import ToolError
from harness_actors.messages import ToolCall
from harness_actors.ports import AskedQuestion, AskingTool, ToolSpec
from harness_actors.tools.signature import Signature, read_signature

MOST_OPTIONS = 20
MOST_QUESTION_CHARS = 10_000


async def _asked(question: str, options: list[str] | None = None, why: str | None = None) -> None:
    """Ask the user a question, and wait for the answer, which may take days.

    Ask only for what you cannot find out yourself. Several questions are best asked in one message.

    Args:
        question: The question, in full: the user may not see the rest of the conversation.
        options: The answers to choose from, where only these make sense.
        why: What the answer is needed for, in a sentence.
    """


class AskUser(AskingTool):
    """The tool `ask_user`. Its calls are answered by the user of the run, and not made."""

    @cached_property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name="ask_user",
            description=self._signature.description,
            parameters=self._signature.arguments.schema,
            effect="read_only",
            idempotent=True,
        )

    def question(self, call: ToolCall) -> AskedQuestion:
        given = self._signature.arguments.parse(call.arguments)
        text = given["question"].strip()
        options = tuple(option.strip() for option in given.get("options") or ())
        if not text:
            raise ToolError("question is empty; say what you want to know")
        if len(text) > MOST_QUESTION_CHARS:
            raise ToolError(f"question has more than {MOST_QUESTION_CHARS} characters; be brief")
        if len(options) > MOST_OPTIONS:
            raise ToolError(f"there are more than {MOST_OPTIONS} options; ask an open question")
        if not all(options) or len(set(options)) != len(options):
            raise ToolError("options must be texts that differ, none of them empty")
        return AskedQuestion(text=text, options=options, why=(given.get("why") or "").strip())

    @cached_property
    def _signature(self) -> Signature:
        return read_signature(_asked, "ask_user", None)

    def __reduce__(self) -> str:
        return "ask_user"


ask_user = AskUser()
