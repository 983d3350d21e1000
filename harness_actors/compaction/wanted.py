"""The sentences that somebody wants to be kept, by the words in which they say so."""

import re
from collections.abc import Iterable

from harness_actors.compaction.choosing import words_of

MOST_WANTED = 20
"""Sentences of one part."""
_WORD = re.compile(r"[^\W_]+(?:[-_.][^\W_]+)*")
_SAY_NOTHING = words_of("""
about above after all also and any anything are because been before being both but can could did
does doing done each everything for from had has have having her here his how into its just keep
kept like made make more most must need not one only other our out over please remember said same
say should some such sure than that the their them then there these they thing things this those
under until very want was well were what whatever when where whether which while who whose why
will with words would you your
""")


class Wanted:
    """What is wanted of a conversation, and the sentences of it that have that.

    A sentence counts by how many of the words it has, in the singular or the plural; of those that
    count alike the newer one does.

    Args:
        words: In which somebody says what they want; English says nothing by some of them.
    """

    def __init__(self, words: str) -> None:
        found = _WORD.findall(words.lower())
        telling = (one for one in found if len(one) > 2 and one not in _SAY_NOTHING)
        self._stems = frozenset(map(_stem, telling))
        self._found: dict[str, tuple[int, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._stems)

    def look_at(self, sentences: Iterable[str]) -> None:
        """Keep those of some sentences that are wanted."""
        for sentence in sentences:
            said = {_stem(one) for one in _WORD.findall(sentence.lower())}
            if shared := len(said & self._stems):
                self._found[sentence] = (shared, len(self._found))

    @property
    def sentences(self) -> tuple[str, ...]:
        """The best, in their order."""
        best = sorted(self._found, key=self._found.__getitem__, reverse=True)[:MOST_WANTED]
        return tuple(sorted(best, key=lambda one: self._found[one][1]))


def _stem(word: str) -> str:
    return word.removesuffix("s") if len(word) > 3 else word
