"""Which sentences decide something, and for which reason: rules for English, no model."""

import re

from harness_actors.compaction.choosing import (
    CHOICES,
    DESIGNS,
    DIFFERENT,
    FAILS,
    FILL,
    FIRST,
    IDIOMS,
    LABELS,
    LOOK,
    NEED,
    OPENINGS,
    ORDERS,
    PURPOSE,
    TOGETHER,
    UNSETTLED,
    WILL,
    WORK,
    any_of,
)
from harness_actors.compaction.sentences import SENTENCE_CHARS
from harness_actors.compaction.settling import plainly_settled

_REASON = re.compile(
    r"(?:,? "
    + any_of(r"""
because(?: of)?|since|to avoid|in order to|given(?: that)?|due to|thanks to|considering(?: that)?
so that\b(?!')|so as (?:not )?to|seeing (?:that|as|how)|on the grounds that|owing to|otherwise
or else
as(?= (?:it|its|we|i|the|this|that|these|those|there|they) [^\s]{1,30} [^\s])
as(?= (?:most|all|our|both|every|no) [^\s]{1,30} [^\s])
as(?= (?:an?|any|nothing|nobody|[a-z]{2,20} (?:is|are|has|have|does|do|was|were|can|cannot|can't)) )
as(?= [a-z]{2,20} (?:will|would|needs?|gives?|makes?) )
for(?= (?:better|easier|simplicity|consistency|performance|safety|speed|clarity|compatibility)\b)
for(?= its [a-z]{4,}| the sake\b)|now that|the reason (?:being|is)(?: that)?
which(?= (?:is|are|gives?|lets?|keeps?|avoids?|means|makes?|has|saves?|would|will)\b)
so(?! (?:i|we|let)\b)(?= (?:[\w`']{1,30} ){1,4}(?:can|could|do|don't|does|doesn't|never|always)\b)
so(?! (?:i|we|let)\b)(?= (?:[\w`']{1,30} ){1,4}(?:is|are|will|won't|has|have|works?|knows?|sees?)\b)
so(?! (?:i|we|let)\b)(?= (?:[\w`']{1,30} ){1,4}(?:stays?|remains?|gets?)\b)
to(?= (?:keep|reduce|save|simplify|prevent|ensure|minimi[sz]e|limit|make|stay|preserve|cut)\b)
to(?= (?:get rid|guarantee|protect|allow|let|support|speed|lower|improve|maintain|help)\b)
it(?:'s|'ll| is| has| gives| lets| keeps| avoids| makes)
""")
    + r" )\s?| ?(?:—|–|;| -- | - |: )\s?",
    re.I,
)
"""What a reason begins by, if it stands behind the decision."""
_REASON_FIRST = re.compile(
    r"^(?:because(?: of)?|since|given(?: that)?|as|to avoid|due to|considering(?: that)?|"
    r"in order to|seeing (?:that|as|how)|thanks to|"
    r"to (?=keep|reduce|save|simplify|prevent|ensure|minimi|make|stay))\b ?([^,]{4,300}), ?(?=\S)",
    re.I,
)
_SO = re.compile(
    r"^(.{6,300}?),? (?:so|hence|therefore|thus|which is why|that's why)[, ] ?(?=\S)", re.I
)
_REASON_NEXT = re.compile(
    r"^(?:because|reason(?:s|ing)?|rationale|why|the reason|this way|that way|(?:it|that|this|they)"
    r"(?:'s|'ll| \w{2,12}){0,2} (?:is|has|gives|lets|keeps|avoids|makes|means|saves|will)|it's)\b",
    re.I,
)
_POINTS_BACK = re.compile(r"\b(?:it|that|this|them|those|these|one|both|former|latter)\b", re.I)

