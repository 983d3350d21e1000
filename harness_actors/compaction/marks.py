"""What the words of a message mark: facts, what is open or done, and plans."""

import re
from collections.abc import Iterator, Sequence

from harness_actors.compaction.choosing import any_of, has_any, words_of
from harness_actors.compaction.sentences import lines_of, prose_of, unmarked
from harness_actors.plan import OpenItem
from harness_actors.plan.summary import Priority

ENTRY_CHARS = 300
"""What is longer is nothing that somebody wants to be remembered as it is."""
_CONFIGURED = frozenset(("", "yaml", "yml", "toml", "ini", "env", "conf", "cfg", "properties"))
"""Languages of code in which lines of settings are facts."""

_FACT = re.compile(
    r"^(?:please )?(?:note|nb|n\.b\.|remember|keep in mind|be aware|fyi|for the record|heads[- ]up|"
    r"important|caution|warning|constraint|requirement|fact|reminder)\b|\b"
    + any_of(r"""
(?:note|remember|keep in mind|be aware|bear in mind) (?:that|to)\b|important(?:ly)?\b
(?:must|mustn't|always|never|required to|not allowed to|under no circumstances)\b
(?:is|are) (?:located|stored|kept|hosted|deployed|installed|defined|found) (?:at|in|on|under)\b
(?:is|are) (?:available|reachable) (?:at|in|on|under)\b|(?:lives?|listens|runs) (?:at|in|on|under)\b
(?:port|url|endpoint|host|hostname|version|deadline|budget|limit|branch) (?:is|are|was|=) \S
(?:timezone|database|address|path|region|bucket|email|name|id|key|username) (?:is|are|was|=) \S
""")
)
_FACT_WORDS = words_of("""
note nb n remember keep aware fyi record heads important importantly caution warning constraint
requirement fact reminder mind must mustn't always never required allowed circumstances located
stored kept hosted deployed installed defined found available reachable live lives listens runs
port url endpoint host hostname version deadline budget limit timezone branch database address
path region bucket email name id key username
""")
_OWN_WORK = re.compile(
    r"\b(?:i|we|let's)(?:'ll|'d|'ve)? (?:\w+ ){0,2}(?:must|always|never|note|remember)\b"
    r"|\b(?:will|won't|would) (?:always|never)\b",
    re.I,
)
_SETTING = re.compile(
    r"^(?!https?:)[`\"']?([A-Za-z_][\w.-]{0,40}(?: [\w.-]{1,20}){0,2})[`\"']? ?(?::|=) ?(?=\S)"
    r"(?:\S{1,200}(?: \S{1,40}){0,5})$"
)
_NO_SETTING = re.compile(
    r"^(?:decision|decided|plan|todo|fixme|next|step|then|first|so|result|output|error|note|"
    r"remaining|done|pending|open|summary|task|question|answer|approach|here|now|okay|ok|why|reason|because|"
    r"user|me|line|wait|response|assistant|system|part|action|if|success|fail)\b",
    re.I,
)
_BOX = re.compile(r"^\s{0,40}(?:[-*+]|\d{1,3}[.)])\s{1,4}\[([ xX])\]\s{1,4}(\S.*)$")
_TICK = re.compile(r"^\s{0,40}(?:[-*+]\s{1,4})?(?:✅|✓|✔️?|☑️?|\[[xX]\])\s{0,4}(?:done:? )?(\S.*)$")
_DONE = re.compile(r"^(?:done|completed|finished|closed|resolved)\s?[:—–]\s?(\S.*)$", re.I)
_LEFT = any_of(r"""
what's left|what is left|left to do|still open|unresolved|not (?:yet )?done(?: yet)?|blocked
remaining(?: (?:work|tasks?|steps?|items?))?|outstanding|pending|follow[- ]ups?|next steps?|next up
open (?:items?|points?|questions?|issues?)|up next
""")
_UNDONE = any_of(r"""
(?:not (?:yet )?|un)(?:done|implemented|tested|fixed|finished|written|resolved|migrated|documented)
(?:not (?:yet )?|un)(?:handled|covered)|to be done|pending|outstanding|open|missing|unresolved
left(?: to do)?
""")
_OPEN = re.compile(
    any_of(rf"""
\b(?:TODO|FIXME)\b(?:\([^)\n]{{0,40}}\))?\s{{0,4}}[:–—-]?\s{{0,4}}(?P<marked>\S.*)$
(?i:\b(?:still|yet) (?:needs?|have|has|got|to)(?: to)?(?: be)? (?P<still>\S.*)$)
(?i:\b{_LEFT}\s?(?::|is|are|—|–|-) ?(?:to )?(?P<left>\S.*)$)
(?i:^(?P<bare>.{{3,200}}?) (?:is|are|remains?) (?:still )?{_UNDONE}(?: yet)?[.!]?$)
""")
)
_OPEN_WORDS = words_of("""
todo fixme still yet left open unresolved not undone blocked remaining remain remains
outstanding pending follow followup next up done missing untested unfixed unfinished
unimplemented to-do todos unwritten undocumented unhandled uncovered
""")
_LIST_OF_OPEN = re.compile(
    r"^(?:what's left|what is left|left to do|still to do|to ?-?dos?|remaining(?: \w+){0,2}|"
    r"outstanding(?: \w+)?|pending(?: \w+)?|open (?:items?|points?|questions?|issues?)|next steps?|"
    r"follow[- ]ups?|next up|still open|(?:we |i )?still (?:need|have) to(?: do)?|unresolved)"
    r"(?: \w+){0,3}\s?:?$",
    re.I,
)
_LISTED = re.compile(r"^\s{0,40}(?:[-*+•–]|\(?(\d{1,3})[.)])\s{1,8}(\S.*)$")
_PLANNED = re.compile(
    r"\b(?:plan|steps?|approach|next|to-?do|roadmap|going to|i'll|i will|we'll|we will|order|"
    r"strategy|here's what|proposal|stages?|phases?|milestones?)\b",
    re.I,
)
_HIGH = re.compile(
    r"\b(?:urgent(?:ly)?|critical|block(?:er|ing|s)|asap|high[- ]priority|immediately|FIXME)\b",
    re.I,
)
_LOW = re.compile(
    r"\b(?:nice to have|optional(?:ly)?|low[- ]priority|later|some ?day|eventually|cosmetic)\b",
    re.I,
)


