"""What a user may set of a batch."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from harness_actors.errors import ConfigError

CONCURRENCY = 10

OnChange = Literal["refuse", "accept", "retry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    """The settings of a batch.

    Attributes:
        concurrency: Runs in flight at once, at least 1.
        retry_on_error: Further attempts for a task whose run failed, each from a fresh
            workspace.
        retry_failed: Tasks that an earlier command ended without success get another
            attempt; otherwise every ending is final.
        fail_on_error: Failed tasks after which nothing new starts: below 1 a share of
            all tasks, from 1 a number; None never stops.
        budget_usd: Cost of the whole batch, earlier commands included, at which nothing
            new starts, and each run in flight ends `limit(budget)` after its round; None
            for no bound. With a larger one, tasks that ended so are begun again.
        epochs: How often each task is run; the further runs are named ``id@2``, ….
        workspace: A folder to begin with for tasks that name none; None for an empty one.
        on_change: What becomes of results and unfinished runs that were made with another
            set-up (agent, model, settings of runs): ``"refuse"`` runs nothing;
            ``"accept"`` keeps them, and lets the runs go on with the agent that they have;
            ``"retry"`` gives their tasks another attempt.

    Raises:
        ConfigError: A value is out of range.
    """

    concurrency: int = CONCURRENCY
    retry_on_error: int = 0
    retry_failed: bool = False
    fail_on_error: float | None = None
    budget_usd: float | None = None
    epochs: int = 1
    workspace: str | None = None
    on_change: OnChange = "refuse"

    def as_mapping(self) -> dict[str, Any]:
        """The settings as plain values, for `summary.json`."""
        return asdict(self)

    def __post_init__(self) -> None:
        if self.on_change not in get_args(OnChange):
            known = ", ".join(get_args(OnChange))
            raise ConfigError("on_change", f"must be one of {known}, not {self.on_change!r}")
        _check_at_least("concurrency", self.concurrency, 1)
        _check_at_least("epochs", self.epochs, 1)
        _check_at_least("retry_on_error", self.retry_on_error, 0)
        for name in ("fail_on_error", "budget_usd"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(name, f"must be a number above 0, not {value!r}")


def _check_at_least(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(name, f"must be a whole number of at least {least}, not {value!r}")
