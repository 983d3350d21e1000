"""Sentences that settle something without a verb of choosing: rules for English."""

import re

from harness_actors.compaction.choosing import FAILS, any_of

_SOMEBODY = r"(?:i|we|it|this|that|there|you|they|he|she|let|if|when|what|how|why|now|here)\b"
_FRAGMENTS = re.compile(
    any_of(rf"""
^(?:so|therefore|thus|hence)[, ] ?(?!{_SOMEBODY})[^,;:.]{{3,60}}(?=[,;:.]|$)
^(?!{_SOMEBODY})[^,;:.]{{3,60}}, then(?=[,;:.!]|$)
""")
)
"""What is only named: a decision, if there is no verb in it."""
_VERBS = re.compile(
    r"\b(?:is|are|was|were|be|has|have|had|does|did|do|will|would|can|could|should|must|may|might|"
    r"i|we|it|you|they|[a-z]{2,}(?:es|ed)|fails?|works?|looks?|needs?|seems?|means?|gives?|runs?|"
    r"shows?|says?|returns?|reads?|calls?)\b"
)
_SETTLED = re.compile(
    any_of(r"""
^(?:and |so |then |but )?it(?:'s|'d be|'ll be| is| would be| seems| will be) (?:[a-z]{4,10}ly )?
(?:is|are) (?:now )?(?:parked|shelved|deferred|postponed|frozen|abandoned|scrapped|off the table)\b
(?:is|are) (?:now )?(?:on hold|out of scope|ruled out|put off|left out|left alone)\b
(?<!have )(?<!has )(?<!'ve )\bnow (?:reads?|lives?|goes|sits?|belongs?|stays?|defaults?) [^\s]
^(?:forget|lose|kill|scrap|ditch) (?:the|that|this|all|my)\b
^(?:never mind|enough of|away with) (?:the|that|this|all|my)\b
^(?:so |then )?(?:setting|making|capping|raising|lowering) .{2,80}\binstead\b
^(?:so |then )?(?:bumping|pinning|renaming) .{2,80}\binstead\b
(?:instead of|rather than) [^;—]{3,60}(?:;| —| since\b| because\b)
""")
)
_SAID = re.compile(
    any_of(r"""
\b(?:my|our|the|final) (?:decision|choice|pick) (?:is|was|remains|stays)\b
\b(?:my|our|the|final) (?:verdict|recommendation|preference) (?:is|was|remains|stays)\b
\b(?:i take that back|on second thought|scratch that|strike that|i stand corrected)\b
\b(?:is|are|'s) (?:good |quite |more than )?(?:enough|plenty|sufficient|fine) (?:for|to|here|as)\b
^(?:so |then )?(?:do not|don't|never) (?!forget|know|have|need|see|worry|mind)[a-z]{2,}
^(?:so |then )?(?:halve|double|triple|cap|round|trim|shrink|widen|tighten) (?:the|it|all|both)\b
\b(?:i|we)(?:'ll| will) [^;—]{3,80}\b(?:instead of|rather than)\b
^(?:so |then )?not (?!sure|yet|bad|too|even|only|just|everything|something)[a-z]{2,12}ing\b
\bit (?:makes|made|would make) (?:more )?sense to (?!check|look|see|ask|know|read)[a-z]{2,}
\btrade-?off (?:that )?(?:i|we)(?:'m|'re| am| are|'ll| will)? (?:accept|willing|mak|tak|live)
^(?:so |then )?(?:raising|lowering|setting|cutting|capping) [^,;]{2,60} to [^,;]{1,30}(?:,|$)
""")
)
"""What settles something whatever else is said of failures in the same sentence."""
_DONE = re.compile(
    r"\b(?:i|we)(?:'ve| have)? (?:raised|lowered|set|capped|limited|renamed|switched|moved|kept|"
    r"left|dropped|removed|replaced|excluded|included|split|merged|rounded|rendered|translated|"
    r"pinned|disabled|enabled|skipped|made|imputed|coded|grouped|ordered|named|called) .{3,160}?"
    r"(?:\bso that\b|\bbecause\b|\bto avoid\b|\bsince\b|, trading\b|\brather than\b|"
    r"\binstead of\b|\bthroughout\b)"
)
"""What was done otherwise than it might have been, with a reason."""
_DOING = re.compile(
    r"\b(?:i'm|i am|we're|we are) (?:cutting|dropping|removing|leaving|keeping|moving|skipping|"
    r"merging|splitting|renaming|limiting|capping|rounding|excluding|replacing|switching|reverting|pinning|"
    r"accepting|parking|deferring|ignoring|freezing|folding|trimming|lowering|raising)\b"
    r"(?! (?:on|over|around|through)\b)"
)
_TAKES_OVER = re.compile(
    rf"^(?:so|then|thus|therefore|hence),? (?!{_SOMEBODY})[^,;:.]{{2,50}}? "
    r"(?:replaces?|becomes?|goes?|moves?|stays?|wins?|takes? over|gets? [a-z]+ed)\b"
)
_CHANGED = re.compile(
    r"\b(?:was|were|is|are|gets?|got) [a-z]{3,}(?:ed|en|t) .{0,60}\b(?:instead of|rather than)\b"
    r".{2,60}?(?:, (?:because|since|as)\b|\bbecause\b|;| —)"
)
_ONLY = re.compile(
    rf"^(?!{_SOMEBODY})(?:no (?!errors?|results?|match|tests?|changes?|issues?|luck|output|such|"
    r"matter|idea|sign|need|problem|fail|other|one|more than|answer)[^,;:.]{3,60}(?=[,;:.]|$)"
    r"|[^,;:.]{3,40} only(?=[,;:.]|$))"
)

_WISE = re.compile(
    r"\b(?:wise|wiser|wisest|best|better|safest|safer|simplest|simpler|easiest|easier|smarter|"
    r"prudent|cleanest|cleaner|cheaper|cheapest) (?:to|if|just)\b"
)
_ITSELF = re.compile(r"^(?:and |so |then |but )?it\b")


def plainly_settled(low: str) -> re.Match[str] | None:
    """The words by which a sentence settles something; None where it settles nothing.

    Args:
        low: The sentence, in lower case.
    """
    for rule in (_SAID, _DONE, _DOING, _TAKES_OVER, _CHANGED):
        if found := rule.search(low):
            return found
    if FAILS.search(low):
        return None
    only = _ONLY.match(low)
    if only and not _VERBS.search(only[0]):
        return only
    for found in _FRAGMENTS.finditer(low):
        named = found[0].removeprefix("so").removesuffix(", then")
        if not _VERBS.search(named):
            return found
    for found in _SETTLED.finditer(low):
        if not _ITSELF.match(found[0]) or _WISE.match(low, found.end()):
            return found
    return None
