"""The words by which somebody chooses, in English, as expressions for lower-case sentences."""

import re


def any_of(lines: str) -> str:
    """An expression for whatever one of the lines stands for.

    >>> any_of("go with" + chr(10) + "adopt")
    '(?:go with|adopt)'
    """
    return "(?:" + "|".join(line.strip() for line in lines.strip().splitlines()) + ")"


def forms_of(words: str) -> str:
    """An expression for verbs in all their forms; of those that double it, the last letter is
    written twice.

    >>> forms_of("adopt dropp retire")
    '(?:adopt(?:s|ed|ing)?|drop(?:s|ped|ping)?|retir(?:es?|ed|ing))'
    """
    return "(?:" + "|".join(map(_forms, words.split())) + ")"


def _forms(verb: str) -> str:
    if verb[-1] == verb[-2] and verb[-1] in "bdgmnprt":
        return f"{verb[:-1]}(?:s|{verb[-1]}ed|{verb[-1]}ing)?"
    if verb.endswith("e"):
        return f"{verb[:-1]}(?:es?|ed|ing)"
    return f"{verb}(?:s|ed|ing)?"


def words_of(text: str) -> frozenset[str]:
    """The words of a text, to look others up in.

    >>> sorted(words_of("b a"))
    ['a', 'b']
    """
    return frozenset(text.split())


_WORD = re.compile(r"[a-z']+")


def has_any(low: str, words: frozenset[str]) -> bool:
    """Whether a lower-case text has one of some words: by this most texts are told at once."""
    return not words.isdisjoint(_WORD.findall(low))


def words(most: int) -> str:
    """An expression for some words between two others, and so many at most."""
    return rf"(?:[^\s,;:]{{1,40}} ){{0,{most}}}?"


FILL = any_of(r"""
[a-z]{2,14}ly
just|then|now|also|still|instead|rather|thus|hence|here|too|that|all|both|already|once more
have|has|had|am|are|is|was|were|been|be|do|did|can|will|shall|would|should|must|'ll|'d
need to|needs to|want to|have to|ought to|got to|going to|gonna|plan to|intend to|mean to
better|best|always|only|not|never|no longer|won't|don't|shouldn't|can't|ready to|happy to
go ahead and|as well|might as well|may as well|inclined to|tempted to|for now|at least|in the end
after all
(?:think|say|suggest|propose|recommend|believe|feel) (?:that )?(?:i|we)
i|we|i'll|we'll|i'd|we'd
""")
"""What may stand between whoever decides and the verb."""
FIRST = rf"\b(?:i|we|us|let me|let's|team|everyone)(?:'ve|'d|'ll|'m|'re)? (?:{FILL} ){{0,6}}"
WILL = any_of(rf"""
\b(?:i|we)(?:'ll|'d| will| shall| would| should| must) (?:{FILL} ){{0,4}}
\b(?:i|we)(?:'m|'re| am| are) (?:[a-z]{{2,12}} )?(?:going to|gonna|to) (?:{FILL} ){{0,4}}
\b(?:i|we) (?:plan|intend|ought|mean|propose|prefer|decided) to (?:{FILL} ){{0,4}}
\b(?:i|we) (?:can|may|might) (?:just|simply|as well|safely|easily) (?:{FILL} ){{0,4}}
\b(?:let's|let us|let me) (?:{FILL} ){{0,4}}
""")
"""Somebody means to do something."""
NEED = rf"\b(?:i|we) (?:need|want|have) to (?:{FILL} ){{0,3}}"
"""The same, which decides something only with a reason or another way."""
TOGETHER = rf"\b(?:we(?:'ll| will| shall| should| must)|let's|let us) (?:{FILL} ){{0,4}}"

