"""What a turn uses and how far it is, brought into the state with each flush."""

from harness_actors.ports import Clock, ModelResponse, RunContext
from harness_actors.results import Usage
from harness_actors.state import REQUEST_TOKENS, TOOL_USAGE, TURN, USAGE, TurnProgress

NOTHING = Usage()


class TurnMeter:
    """Counts a turn's rounds and usage, and writes them beside the messages they belong to.

    Attributes:
        rounds: Model calls of this turn that were answered, across pauses and crashes.
        progressed: Whether a tool other than `work_complete` succeeded in this turn.
        used: Calls of each tool in the run so far, by name; empty where they are not counted.
    """

    def __init__(self, context: RunContext, clock: Clock, *, counts_tools: bool = False) -> None:
        self.used: dict[str, int] = {}
        if counts_tools:
            used = context.get(TOOL_USAGE)
            self.used |= used
        self._counts_tools, self._used_more = counts_tools, False
        self._progress = context.get(TURN) or TurnProgress()
        self.rounds = self._progress.rounds
        self.progressed = self._progress.progressed
        self._context = context
        self._clock = clock
        # Nobody else writes it while the turn goes on.
        self._written = context.get(USAGE)
        self._pending = NOTHING
        self._pending_calls = 0
        self._pending_tokens = 0
        self._working_since = clock.monotonic()
        self._waited_s = 0.0

    @property
    def usage(self) -> Usage:
        """What the run used so far, up to this moment."""
        return self._written + self._spent()

    @property
    def tool_calls(self) -> int:
        """Tool calls of the run so far."""
        return self._written.tool_calls + self._pending_calls

    @property
    def working_s(self) -> float:
        """Seconds of work on the run so far."""
        return self._written.working_s + self._unwritten_s()

    def answered(
        self,
        response: ModelResponse,
        *,
        answer_tokens: int,
        waited_s: float,
        spent: Usage | None = None,
    ) -> None:
        """A model call was answered.

        Args:
            response: The answer.
            spent: What models used that were asked before, in vain; None for nothing.
            answer_tokens: Tokens of its message, for models that do not report usage.
            waited_s: Seconds of it that were no work.
        """
        usage = response.usage
        self.rounds += 1
        self._waited_s += waited_s
        # Whatever a model says of itself: this was one call, and the rest is counted here.
        self._spend(
            Usage(
                model_calls=1,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cached_tokens=usage.cached_tokens,
                cost_usd=usage.cost_usd,
            )
        )
        self._spend(spent)
        if usage.input_tokens:
            # The provider has counted the whole request, which corrects what was added up.
            self._pending_tokens = usage.tokens - self._context.get(REQUEST_TOKENS)
        else:
            self._pending_tokens += answer_tokens

    def failed(self, *, waited_s: float, spent: Usage | None = None) -> None:
        """A model call was made and brought no answer."""
        self._waited_s += waited_s
        self._spend(Usage(model_calls=1))
        self._spend(spent)

    def _spend(self, spent: Usage | None) -> None:
        if spent is not None:
            self._pending = spent if self._pending is NOTHING else self._pending + spent

    def used_aside(self, usage: Usage) -> None:
        """Others than the agent's model were asked for the run; written as a change of its own,
        so that it can be told from what the model used."""
        self._context.increment(USAGE, usage)
        self._written += usage

    def called(self, name: str, *, counts: bool, progress: bool, tokens: int) -> None:
        """A call of the log got its result.

        Args:
            name: The tool.
            counts: It called one of the agent's own tools: `work_complete` is no work.
            progress: The same, and it succeeded.
            tokens: Tokens of the result.
        """
        self._pending_calls += counts
        if counts and self._counts_tools:
            self.used[name] = self.used.get(name, 0) + 1
            self._used_more = True
        self.progressed = self.progressed or progress
        self._pending_tokens += tokens

    def told(self, tokens: int) -> None:
        """The model was told something by the harness, a message of so many tokens."""
        self._pending_tokens += tokens

    def write(self) -> None:
        """Write what is not in the state yet."""
        now = self._clock.monotonic()
        spent = self._spent()
        self._context.increment(USAGE, spent)
        self._context.increment(REQUEST_TOKENS, self._pending_tokens)
        self._written += spent
        self._pending, self._pending_calls, self._pending_tokens = NOTHING, 0, 0
        self._working_since, self._waited_s = now, 0.0
        if self._used_more:
            self._context.set(TOOL_USAGE, dict(self.used))
            self._used_more = False
        known = self._progress
        # A fenced round is written twice, and is still the same round.
        if known.rounds != self.rounds or known.progressed != self.progressed:
            self._progress = TurnProgress(rounds=self.rounds, progressed=self.progressed)
            self._context.set(TURN, self._progress)

    def _spent(self) -> Usage:
        """What is not in the state yet."""
        pending = self._pending
        return Usage(
            model_calls=pending.model_calls,
            tool_calls=pending.tool_calls + self._pending_calls,
            input_tokens=pending.input_tokens,
            output_tokens=pending.output_tokens,
            cached_tokens=pending.cached_tokens,
            cost_usd=pending.cost_usd,
            working_s=pending.working_s + self._unwritten_s(),
        )

    def _unwritten_s(self) -> float:
        return max(0.0, self._clock.monotonic() - self._working_since - self._waited_s)