_LABEL = re.compile(
    r"^\W{0,3}(?:(?:so|ok|okay|alright|well|right|fine),? )?"
    r"(?:(?:final|design|my|our|the|key|main|architecture|tech|technical|best|preferred) ){0,3}"
    rf"{LABELS}\b(?: [^\s]{{1,20}}){{0,4}}?(?::| [—–-]) ?(?=[^\s].{{3}})"
    r"|^.{0,60}\b(?:versus|vs\.?) [^,;:]{2,60}(?::| [—–-]) ?(?=[^\s])"
)
_HENCE = "(?:so|therefore|thus|hence|which is why)"
_LOOKED_AT = rf"{LOOK}[a-z]{{0,2}}ing|gett|runn|hav|see|miss|fac|hitt"
_CHOSEN = re.compile(
    any_of(rf"""
{FIRST}(?:{CHOICES}|leaning\b)
{WILL}{DESIGNS}
{TOGETHER}(?!(?:{LOOK}|{WORK})\b)[a-z]{{3,}}
^(?:{FILL},? |ok,? |okay,? |so,? |right,? |alright,? |please ){{0,3}}{CHOICES}
[,;:—–(] ?(?:{FILL} |so |and |but |then |therefore ){{0,3}}(?!avoid ){CHOICES}
\b{_HENCE},? (?:i|we)(?:'ll| will) (?:{FILL} ){{0,3}}(?!{LOOK}|{WORK})[a-z]{{3,}}
\b{_HENCE},? (?:i|we)(?:'m|'re| am| are) (?:{FILL} ){{0,3}}(?!{_LOOKED_AT})[a-z]{{2,14}}ing\b
\b(?:so|then|therefore|thus|hence),? {CHOICES}
\b(?:which|that) (?:i|we)(?:'ll| will) (?!{LOOK}\b)[a-z]{{3,}}
[:—–] ?we (?!have|are|were|see|can|could)[a-z]{{3,}} [^\s]
""")
)
_IDIOM = re.compile(IDIOMS)
_OPENING = re.compile(rf"^(?=\S){OPENINGS}")
_MEANT = re.compile(
    any_of(rf"""
{WILL}(?!{LOOK}\b)[a-z]{{2,}}
{NEED}(?!{LOOK}\b)[a-z]{{2,}}
(?:[,;—–]| and) not (?!yet|just|only|sure|[a-z]{{2,12}}ing\b)[^\s]
\b(?:i|we)(?:'m|'re| am| are) (?:{FILL} ){{0,3}}(?!{_LOOKED_AT})[a-z]{{2,14}}ing\b
(?:^|[,;:(—–] ?| - |\b(?:so|and|but|then|therefore|thus|hence|or) )(?:{FILL} ){{0,3}}{ORDERS}
\b(?:we|i) (?:{FILL} ){{0,3}}{DESIGNS}
""")
)
_NOBODY = "(?:this|that|it|there|you|they|which|i|if|when|so|and|then|but|now|here)\\b"
_OTHERS = re.compile(
    rf"(?:^|[,;:—–] ?)(?:so |and |then |here |now )?(?!{_NOBODY}|we )"
    r"[a-z`][\w`.-]{0,30}(?: [\w`'./-]{1,30}){0,6}? (?:will|shall|won't|are going to)"
    r"(?: not| never| only)? (?!need|take|break|crash|show|tell|help|work|happen|cause|probably|"
    r"look|see|be (?:a|an|able|fine|ok)\b)[a-z]{2,}"
)
"""What something else is to do."""
_IS = re.compile(
    rf"(?:^|[,;:—–] ?)(?!{_NOBODY})[a-z`][\w`.-]{{0,30}}"
    r"(?: [\w`'./-]{1,30}){0,5}? (?:should|must|moves?|go(?:es)?|lives?|runs?|becomes?|belongs?|"
    r"comes?|gets?|"
    r"(?:is|are) (?:fixed|capped|limited|pinned|required|optional|off|on|disabled|enabled|set|"
    r"taken|stored|kept|handled|written|built|done|put|to|not|only))\b"
)
"""How something is, which is a decision if it is so for a purpose."""
_CAUSES = re.compile(r",? (?:because|since|so that|to|as|given|due|in order|now that|for)\b", re.I)
_EXPLAINED = re.compile(
    r"^(?!(?:this|that|it|there|you|they|which|i|if|when|while|what|here|maybe|perhaps|let me|but|"
    r"and|so|no|yes|wait|hmm|oh|ok|okay|now)\b)"
    r"(?!(?:i|we)(?:'ve| have)? [a-z]{2,10}(?:ed|ote|an|aw|ound|ad)\b|we (?:can|have|need)\b)"
    r"(?!(?:the|a|this|one|both|all|some|two|these|that|my|its) (?:[\w`.-]{1,30} ){0,2}?(?:test|"
    r"tests|error|build|request|failure|problem|issue|bug|function|method|class|code|file|output|log|logs|"
    r"command|script|server|process|result|results|tool|import|variable|line|loop|call)\b)"
    r"(?=.{8})"
)
"""What begins a statement of how something is to be, if its reason stands beside it."""
_INSTEAD = re.compile(r"^(?:[\w`.+-]{1,30} ){1,4}(?:rather than|instead of|not) (?=\S)")
_THEN = re.compile(r"[,;—–] ?(?:so|hence|thus|therefore)(?: [\w`.+-]{1,30}){1,4}[.!]*$")
"""What follows from a reason, without a verb."""
_VERBS = re.compile(
    r"\b(?:is|are|was|were|has|have|had|uses?|returns?|does|did|it|this|that|will|can)\b"
)
_SUPPOSED = re.compile(r"^(?:if\b.*\b(?:probably|should|could|would)\b|(?:but )?(?:wait|hmm|oh)\b)")
_DIFFERENT = re.compile(rf"\b{DIFFERENT}\b")
_PURPOSE = re.compile(rf"\b{PURPOSE}\b")
_OVER = re.compile(
    r"^(?!(?:the|a|an|this|that|it|we|i|loop|iterate|all|moving|hover|over)\b)"
    r"(?![^\s]{1,30}(?:ing|ed) over)"
    r"[`\w./+#-]{1,40}(?: [`\w./+#-]{1,40}){0,2} over [`\w./+#-]{1,40}"
)
_UNSETTLED = re.compile(rf"\b{UNSETTLED}\b")
_LOOKS = re.compile(rf"\b(?:to|and|then|by) (?:[^\s]{{1,12}}ly )?{LOOK}\b")
_LOOKING = re.compile(
    r"(?:^|, )(?:(?:ok|okay|now|first|next|then|great|good|so|and|alright),? ){0,3}"
    r"(?:let me|i'll|i will|i'm going to|let's|i need to|we need to|we'll|i should|i want to|"
    r"i am going to) "
    rf"(?:[^\s]{{1,12}}ly |just |now |first |also |then |quickly ){{0,2}}(?!use ){LOOK}\b"
)
_CLAUSE = re.compile(r"[,;:—–(]|\b(?:but|so|therefore|thus|hence|however|then)\b")