LOOK = any_of(r"""
read|look|check|see|open|search|list|inspect|examine|view|explore|find|verify|run(?! with)|rerun
re-run|try|start|begin|continue|review|grep|fetch|gather|think|take(?! the)|have|proceed|confirm
get|understand|investigate|analy[sz]e|fix|update|edit|test|need|know|want|debug|trace|dig|figure|ask|locate
identify|determine|go(?! (?:ahead (?:and )?|forward )?(?:with|for|without|use)\b)|come|finish
keep (?!us|do)[a-z]{2,12}ing|do (?:it|that|this)(?! (?:with|without|in|as|by|via)\b)
report|summari[sz]e|help|walk|dive|show|print|compare|evaluate
measure|benchmark|install|clean|make sure|double|revisit|be able|wait|use|say
discuss|talk|move on|hope|hear|wrap up|recap|reproduce|learn|browse|scan|skim|first|quickly|execute
""")
"""What is done to know more, or to go on, and decides nothing."""
WORK = any_of(r"""
modify|apply|insert|append|handle|create|write|implement|add|commit|push|build|generate|set up
define|finali[sz]e|summari[sz]e|call|change|replace|remove|delete|move|rewrite|refactor|complete|address
construct|correct|provide|proceed|directly
""")
"""What is said of any work, and decides something only with a reason or another way."""
_THING = (
    r"(?! (?:the |a |an |another |my )?(?:[^\s,]{1,40} )?"
    r"(?:director|folder|tab\b|window|file\b|page\b|next\b))"
)

CHOICES = any_of(rf"""
decid(?:e|ed|ing) (?:to|on|upon|against|not|in favou?r|for|that|we|i|it|it's)\b
(?:choose|chose|chosen|choosing)\b(?! (?:between|whether|which|among))
pick(?:s|ed|ing)?\b(?! (?:up|apart|between))
(?:go|going|gone|went) (?:ahead |forward )?(?:with|for|without)\b
(?:moving|move|moved|proceed|proceeding|run|running|roll|rolling) (?:ahead |forward )?with\b
{forms_of("settle land converge standardize standardise vote bett relie")} (?:on|upon|for)\b
rely on\b
opt(?:s|ed|ing)? (?:for|to|against|out|in|not)\b
(?:stick|sticking|stuck|stay|staying|stayed|stand|standing) (?:with|to|on|by)\b
switch(?:ed|ing)? {words(4)}(?:to|from|over|away|off)\b{_THING}
(?:go|going|gone|went|turn|turning) (?:back|over) to\b{_THING}
{forms_of("adopt prefer favor favour select elect reject discard abandon dropp ditch scrapp retire")}\b(?! (?:in|into|by)\b)
{forms_of("deprecate shelve deferr postpone avoid embrace approve preferr back champion")}\b
(?:forgo|forego|forgoing|foregoing|dispense with|do away with|do without|get rid of)\b
{forms_of("committ agree resolve default revert migrate")} (?:{words(4)}(?:to|from|away|off|on|that|upon))\b
rul(?:e|ed|ing) {words(4)}out\b
replac(?:e|ing) {words(6)}(?:with|by)\b
swap(?:ped|ping)? {words(5)}(?:for|with|out)\b
mov(?:e|ing) {words(5)}(?:to|away|off|from|into|out of)\b{_THING}
(?:hold|holding|held) off\b
skip(?:ped|ping)?\b(?! (?:to|ahead|through|over)\b)
(?:keep|keeping|kept)\b(?! (?:(?!us|do)[a-z]{{2,12}}ing\b|in mind|track|an eye|on [^\s]{{1,20}}ing|you\b))
(?:leave|leaving|left) {words(6)}(?:as|out|alone|for|in place|untouched|off|to|until|where|at|it)\b
lean(?:ed|ing)? (?:[^\s]{{1,20}} )?(?:towards?|to|on)\b
(?:give|gave|giving) up on\b
doubl(?:e|ed|ing) down\b
(?:steer|steering) clear\b|(?:stay|keep|staying|keeping) away from\b|pass(?:ed|ing)? on\b
stop(?:ped|ping)? [a-z]{{3,12}}ing\b
(?:lock|locked|locking) (?:in|down)\b
fall(?:ing)? back (?:to|on)\b
turn(?:ed|ing)? down\b
(?:take|took|taking|follow|following) the [^\s]{{1,30}} (?:route|approach|path|option|road|way)\b
err(?:ing)? on the side\b
(?:argue|arguing|argued) (?:for|against)\b
end(?:ed|ing)? up (?:with|[a-z]+ing)\b
(?:live|living) (?:with|without)\b
""")  # noqa: E501
"""Verbs of choosing, in every form."""