def facts_in(text: str, *, by_user: bool) -> Iterator[str]:
    """What a message marks as worth remembering, and its lines of settings.

    Args:
        text: Its text.
        by_user: The user says it, and not the model, of which `I must` is no fact.
    """
    for sentence in prose_of(text):
        if not 8 <= len(sentence) <= ENTRY_CHARS or sentence.endswith("?"):
            continue
        low = sentence.lower()
        marked = has_any(low, _FACT_WORDS) and _FACT.search(low)
        if marked and (by_user or not _OWN_WORK.search(sentence)):
            yield sentence
    yield from _settings_in(text)


def _settings_in(text: str) -> Iterator[str]:
    for line, language in lines_of(text):
        bare = unmarked(line[:ENTRY_CHARS]) if language is None else line.strip()
        if (
            len(bare) > 160
            or bare.endswith((":", ",", "{", ";", ".", "?", "!"))
            or _NO_SETTING.match(bare)
        ):
            continue
        if (language is None or language in _CONFIGURED) and _SETTING.match(bare):
            yield bare


def open_items_in(text: str) -> Iterator[OpenItem]:
    """What a message says is to be done, and what it says is done, in its order."""
    listing = False
    for line, language in lines_of(text):
        line = line[:ENTRY_CHARS]
        listed = _LISTED.match(line)
        if box := _BOX.match(line):
            yield _item(box[2], line, done=box[1] != " ")
        elif tick := _TICK.match(line) or _DONE.match(unmarked(line)):
            yield _item(tick[1], line, done=True)
        elif listing and listed:
            yield _item(listed[2], line)
        elif found := _open_in(line):
            yield _item(next(one for one in found.groupdict().values() if one), line)
        if language is None and line.strip() and not listed:
            listing = _LIST_OF_OPEN.match(unmarked(line)) is not None


def _open_in(line: str) -> re.Match[str] | None:
    known = has_any(line.lower(), _OPEN_WORDS)
    return _OPEN.search(unmarked(line)) if known else None


def _item(words: str, line: str, *, done: bool = False) -> OpenItem:
    priority: Priority = "high" if _HIGH.search(line) else "low" if _LOW.search(line) else "normal"
    what = unmarked(words).partition(". ")[0].rstrip(" .;,")
    return OpenItem(what=what, priority=priority, done=done)


def plan_in(text: str) -> tuple[str, ...]:
    """The steps of the last list that is introduced as a plan; empty where there is none."""
    found: tuple[str, ...] = ()
    steps: list[str] = []
    intro = ""
    for line, language in [*lines_of(text), ("end", None)]:
        listed = _LISTED.match(line[:ENTRY_CHARS])
        if listed and language is None:
            steps.append(_step(listed[2]))
        elif line.strip() and not (steps and line.startswith((" ", "\t"))):
            found = _plan(steps, intro) or found
            steps, intro = [], line
    return found


def _step(words: str) -> str:
    box = re.match(r"\[[ xX]\]\s{1,4}", words)
    return unmarked(words[box.end() :] if box else words)


def _plan(steps: Sequence[str], intro: str) -> tuple[str, ...]:
    if len(steps) < 2 or (intro and not _PLANNED.search(intro[-200:])):
        return ()
    return tuple(steps)
