"""What a user may set: one frozen object per subsystem, checked once at the edge.

`None` means that a subsystem is off. A setting of a room that is not built yet is
refused by name, so that nobody believes it has an effect.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Self

from harness_actors.errors import ConfigError
from harness_actors.pickling import pickled_by_position
from harness_actors.setting_checks import (
    check_amount,
    check_choice,
    check_count,
    check_flag,
    names,
    sentences,
)

Completion = Literal["explicit", "answer"]
StopPolicy = Literal["interactive", "strict_automation"]
OnQuestion = Literal["wait", "deny", "fail"]
ChildWorkspace = Literal["shared", "read_only", "copy"]
"""Where a child works: where its parent does, there without writing, or in a copy of it."""

LEAVE_IT_OUT = "this part of the harness is not built yet; leave it out"

CALLS_PER_MESSAGE = 256
PARALLEL_CALLS = 64
LEAST_INLINE_CHARS, MOST_INLINE_CHARS = 2_000, 100_000
MOST_STALLED_ROUNDS = 1_000


MOST_DEPTH = 8
"""Of a tree of runs that delegate."""
STRATEGIES = ("clear", "externalize", "drop")
"""The shipped ways to make room without a summary, the mildest first."""
USUAL_WINDOW = 128_000
"""Of models whose names say nothing, in tokens."""


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one run. `None` means unbounded; what is spent is counted per run."""

    model_calls: int = 1000
    tool_calls: int | None = None
    tokens: int | None = None
    """Input and output tokens of all model calls, as the provider counts them."""
    cost_usd: float | None = None
    time_s: float | None = None
    """Wall time since the run was first started, resumes included."""
    calls_per_message: int = CALLS_PER_MESSAGE
    """Tool calls that one answer of the model may ask for; one with more fails the run."""
    working_s: float | None = None
    """Wall time less the waits on rate limits and the time that nobody worked on the run. That
    of executors of your own is counted for them."""

    def __post_init__(self) -> None:
        for name in ("model_calls", "calls_per_message"):
            check_count(f"limits.{name}", getattr(self, name))
        for name in ("tool_calls", "tokens"):
            check_count(f"limits.{name}", getattr(self, name), optional=True)
        for name in ("cost_usd", "time_s", "working_s"):
            check_amount(f"limits.{name}", getattr(self, name))


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLimits:
    """What one turn may use; when it has, the next one begins. `None` means unbounded.

    It is looked at before each model call but the first of a turn, and no model call is cut.
    """

    time_s: float | None = None
    """Working time; a tool call in progress is stopped when it is over."""
    model_calls: int | None = None
    tool_calls: int | None = None
    """Calls beyond it are not made, and the model is told so."""
    tokens: int | None = None
    """Input and output tokens of its model calls."""

    def __post_init__(self) -> None:
        for name in ("model_calls", "tool_calls", "tokens"):
            check_count(f"turn_limits.{name}", getattr(self, name), optional=True)
        check_amount("turn_limits.time_s", self.time_s)


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuationConfig:
    """What happens when a model stops without saying that it is done."""

    max_prompts: int = 5
    """Nudges in a row without progress before the stop policy decides, at least 1."""

    def __post_init__(self) -> None:
        check_count("continuation.max_prompts", self.max_prompts)


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class StallConfig:
    """When a run that goes on counts as one that comes to nothing, in rounds."""

    threshold: int = 3
    """Equal rounds in a row; or how often two or three rounds come by turns. 2 to 1,000."""
    no_news: int = 5
    """Rounds in a row of which nothing is new, 2 to 1,000."""
    failures: int = 5
    """Rounds in a row in which all calls fail, and are of one tool, 2 to 1,000."""
    grace: int = 2
    """Rounds that may go on in the same way once the model was told; the last of them ends the
    run. 1 to 1,000."""

    def __post_init__(self) -> None:
        for name in ("threshold", "no_news", "failures", "grace"):
            check_count(f"stall.{name}", getattr(self, name))
            least = 1 if name == "grace" else 2
            if not least <= getattr(self, name) <= MOST_STALLED_ROUNDS:
                problem = f"must be {least} to {MOST_STALLED_ROUNDS} rounds"
                raise ConfigError(f"stall.{name}", f"{problem}, not {getattr(self, name)!r}")


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactsConfig:
    """Results of tools that are too long for the conversation: kept whole, in files."""

    inline_chars: int = 12_000
    """Longest result that stands in the conversation itself, in characters: 2,000 to 100,000."""
    cap_bytes: int = 256 << 20
    """What the artifacts of one conversation may take on the disk together, at least 1."""

    def __post_init__(self) -> None:
        check_count("artifacts.inline_chars", self.inline_chars)
        if not LEAST_INLINE_CHARS <= self.inline_chars <= MOST_INLINE_CHARS:
            most = f"{LEAST_INLINE_CHARS:,} to {MOST_INLINE_CHARS:,}"
            problem = f"must be {most} characters, not {self.inline_chars!r}"
            raise ConfigError("artifacts.inline_chars", problem)
        check_count("artifacts.cap_bytes", self.cap_bytes)


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionConfig:
    """When and how far a model's window is emptied, in shares of it, above 0 and at most 1."""

    soft: float = 0.80
    """From here on pressure is reported."""
    blocking: float = 0.95
    """A request of this size is not sent before room was made."""
    low_water: float = 0.45
    """How full the window may be then. The lower it is, the seldomer the beginning of requests
    changes, which providers keep in their caches."""
    summaries: bool = True
    """Whether what is no longer shown is summarized, from `soft` on, beside the run."""
    facts: tuple[str, ...] = ()
    """Sentences that every summary has, word for word."""
    strategies: tuple[str, ...] | None = None
    """Ways to make room without a summary, by name: of `STRATEGIES` and of the agent's own. None
    for all of them."""

    def __post_init__(self) -> None:
        check_flag("compaction.summaries", self.summaries)
        if self.strategies is not None:
            given = names("compaction.strategies", self.strategies)
            object.__setattr__(self, "strategies", given)
        object.__setattr__(self, "facts", sentences("compaction.facts", self.facts))
        for name in ("soft", "blocking", "low_water"):
            share = getattr(self, name)
            is_number = isinstance(share, int | float) and not isinstance(share, bool)
            if not is_number or not 0 < share <= 1:
                problem = f"must be a share of the window, above 0 and at most 1, not {share!r}"
                raise ConfigError(f"compaction.{name}", problem)
        if not self.low_water < self.soft <= self.blocking:
            problem = (
                f"must be below soft ({self.soft}), which must not be above blocking "
                f"({self.blocking}), and is {self.low_water}"
            )
            raise ConfigError("compaction.low_water", problem)

    @property
    def asks_own_strategies(self) -> bool:
        """Whether strategies of the agent's own are among those that are named."""
        return not set(self.strategies or ()) <= set(STRATEGIES)


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgentConfig:
    """How far a run may delegate, where its agent has agents to delegate to."""

    max_depth: int = 1
    """How many runs may stand above another one; 0 lets none be begun, 8 is most."""
    max_parallel: int = 64
    """Children of one run that are served at once, at least 1; the others are queued."""

    def __post_init__(self) -> None:
        depth: object = self.max_depth
        if isinstance(depth, bool) or not isinstance(depth, int) or not 0 <= depth <= MOST_DEPTH:
            problem = f"must be a whole number from 0 to {MOST_DEPTH}, not {depth!r}"
            raise ConfigError("sub_agents.max_depth", problem)
        check_count("sub_agents.max_parallel", self.max_parallel)