HOW = r"(?:as|with|via|through|using|on|by|over|per|once|twice|lazily|eagerly|at|from|around|in)\b"
DESIGNS = any_of(rf"""
(?:use|using|reuse|store|persist|cache|put|place|host|deploy|model|represent|name|treat|base)\b
make (?!sure)
(?:split|merge|limit|restrict|cap|pin|require|enforce|forbid|ban|disallow|allow|support|target)\b
(?:wrap|encode|expose|version|ignore|accept|inline|hard-?code|vendor|fork|bundle|batch|partition)\b
(?:shard|encrypt|compress|queue|poll|stream|proxy|isolate|separate|consolidate|rename|disable)\b
(?:enable|delay|share|rewrite|ship|tolerate|trust|guard|gate|retry|raise|return|fail|introduce)\b
(?:enqueue|standardi[sz]e|remove|delete|mirror|prioriti[sz]e|normali[sz]e|denormali[sz]e|assume)\b
(?:memoi[sz]e|rotate|expire|freeze|round|truncate|dedup|deduplicate|debounce|throttle|paginate)\b
(?:focus on|aim (?:for|at)|roll (?:out|back|our own)|settle)\b
set {words(6)}to\b
turn {words(4)}(?:off|on|into)\b
(?:build|write|generate|implement|do|run|serve|handle|load|parse|send|structure|design) {words(7)}{HOW}
(?:deliver|save|log|call|query|organi[sz]e|sign|render|schedule|release|start) {words(7)}{HOW}
""")  # noqa: E501
"""What is done to a design, if somebody means to do it."""

ORDERS = any_of(r"""
(?:use|using|store|storing|treat(?:ing)?|never|always|no|cach(?:e|ing)|split(?:ting)?|pin(?:ning)?)\b
(?:requir(?:e|ing)|enforc(?:e|ing)|limit(?:ing)?|put(?:ting)?|mak(?:e|ing) (?!sure)|reus(?:e|ing))\b
(?:target(?:ing)?|cap(?:ping)?|don't|do not|build(?:ing)?|support(?:ing)?|remov(?:e|ing)|set)\b
(?:add|adding|write|writing|batch|batching|return|returning|model|modell?ing|implement(?:ing)?)\b
""")
"""Orders, and what stands without a subject."""

LABELS = any_of(r"""
decisions?|decided|choices?|chosen|choosing|verdict|resolution|resolved|conclusion|approach|option
strategy|selected|agreed|policy|call|pick|recommendation|winner|settled|going with|direction|rule
answer|plan of record|bottom line|upshot|to sum up|in short|in conclusion|tl;?dr|takeaway|choice
preference|consensus|compromise|vote|solution|net result|so be it|trade-?off
""")
"""What stands before a colon and a decision."""

_GOOD = any_of(r"""
right|better|best|safest|simplest|cleanest|cheapest|obvious|clear|only sane|sensible|natural|smart
easiest|quickest|fastest|easier|wiser|wisest|stronger|strongest|preferred|sane|logical|safer|simpler|pragmatic|correct|ideal|good
""")
_CHOICE = any_of(r"""
call|choice|option|move|tool|fit|approach|bet|path|solution|place|answer|pick|winner|candidate
fix|compromise|trade-?off|default|thing|way|route|home|plan|design|strategy|match|compromise
""")
_DONE_TO = any_of(r"""
stored|kept|handled|built|written|used|served|hosted|deployed|done|left|put|made|split|required|set
cached|implemented|disabled|enabled|removed|replaced|named|modell?ed|represented|treated|managed|run
sent|exposed|limited|capped|supported|based|moved|migrated|validated|generated|pinned|fixed|frozen
enforced|allowed|forbidden|banned|shared|logged|encrypted|checked|versioned|shipped|resolved|taken
""")
_DROPPED = any_of(r"""
chosen|preferred|ruled out|rejected|deferred|settled|agreed|decided|out of scope|adopted|selected
picked|dropped|abandoned|postponed|deprecated|retired|shelved|scrapped|superseded|unnecessary
overkill|not needed|off the table|out of the question|good enough|sufficient|plenty|more than enough
not worth [^\s]+|too (?:risky|heavy|complex|much)\b.{0,60}\bso
""")
_PLAN = any_of(r"""
plan|idea|approach|strategy|answer|solution|trick|goal|intention|rule|policy|design|compromise
consensus|default|convention|winner|verdict|pick|choice|vote|call|recommendation|preference|decision
conclusion|bet|takeaway|contract|requirement|standard|principle
""")
_SUFFERED = "miss|gett|see|hitt|runn|fac|hav|fail|lack|wast|los|talk|do|be"
_UNSEEN = r"know|see|have|think|find|understand|believe|remember|saw|got|had|want|need"

