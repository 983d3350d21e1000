"""Counts and durations, as people read them."""


def counted(count: int, noun: str) -> str:
    """A count with its noun.

    >>> counted(1, "task"), counted(1200, "task")
    ('1 task', '1,200 tasks')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def short_count(count: int) -> str:
    """A count in few characters.

    >>> [short_count(n) for n in (950, 12_300, 4_560_000)]
    ['950', '12.3k', '4.6M']
    """
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"


def short_time(seconds: float) -> str:
    """A duration in few characters.

    >>> [short_time(s) for s in (4.2, 65, 7300)]
    ['4.2 s', '1 min 5 s', '2 h 1 min']
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def dollars(cost_usd: float, *, digits: int = 4) -> str:
    """A cost; ``-`` where it is nothing, or nobody knows what the tokens cost.

    Args:
        cost_usd: In US dollars; 0 where no price is known.
        digits: After the point.

    >>> dollars(0.5), dollars(0.0)
    ('$0.5000', '-')
    """
    return f"${cost_usd:.{digits}f}" if cost_usd else "-"


def cost_among_others(cost_usd: float, *, digits: int = 4) -> str:
    """A cost in a list of figures, where a mere ``-`` would not say what is missing.

    >>> cost_among_others(0.5, digits=2), cost_among_others(0.0)
    ('$0.50', 'cost -')
    """
    told = dollars(cost_usd, digits=digits)
    return f"cost {told}" if told == "-" else told
