"""What the harness expects of tools."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from harness_actors.messages import ToolCall, encode_json
from harness_actors.pickling import unpickled_with_defaults
from harness_actors.plan import Durability
from harness_actors.ports.tool_context import ToolContext

Effect = Literal["read_only", "local_write", "network", "destructive"]


@unpickled_with_defaults
@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """What the model and the harness know of a tool.

    Attributes:
        name: Unique in an agent; letters, digits, ``_`` and ``-``.
        description: For the model.
        parameters: JSON schema of the arguments, an object.
        effect: What a call may change. `read_only` implies `idempotent`.
        idempotent: A call may run twice with the same outcome; only such calls are
            run again after a crash. Whatever is not declared is not idempotent.
        resource_keys: Templates of what a call touches, such as ``"crm:{customer_id}"``.
        timeout_s: Longest time of one call, in seconds; None leaves it to the tool.
        volatile: What an idempotent call gives may change though the run writes nothing, as the
            time of day does. Else a call that succeeded is not made again with the same
            arguments, until something was called that may write.
        needs: Capabilities that an agent must have to be offered it, such as ``"shell"``.
        polled: It is meant to be asked again and again, as how a job is, so equal answers are no
            circle. None means: if it is volatile.
        strict: Providers that can are to hold their models to `parameters`.
        durability: What its results are worth once they are old, and the window of the model is
            full; None leaves it to what else is declared.
        keep: Fields of its arguments and results that stay in sight then.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    effect: Effect = "local_write"
    idempotent: bool = False
    resource_keys: tuple[str, ...] = ()
    timeout_s: float | None = None
    volatile: bool = False
    needs: tuple[str, ...] = ()
    polled: bool | None = None
    strict: bool = False
    durability: Durability | None = None
    keep: tuple[str, ...] = ()

    def as_wire(self) -> dict[str, Any]:
        """The tool in the Chat Completions format."""
        function: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }
        if self.strict:
            function["strict"] = True
        return {"type": "function", "function": function}

    def held_to(self, parameters: Mapping[str, Any]) -> "ToolSpec":
        """The same for a provider that holds its model to the schema.

        Args:
            parameters: The schema, in the form that strict mode takes.
        """
        return replace(self, parameters=parameters, strict=True)


class ToolOutput(str):
    """The text of a result, with what belongs to it besides; to all who know nothing of that, a
    text.

    Args:
        text: For the model, and for people.
        images: Images for the model, each as a ``data:`` URL.
        image_tokens: What these add to a request.
        tries: How often it was tried.
    """

    def __new__(
        cls, text: str, *, images: tuple[str, ...] = (), image_tokens: int = 0, tries: int = 1
    ) -> "ToolOutput":
        self = super().__new__(cls, text)
        self.images, self.image_tokens, self.tries = images, image_tokens, tries
        return self

    images: tuple[str, ...]
    image_tokens: int
    tries: int

    def with_text(self, text: str) -> "ToolOutput":
        """The same with another text."""
        return ToolOutput(
            text, images=self.images, image_tokens=self.image_tokens, tries=self.tries
        )


class Tool(Protocol):
    """Something a model can call."""

    @property
    def spec(self) -> ToolSpec: ...

    async def run(self, arguments: str, context: ToolContext) -> str:
        """Do one call.

        Args:
            arguments: What the model wrote; checked here against the schema.
            context: The call that is served.

        Returns:
            The result for the model; a `LargeResult` where it is in a file, and a `ToolOutput`
            where more than a text belongs to it.

        Raises:
            ToolError: The call failed in a way the model can act on. Any other
                exception is answered to the model with its type and text.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """What a call asks the user of its run.

    Attributes:
        text: The question.
        options: The answers that may be given; empty where any may.
        why: What the answer is needed for; empty where that is not said.
    """

    text: str
    options: tuple[str, ...] = ()
    why: str = ""


class AskingTool(ABC):
    """A tool whose calls are not made: the user of the run answers them, and it waits for that.

    To be derived from, so that no other tool is taken for one.
    """

    @property
    @abstractmethod
    def spec(self) -> ToolSpec: ...

    @abstractmethod
    def question(self, call: ToolCall) -> AskedQuestion:
        """What a call asks.

        Args:
            call: The call; its arguments are what the model wrote, and are checked here.

        Raises:
            ToolError: Nobody can be asked that; said to the model.
        """

    async def run(self, arguments: str, context: ToolContext) -> str:
        """Never called where the tool is offered to a model by an agent turn of ours."""
        raise NotImplementedError(f"{self.spec.name} is answered by the user of a run")


@dataclass(frozen=True, slots=True)
class ToolSet:
    """The tools of one agent, their wire format encoded once.

    Attributes:
        specs: The tools.
        encoded: JSON array of the tools in the Chat Completions format.
    """

    specs: tuple[ToolSpec, ...]
    encoded: bytes

    @classmethod
    def of(cls, specs: Iterable[ToolSpec]) -> "ToolSet":
        ordered = tuple(specs)
        return cls(ordered, encode_json([spec.as_wire() for spec in ordered]))