OPENINGS = any_of(rf"""
(?:[a-z]{{2,12}},? )?(?:the )?{_GOOD} (?:[^\s]{{1,20}} )?{_CHOICE}\b
not worth [a-z]
not (?:going to|gonna) [a-z]
(?:instead of|rather than) [^,]{{3,60}}, (?!you\b|they\b)[^\s]
for [^,:]{{3,40}}: ?(?=[^\s].{{2}})
use [^\s].{{0,80}}\b(?:for|as|everywhere|by default|with)\b
(?:ok|okay|alright|right|fine|so|well|good)?,? ?[^,]{{2,40}} (?:then|it shall be)[.!]*$
(?:best|better|safer|simpler|cleaner|easier|cheaper|simplest|safest) (?:to|if we|not to|off)\b
""")
"""What a sentence begins by where somebody has chosen."""
IDIOMS = r"\b" + any_of(rf"""
(?<!what )(?<!where )(?<!how )(?<!as )(?<!that )(?<!whatever )\bit(?:'ll be| is| shall be| will be)(?=[.! ]*$|[—–:;(,]| [—–(]| then\b| for (?:now|us|this)\b| because| since)
(?:way (?:to go|forward)|better off|from (?:now|here|this point) on|going forward|moving forward)\b
makes? (?:(?:a lot |much |far )?more|the most|most|better|perfect|little|no) sense\b
(?:cleanest|simplest|safest|easiest|wisest|quickest|cheapest|sanest) to\b
(?:is|are) (?:closed|settled|clear|decided|answered|obvious)(?=[:;—–]| [—–])
out[,;] .{{2,40}}\bin(?=[.!]*$)|in[,;] .{{2,40}}\bout(?=[.!]*$)
we want (?!to {LOOK}\b)
(?:we|i) go (?!through|over|back|on\b|to\b)
we(?:'re| are) (?:{FILL} ){{0,2}}(?!{LOOK}[a-z]{{0,2}}ing|{_SUFFERED})[a-z]{{2,14}}ing\b
(?:remains?|stays?)(?=[.!]*$)
leaves (?:us )?(?:with )?(?:only )?(?:option|the|[a-z`]{{3,20}})(?=[,.!]|$| )
(?:off the table|out of the question|non-?starter|no-go|no-brainer|so be it|as agreed)\b
{_GOOD} (?:[^\s]{{1,20}} )?{_CHOICE}(?: here| then| for [^\s]{{1,30}}(?: [^\s]{{1,30}})?)? (?:is|are|was|would be|will be)\b
(?:is|are|be|seems?|looks like|remains|as|was|it's|that's) (?:also |clearly |probably |still |simply )?(?:the|our|a|my) (?:[a-z]{{2,12}} )?{_GOOD} (?:[^\s]{{1,20}} )?{_CHOICE}\b
(?:it's|it is|it'd be|it would be|it will be|seems|feels|is|be|probably) ?(?:far |much |a bit |also |probably )?(?:best|better|safer|simpler|cleaner|easier|cheaper|wiser|smarter|saner|safest|simplest|wisest|preferable|enough|sensible|reasonable|prudent|sufficient)(?: for us| here| now| then)? (?:to|if we|not to|off)\s
(?:our|my|the|new|final) (?:[^\s]{{1,20}} ){{0,2}}?{_PLAN}(?: here| then| (?:for|on|of|about) [^\s]{{1,30}}(?: [^\s]{{1,30}}){{0,3}}?)? (?:is(?! (?:not|unclear|missing|that the)\b)|goes to|was to|would be|will be|should be|falls on|stands|remains)\b
(?:wins|carries the day|gets (?:my|our|the) (?:vote|nod)|takes it|fits? (?:us |our [^\s]{{1,20}} )?(?:best|better)|suits us|nothing beats|beats|outweighs?|will do|does the job|suffices|will suffice|trumps?)\b
(?:made up (?:my|our) minds?|i'm convinced|sold on|that settles it|it's settled|thumbs up|there(?:'s| is) no question)\b
no (?:need|reason|point) (?:for|to|in)\b
is out\b.{{0,40}}\bis in\b
is in\b.{{0,40}}\bis out\b
(?:i'd|we'd|i would|we would) (?:much |far )?(?:rather|sooner|prefer|go)\b
(?:i|we|i'd|we'd|i would|we would) (?:[^\s]{{1,15}}ly )?(?:recommend|propose|suggest|advise|conclude|concluded|determined|am convinced|vote)\b
(?:is|are|was|were|been|be|gets?|got) (?:[^\s]{{1,15}}ly |now |all |hereby |being |therefore )?{_DROPPED}\b
will (?:now |then |therefore |only |no longer |not |never |always |just |simply |instead )?(?:live|stay|remain|default|rely|be (?:{_DONE_TO}|our|the (?:default|only|single|source)|[a-z]{{3,14}}ed (?:by|in|on|with|as|via|through|until|only)))\b
(?:stays?|remains?) (?!the same|unclear|to be|open|failing|a mystery|broken|undefined|empty|red|green|unresolved|unknown)[^\s]
(?:we|i) (?:no longer|won't|will not|shall not|refuse to|never) (?!{_UNSEEN})[a-z]{{2,}}
(?:we're|we are|i'm|i am) (?:not|never|no longer) (?:going to |gonna )?(?!sure|able|certain|aware|clear|seeing|getting|finding)[a-z]{{2,12}}(?:ing\b| )
between [^\s].{{2,80}}?, (?:[^\s]{{1,30}} ){{1,4}}(?:is|wins|has|gives|offers|makes)\b
(?:i|we) (?:don't|do not) (?:want|need) (?:to |a |an |any |the )(?!more|see|know)
(?:will|shall|can|must|should) (?:have to |just |then )?wait\b
no more [a-z]{{3,}}
in favou?r of\b
is what (?:we|i|it)\b
is (?:a must|mandatory|non-negotiable)\b
is (?:the one|our|my|going to be (?:our|the))\b.{{0,40}}\b(?:we|choice|pick|database|store|framework|default|language|tool|one|answer|from)\b
on balance\b
all things considered\b
tips the (?:scales?|balance)\b
hands down\b
(?:pushes|points|brings|leads|drives|steers|takes) us (?:to|towards?|at)\b
speaks for\b
(?:never|always) (?:go(?:es)?|lives?|leaves?|uses?|stores?|touch(?:es)?|writes?|blocks?|trusts?|wins?|comes?|gets?|stays?|runs?|logs?|shares?|crosses|reach(?:es)?|fails?|carry|carries)\b
(?:is|are) (?:{_DONE_TO}|[a-z]{{3,14}}ed) (?:[^\s]{{1,30}} ){{1,6}}only\b
(?:is|are) (?:to be|hereby) [a-z]{{3,}}
(?:is|are) (?:only |now )?(?:off|on|disabled|enabled|opt-?in|required|optional|read-only|immutable) by default\b
""")  # noqa: E501 - an idiom is read best on one line
"""What is said where somebody has chosen."""

