"""The hooks of an agent: functions that are asked, or told, at fixed points of a run."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from harness_actors.errors import ConfigError
from harness_actors.pickling import unpickled_with_defaults

HookKind = Literal[
    "session_start",
    "session_end",
    "pre_model",
    "post_model",
    "pre_tool",
    "post_tool",
    "agent_stop",
    "input_guard",
    "output_guard",
    "stall",
]
KINDS: tuple[HookKind, ...] = get_args(HookKind)
HOOK_TIMEOUT_S = 10.0
LATE_S = 5.0
"""How long `post_tool` hooks may work on when the time of their run is over, all of them together:
no result may be on record that they had no time to look at."""

OnError = Literal["deny", "allow"]


@dataclass(frozen=True, slots=True)
class Hook:
    """One function, with what becomes of it where it fails.

    A function that is not ``async`` runs in a thread. It must hold nothing in memory: the next
    call may come in another process.

    Attributes:
        function: Called with the event of its kind; what it may return is said at the kind.
        timeout_s: How long it may take, in seconds, above 0.
        on_error: What follows where it raises, hangs or returns what its kind does not take;
            None is ``"deny"`` of a `pre_tool` hook and ``"allow"`` of all others. To deny is of
            `post_tool` to withhold the result; of those that only observe there is nothing to
            deny.
    """

    function: Callable[[Any], Any]
    timeout_s: float = HOOK_TIMEOUT_S
    on_error: OnError | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ConfigError("hooks", f"a hook must be a function, not {self.function!r}")
        name = self.name
        given: object = self.timeout_s
        is_number = isinstance(given, int | float) and not isinstance(given, bool)
        if not is_number or not math.isfinite(self.timeout_s) or self.timeout_s <= 0:
            problem = f"timeout_s of {name} must be a number above 0, not {self.timeout_s!r}"
            raise ConfigError("hooks", problem)
        if self.on_error not in (None, *get_args(OnError)):
            problem = f"on_error of {name} must be 'deny' or 'allow', not {self.on_error!r}"
            raise ConfigError("hooks", problem)
        if fault := signature_fault(self.function, ("event",)):
            raise ConfigError("hooks", fault)

    @property
    def name(self) -> str:
        """For people: that of its function."""
        return hook_name(self.function)

    def denies_on_error(self, kind: HookKind) -> bool:
        """Whether it denies where it fails."""
        return (self.on_error or ("deny" if kind == "pre_tool" else "allow")) == "deny"


@unpickled_with_defaults
@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The hooks of an agent, by kind, each in the order in which they are asked.

    Each is given as a function, as a `Hook`, or as several of these.

    Attributes:
        session_start: Told `SessionStart` before the first request of a run.
        session_end: Told `SessionEnd` when the end of a run is on disk.
        pre_model: Told `BeforeModel`.
        post_model: Told `AfterModel`.
        pre_tool: Asked with `BeforeTool`; may return `Allow`, `Deny`, `Change` or `Ask`.
        post_tool: Told `AfterTool` of each call, whatever became of it; may return `Replace`.
        agent_stop: Asked with `AgentStop`; may return `Allow` or `Deny`.
        input_guard: Asked with `InputText`; may return `Allow`, `Deny` or `EndRun`.
        output_guard: Asked with `OutputText`; may return `Allow`, `Deny` or `EndRun`.
        stall: Asked with `AfterRound` whether a round came to something; may return `Novel` or
            `Circling`.

    Raises:
        ConfigError: Something else is given.
    """

    session_start: Any = ()
    session_end: Any = ()
    pre_model: Any = ()
    post_model: Any = ()
    pre_tool: Any = ()
    post_tool: Any = ()
    agent_stop: Any = ()
    input_guard: Any = ()
    output_guard: Any = ()
    stall: Any = ()

    def __post_init__(self) -> None:
        for kind in KINDS:
            object.__setattr__(self, kind, _as_hooks(kind, getattr(self, kind)))

    def __bool__(self) -> bool:
        return any(getattr(self, kind) for kind in KINDS)

    def of(self, kind: HookKind) -> tuple[Hook, ...]:
        """Those of one kind, in their order."""
        found: tuple[Hook, ...] = getattr(self, kind)
        return found

    def __add__(self, others: "Hooks") -> "Hooks":
        """Both: of each kind first these, then the others."""
        return Hooks(**{kind: self.of(kind) + others.of(kind) for kind in KINDS})

    @classmethod
    def given(cls, value: object) -> "Hooks":
        """Hooks as users give them.

        Args:
            value: None; `Hooks`; functions by kind; an object whose methods are named by kinds;
                or several of these.

        Raises:
            ConfigError: It is something else.
        """
        match value:
            case None:
                return cls()
            case Hooks():
                return value
            case Mapping():
                if unknown := [name for name in value if name not in KINDS]:
                    problem = f"there is no hook {unknown[0]!r}; there are {', '.join(KINDS)}"
                    raise ConfigError("hooks", problem)
                return cls(**value)
            case list() | tuple():
                together = cls()
                for part in value:
                    together += cls.given(part)
                return together
        methods = {kind: getattr(value, kind, None) for kind in KINDS}
        found = {kind: method for kind, method in methods.items() if callable(method)}
        if not found:
            problem = f"must be Hooks(...), or have methods such as pre_tool; {value!r} has none"
            raise ConfigError("hooks", problem)
        return cls(**found)


def hook_name(function: object) -> str:
    """What a hook is called: the name of its function, or of its class."""
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return str(name)


def signature_fault(function: Callable[..., Any], given: Sequence[str]) -> str | None:
    """What is wrong with a function that is called with so many arguments.

    Args:
        function: It.
        given: Names of the arguments, by place.

    Returns:
        None where it can be called so, and where it does not say what it takes.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*given)
    except TypeError:
        wanted = ", ".join(given)
        return f"{hook_name(function)} is called with ({wanted}), and takes {signature}"
    return None


def _as_hooks(kind: str, given: object) -> tuple[Hook, ...]:
    if given is None:
        return ()
    several: Sequence[Any] = given if isinstance(given, list | tuple) else (given,)
    for one in several:
        if not isinstance(one, Hook) and not callable(one):
            raise ConfigError(f"hooks.{kind}", f"must be functions, not {one!r}")
    return tuple(one if isinstance(one, Hook) else Hook(one) for one in several)