def decision_in(sentence: str, following: str = "") -> tuple[str, str] | None:
    """What a sentence decides, and why.

    Args:
        sentence: It, without marks of lists.
        following: The sentence behind it, which may give the reason; empty for none.

    Returns:
        The decision and its reason, which may be empty; None where nothing is decided.

    >>> decision_in("We'll use Postgres instead of MySQL because it has JSON indexes.")
    ("We'll use Postgres instead of MySQL", 'it has JSON indexes')
    >>> decision_in("Let me check the file.") is None
    True
    """
    if not 8 <= len(sentence) <= SENTENCE_CHARS or sentence.rstrip(" *_\"')").endswith("?"):
        return None
    line = " ".join(sentence.split())
    low = line.lower()
    if _SUPPOSED.match(low):
        return None
    found = _deciding(low)
    return None if found is None else _divided(line, found, following)


def _deciding(low: str) -> re.Match[str] | None:
    """The words of a sentence that decide something; None where it decides nothing."""
    if label := _LABEL.search(low):
        return label
    looking = _LOOKING.search(low)
    for rule in (_CHOSEN, _OPENING, _IDIOM):
        for found in rule.finditer(low):
            if _is_settled(low, found) and not (looking and found.start() <= looking.start() + 2):
                return found
    return None if looking else _weighed(low) or plainly_settled(low)


def _weighed(low: str) -> re.Match[str] | None:
    """Words that decide something because a reason, or another way, stands beside them."""
    purpose = _PURPOSE.search(low) is not None
    because = _REASON_FIRST.match(low)
    reasons = [one for one in _REASON.finditer(low) if one[0].strip(" ,")[:1].isalpha()]
    reasoned = because is not None or bool(reasons) or _SO.match(low) is not None
    explained = because is not None or any(_CAUSES.match(one[0]) for one in reasons)
    rules = [_MEANT] if reasoned or purpose or _DIFFERENT.search(low) else []
    main = low[because.end() :] if because else low[: reasons[0].start()] if reasons else low
    if not FAILS.search(main):
        rules.append(_OTHERS)
        if purpose or reasoned:
            rules.append(_IS)
    settled = (one for rule in rules for one in rule.finditer(low) if _is_settled(low, one))
    return next(settled, None) or _stated(low, main, explained=explained) or _OVER.match(low)


def _stated(low: str, main: str, *, explained: bool) -> re.Match[str] | None:
    """What states how something is to be: with its reason, or with what it is not."""
    if FAILS.search(main) or _UNSETTLED.search(main) or len(main.split()) < 3:
        return None
    instead = _INSTEAD.match(low)
    if instead and not _VERBS.search(instead[0]):
        return instead
    then = _THEN.search(low)
    if then and not _VERBS.search(then[0]):
        return then
    return _EXPLAINED.match(main) if explained else None


def _is_settled(low: str, found: re.Match[str]) -> bool:
    """Whether nothing in its clause leaves open what a verb decides, or makes it a look around."""
    before = _CLAUSE.split(low[max(0, found.start() - 120) : found.start()])[-1]
    if _UNSETTLED.search(before) or _UNSETTLED.search(found[0]):
        return False
    rest = low[found.end() : found.end() + 80]
    if found[0].rstrip().endswith(("use", "using")) and "instead" not in rest:
        return _LOOKS.search(rest) is None
    return True


def _divided(line: str, found: re.Match[str], following: str) -> tuple[str, str]:
    """A sentence that decides something, as what and why."""
    if first := _REASON_FIRST.match(line):
        return _bare(line[first.end() :]), _bare(first[1])
    so = _SO.match(line)
    if so and so.end() <= found.start() + 6:
        what = line[so.end() :]
        return _bare(line if _POINTS_BACK.search(what) else what), _bare(so[1])
    for reason in _REASON.finditer(line, min(found.end(), len(line))):
        why = _bare(line[reason.end() :])
        if len(why.split()) >= 2:
            return _bare(line[: reason.start()]), why
    if _REASON_NEXT.match(following):
        return _bare(line), _bare(following)
    return _bare(line), ""


def _bare(text: str) -> str:
    return text.strip(" \t,;:—–-(").removesuffix(".").rstrip(" ,;:")
