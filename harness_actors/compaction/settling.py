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
^(?:forget|lose|kill|scrap|ditch|never mind|enough of|away with) (?:the|that|this|all|my)\b
^(?:so |then )?(?:setting|making|capping|raising|lowering|bumping|pinning) .{2,80}\binstead\b
(?:instead of|rather than) [^;—]{3,60}(?:;| —| since\b| because\b)
""")
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
    if FAILS.search(low):
        return None
    for found in _FRAGMENTS.finditer(low):
        named = found[0].removeprefix("so").removesuffix(", then")
        if not _VERBS.search(named):
            return found
    for found in _SETTLED.finditer(low):
        if not _ITSELF.match(found[0]) or _WISE.match(low, found.end()):
            return found
    return None