DIFFERENT = any_of(r"""
instead|rather than|over|in favou?r of|in place of|as opposed to|not|only|for now|everywhere|without
never|always|no longer|at most|at least|no more than|from now on|going forward|by default|single
versus|vs|every|each
""")
"""Another way, or how far it goes."""
PURPOSE = any_of(r"""
instead|rather than|in favou?r of|in place of|as opposed to|so that|to avoid|in order to|so as to
so as not to|to (?:keep|reduce|save|simplify|prevent|ensure|minimi[sz]e|stay|preserve|make|protect)
""")
UNSETTLED = any_of(r"""
whether|not sure|unsure|haven't|have not|undecided|could|might(?! as well)|may(?! as well)|maybe
perhaps|consider|considering|let me know|would you|you can|you could|you may|you might|do you|if you
(?:need|have|going|able|yet|time) to (?:decide|choose|pick|select)|(?:can|let me|must) (?:decide|choose|pick|select)
one option|alternatively|they|it would be possible|wonder|either|the user (?:wants?|asked|asks|says|said|needs?)
""")  # noqa: E501
"""Before the verb, in the same clause: nothing is decided."""
FAILS = re.compile(
    r"\b(?:fails?|failed|failing|errors?|crash(?:es|ed)?|breaks?|broken|bugs?|wrong|missing|flaky|slow|"
    r"undefined|exceptions?|traceback|none|null|hangs?|timed out|pass(?:es|ed)?|problems?|issues?|"
    r"unused|impossible|unclear|hard to)\b"
)
"""What is said of how things are."""