PARTS: Mapping[str, type] = {
    "limits": Limits,
    "turn_limits": TurnLimits,
    "continuation": ContinuationConfig,
    "artifacts": ArtifactsConfig,
    "stall": StallConfig,
    "compaction": CompactionConfig,
    "sub_agents": SubAgentConfig,
}
"""The settings that have fields of their own; only `limits` is never None."""
LEFT_OUT: Mapping[str, Any] = {
    "on_question": "wait",
    "max_parallel_calls": PARALLEL_CALLS,
    **dict.fromkeys(("turn_limits", "artifacts", "contract")),
    "sub_agents": asdict(SubAgentConfig()),
}
"""Settings that are not stored where they have these values."""


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessConfig:
    """The settings of a run.

    Attributes:
        max_turns: Turns after which a run ends `limit(max_turns)`, at least 1.
        max_rounds_per_turn: Model calls in one turn, at least 1.
        max_input_tokens: How large a request may be, in tokens: the window of the model less what
            its answer needs. None is that of the model, where its name is known, or else 128,000.
        completion: ``"explicit"``: the run is over when `work_complete` succeeds;
            ``"answer"``: when the model answers without calling a tool.
        stop_policy: What follows when the nudges are spent: ``"interactive"`` takes
            the answer as unverified, ``"strict_automation"`` ends the run as stalled.
        continuation: Nudges; None asks for none and leaves it to the stop policy.
        limits: Bounds of the run.
        on_question: What follows when the agent asks its user: ``"wait"`` for the answer;
            ``"deny"`` tells the model that nobody is there, and goes on; ``"fail"`` ends the run.
        max_parallel_calls: Calls of one message that run at once, at least 1: only such as read
            and do not touch the same. With 1 they run one after the other.
        turn_limits: What one turn may use; None for no bound but `max_rounds_per_turn`.
        contract: What the run must have come to before it is over, a `TaskContract`; it is kept
            as plain values. None leaves that to the model and the hooks.
        artifacts: How long results of tools are kept, and the tool `read_artifact` by which
            the model reads on; None leaves out the middle of the very long ones.
        stall: When a run that only repeats itself is told so, and then ended; None for never.
        compaction: How a conversation is kept within `max_input_tokens`; None lets it grow, until
            its provider refuses it.
        sub_agents: How far its agent may delegate, if it has agents to delegate to; None lets it
            do everything itself.

    Raises:
        ConfigError: A value is out of range, or its room is not built yet.
    """

    max_turns: int = 50
    max_rounds_per_turn: int = 40
    max_input_tokens: int | None = None
    completion: Completion = "explicit"
    stop_policy: StopPolicy = "interactive"
    continuation: ContinuationConfig | None = field(default_factory=ContinuationConfig)
    limits: Limits = field(default_factory=Limits)
    on_question: OnQuestion = "wait"
    max_parallel_calls: int = PARALLEL_CALLS
    turn_limits: TurnLimits | None = None
    artifacts: ArtifactsConfig | None = None
    stall: StallConfig | None = field(default_factory=StallConfig)
    work_items: None = None
    contract: Mapping[str, Any] | None = None
    compaction: CompactionConfig | None = field(default_factory=CompactionConfig)
    sub_agents: SubAgentConfig | None = field(default_factory=SubAgentConfig)
    jit: None = None
    guidance: None = None
    delivery: None = None

    def __post_init__(self) -> None:
        check_count("max_turns", self.max_turns)
        check_count("max_rounds_per_turn", self.max_rounds_per_turn)
        check_count("max_input_tokens", self.max_input_tokens, optional=True)
        check_count("max_parallel_calls", self.max_parallel_calls)
        check_choice("completion", self.completion, ("explicit", "answer"))
        check_choice("stop_policy", self.stop_policy, ("interactive", "strict_automation"))
        check_choice("on_question", self.on_question, ("wait", "deny", "fail"))
        for name, part in PARTS.items():
            if name == "limits" or getattr(self, name) is not None:
                _check_part(name, getattr(self, name), part)
        if self.contract is not None:
            object.__setattr__(self, "contract", _plain_contract(self.contract))
        for name in NOT_BUILT:
            if getattr(self, name) is not None:
                raise ConfigError(name, LEAVE_IT_OUT)

    @property
    def window_tokens(self) -> int:
        """How large a request may be, in tokens."""
        return USUAL_WINDOW if self.max_input_tokens is None else self.max_input_tokens

    @classmethod
    def from_mapping(cls, settings: Mapping[str, Any]) -> Self:
        """Settings as a configuration file or keyword arguments give them.

        Args:
            settings: Field names with their values; `limits`, `turn_limits`, `continuation`,
                `artifacts`, `stall`, `compaction` and `sub_agents` may be mappings of their own
                fields or the objects.

        Raises:
            ConfigError: A name is unknown or a value is out of range.
        """
        given = dict(settings)
        _check_names("", given, cls)
        for name, part in PARTS.items():
            if isinstance(given.get(name), Mapping):
                _check_names(f"{name}.", given[name], part)
                given[name] = part(**given[name])
        return cls(**given)

    @classmethod
    def from_stored(cls, plain: Mapping[str, Any]) -> Self:
        """The settings that `as_mapping` wrote, maybe of a version that knew fewer of them."""
        return cls.from_mapping({"stall": None, "compaction": None, **plain})

    def as_mapping(self) -> dict[str, Any]:
        """The settings as plain values, for the journal; `from_stored` reads them back."""
        plain = {name: value for name, value in asdict(self).items() if name not in NOT_BUILT}
        if self.limits.calls_per_message == CALLS_PER_MESSAGE:
            # Left out, so that set-ups from before there was such a bound are the same.
            del plain["limits"]["calls_per_message"]
        for name, usual in LEFT_OUT.items():
            if plain[name] == usual:
                del plain[name]  # the same of runs from before there was such a setting
        for name, part in (("stall", StallConfig()), ("compaction", CompactionConfig())):
            if plain[name] is None:
                del plain[name]
            else:
                # Few bytes, but some: runs from before there were such rules have none of them.
                usual = asdict(part)
                plain[name] = {
                    field: value for field, value in plain[name].items() if value != usual[field]
                }
        return plain


NOT_BUILT = tuple(setting.name for setting in fields(HarnessConfig) if setting.type is None)
"""Settings of rooms that are not built yet: they take nothing but None."""


def _check_names(prefix: str, given: Mapping[str, Any], owner: type) -> None:
    known = [f.name for f in fields(owner)]
    for name in given:
        if name not in known:
            built = ", ".join(one for one in known if one not in NOT_BUILT)
            raise ConfigError(f"{prefix}{name}", f"no such setting; there are {built}")


def _plain_contract(given: object) -> Mapping[str, Any]:
    # What is in it is for the room `contracts/` to say, which stands above this one.
    plain = given.as_plain() if hasattr(given, "as_plain") else given
    if not isinstance(plain, Mapping):
        raise ConfigError("contract", f"must be None or TaskContract(...), not {given!r:.80}")
    return dict(plain)


def _check_part(name: str, value: object, part: type) -> None:
    if not isinstance(value, part):
        may_be_none = "" if name == "limits" else "None or "
        raise ConfigError(name, f"must be {may_be_none}{part.__name__}(...), not {value!r}")
