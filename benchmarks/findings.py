"""What benchmarks answer: figures, and whether they are within their bars."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from benchmarks.measure import Spread
from benchmarks.speed import slowness


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What came out for one question.

    Attributes:
        question: In a few words.
        figure: Its repetitions; None where nothing could be measured.
        unit: Of the figure; ``×`` where it is a ratio.
        at_most: The bar, where less is better.
        at_least: The bar, where more is better.
        computing: It is a time that is spent computing, so its bar is stretched where this
            machine is slower than the one of the bars; False of what is compared within the same
            run, is no time, or is mostly waiting.
    """

    question: str
    figure: Spread | None
    unit: str = "×"
    at_most: float | None = None
    at_least: float | None = None
    computing: bool = False

    @classmethod
    def of(
        cls,
        question: str,
        values: Iterable[float | None],
        *,
        unit: str = "×",
        at_most: float | None = None,
        at_least: float | None = None,
        computing: bool = False,
    ) -> Self:
        """Of the figures of all repetitions; one that could not be measured leaves none."""
        found = list(values)
        known = [value for value in found if value is not None]
        figure = Spread.of(known) if known and len(known) == len(found) else None
        return cls(
            question=question,
            figure=figure,
            unit=unit,
            at_most=at_most,
            at_least=at_least,
            computing=computing,
        )

    @property
    def stretch(self) -> float:
        """By how much the bar is stretched; 1.0 where it stands as it is."""
        return slowness() if self.computing and self.at_most is not None else 1.0

    @property
    def met(self) -> bool | None:
        """Whether the median is within the bar; None where there is no bar."""
        if self.at_most is None and self.at_least is None:
            return None
        if self.figure is None:
            return False
        median = self.figure.median
        return (self.at_most is None or median <= self.at_most * self.stretch) and (
            self.at_least is None or median >= self.at_least
        )

    def as_plain(self) -> dict[str, Any]:
        """As the JSON line of a benchmark has it under ``findings``."""
        return {
            "question": self.question,
            "unit": self.unit,
            **(self.figure.rounded() if self.figure is not None else {"median": None}),
            "at_most": self.at_most,
            "at_least": self.at_least,
            **({} if self.stretch == 1.0 else {"slowness": self.stretch}),
            "met": self.met,
        }


def plain(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """All of them as JSON."""
    return [finding.as_plain() for finding in findings]


HEADS = ("question", "median (least–most)", "bar", "met")


def row(found: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """A line of the table, from a finding as JSON; see `Finding.as_plain`."""
    median = found.get("median")
    figure = "–" if median is None else f"{_shown(median)} {found['unit']}"
    if median is not None and found["least"] != found["most"]:
        figure += f" ({_shown(found['least'])}–{_shown(found['most'])})"
    bar = ""
    if found.get("at_most") is not None:
        bar = f"≤ {_shown(found['at_most'])}"
        if "slowness" in found:
            bar += f" · {_shown(found['slowness'])}"
    elif found.get("at_least") is not None:
        bar = f"≥ {_shown(found['at_least'])}"
    met = {True: "yes", False: "NO", None: ""}[found.get("met")]
    return found["question"], figure, bar, met


def _shown(value: float) -> str:
    """Three digits that count; whole numbers as they are.

    >>> _shown(0.06789), _shown(4.2), _shown(1234.5), _shown(2000)
    ('0.0679', '4.2', '1234', '2000')
    """
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def ratios(these: Iterable[float], those: Iterable[float], digits: int = 4) -> list[float | None]:
    """Each figure in units of its neighbour, which was measured in the same turn.

    None where the neighbour is less than the kernel's 10 ms ticks show.
    """
    pairs = zip(these, those, strict=True)
    return [round(this / that, digits) if that > 0 else None for this, that in pairs]
