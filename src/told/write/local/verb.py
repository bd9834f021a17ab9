"""The verb of a clause: which one it is, and how it is said — now or once, denied, doubted, planned."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

# lemma: present forms / past forms / -ing forms; past covers the participle too.
_VERBS: Final = """
live:live lives/lived/living  reside:reside resides/resided/residing  stay:stay stays/stayed/staying
move:move moves/moved/moving  relocate:relocate relocates/relocated/relocating  settle:settle settles/settled/settling
grow:grow grows/grew grown/growing  raise:raise raises/raised/raising  bear:bear/born/bearing  come:come comes/came/coming
work:work works wrk wrok/worked/working  join:join joins/joined/joining  leave:leave leaves/left/leaving
employ:employ/employed/employing  hire:hire/hired/hiring  quit:quit quits/quit/quitting  resign:resign/resigned/resigning
retire:retire/retired/retiring  promote:promote/promoted/promoting  run:run runs/ran/running  lead:lead leads/led/leading
manage:manage manages/managed/managing  found:found/founded/founding  teach:teach teaches/taught/teaching
study:study studies/studied/studying  major:major majors/majored/majoring  graduate:graduate graduates/graduated/graduating
attend:attend attends/attended/attending  learn:learn learns/learned learnt/learning  practice:practice practise practices practises/practiced practised/practicing practising
like:like likes liek/liked/liking  love:love loves luv lvoe/loved/loving  enjoy:enjoy enjoys/enjoyed/enjoying  adore:adore adores/adored/adoring
hate:hate hates h8/hated/hating  dislike:dislike dislikes/disliked/disliking  loathe:loathe loathes/loathed/loathing  despise:despise despises/despised/despising
detest:detest detests/detested/detesting  prefer:prefer prefers perfer/preferred/preferring  avoid:avoid avoids/avoided/avoiding
stand:stand stands/stood/standing  mind:mind minds/minded/minding  want:want wants wanna/wanted/wanting  wish:wish wishes/wished/wishing
hope:hope hopes/hoped/hoping  plan:plan plans/planned/planning  aim:aim aims/aimed/aiming  intend:intend intends/intended/intending
dream:dream dreams/dreamed dreamt/dreaming  try:try tries/tried/trying  think:think thinks/thought/thinking  consider:consider considers/considered/considering
decide:decide decides/decided/deciding  train:train trains/trained/training  save:save saves/saved/saving  prepare:prepare prepares/prepared/preparing
have:have has hav/had/having  own:own owns/owned/owning  drive:drive drives/drove driven/driving  ride:ride rides/rode ridden/riding
keep:keep keeps/kept/keeping  play:play plays/played/playing  collect:collect collects/collected/collecting  speak:speak speaks/spoke spoken/speaking
use:use uses/used/using  code:code codes/coded/coding  program:program programs/programmed/programming  write:write writes/wrote written/writing
deploy:deploy deploys/deployed/deploying  host:host hosts/hosted/hosting  build:build builds/built/building  develop:develop develops/developed/developing
switch:switch switches/switched/switching  migrate:migrate migrates/migrated/migrating  change:change changes/changed/changing
specialize:specialize specializes specialise specialises/specialized specialised/specializing specialising  focus:focus focuses/focused/focusing
know:know knows/knew known/knowing  eat:eat eats/ate eaten/eating  drink:drink drinks/drank drunk/drinking  smoke:smoke smokes/smoked/smoking
follow:follow follows/followed/following  take:take takes/took taken/taking  suffer:suffer suffers/suffered/suffering
diagnose:diagnose/diagnosed/diagnosing  turn:turn turns/turned/turning  go:go goes/went gone/going  identify:identify identifies/identified/identifying
name:name names/named/naming  call:call calls/called/calling  marry:marry marries/married/marrying  engage:engage/engaged/engaging
divorce:divorce/divorced/divorcing  date:date dates/dated/dating  break:break breaks/broke broken/breaking  get:get gets/got gotten/getting
adopt:adopt adopts/adopted/adopting  buy:buy buys/bought/buying  sell:sell sells/sold/selling  purchase:purchase purchases/purchased/purchasing
lose:lose loses/lost/losing  start:start starts/started/starting  begin:begin begins/began begun/beginning  stop:stop stops/stopped/stopping
give:give gives/gave given/giving  finish:finish finishes/finished/finishing  complete:complete completes/completed/completing
become:become becomes/became/becoming  visit:visit visits/visited/visiting  travel:travel travels/traveled travelled/traveling travelling
fly:fly flies/flew flown/flying  meet:meet meets/met/meeting  see:see sees/saw seen/seeing  watch:watch watches/watched/watching  read:read reads/read/reading
hike:hike hikes/hiked/hiking  climb:climb climbs/climbed/climbing  win:win wins/won/winning  pass:pass passes/passed/passing
celebrate:celebrate celebrates/celebrated/celebrating  die:die dies/died/dying  weigh:weigh weighs/weighed/weighing
serve:serve serves/served/serving  volunteer:volunteer volunteers/volunteered/volunteering  belong:belong belongs/belonged/belonging
cook:cook cooks/cooked/cooking  bake:bake bakes/baked/baking  swim:swim swims/swam swum/swimming  cycle:cycle cycles/cycled/cycling
commute:commute commutes/commuted/commuting  wake:wake wakes/woke woken/waking  exercise:exercise exercises/exercised/exercising
meditate:meditate meditates/meditated/meditating  jog:jog jogs/jogged/jogging  do:do does/did done/doing  make:make makes/made/making
paint:paint paints/painted/painting  sing:sing sings/sang sung/singing  dance:dance dances/danced/dancing  garden:garden gardens/gardened/gardening
need:need needs/needed/needing  believe:believe believes/believed/believing  launch:launch launches/launched/launching
sign:sign signs/signed/signing  fall:fall falls/fell fallen/falling  spend:spend spends/spent/spending  expect:expect expects/expected/expecting
upgrade:upgrade upgrades/upgraded/upgrading  publish:publish publishes/published/publishing  return:return returns/returned/returning
prep:prep/prepped/prepping  foster:foster fosters/fostered/fostering  skate:skate skates/skated/skating
support:support supports/supported/supporting  accept:accept accepts/accepted/accepting  receive:receive receives/received/receiving  earn:earn earns/earned/earning
"""
PRESENT, PAST, ING = TENSES = ("present", "past", "ing")


@cache
def forms() -> dict[str, tuple[str, str]]:
    """Every form of a verb the rules know, with the verb and the tense, and with two letters in the wrong order."""
    table: dict[str, tuple[str, str]] = {}
    lemma, tense = "", 0
    for word in _VERBS.split():
        opens, colon, rest = word.rpartition(":")
        if colon:
            lemma, tense = opens, 0
        first, *others = rest.split("/")
        table.setdefault(first, (lemma, TENSES[tense]))
        for other in others:
            tense += 1
            table.setdefault(other, (lemma, TENSES[tense]))
    return {swapped: form for word, form in table.items() for swapped in _swaps(word)} | table


def _swaps(word: str) -> list[str]:
    """The word with two neighbouring letters in the wrong order, for words long enough that nothing else is meant."""
    return [word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(1, len(word) - 1)] if len(word) >= 5 else []


@dataclass(frozen=True, slots=True)
class Stance:
    """How a verb is said."""

    tense: str = PRESENT
    negated: bool = False
    ended: bool = False
    future: bool = False
    doubted: bool = False
    wished: bool = False
    able: bool = False
    perfect: bool = False
    habit: bool = False
    now: bool = False
    supposed: bool = False
    passive: bool = False


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb with its stance, where its word begins, and where its complement does."""

    lemma: str
    stance: Stance
    word: int
    at: int


_BE = frozenset("am is are was were be been being 'm 're 's m r".split())
_HAVE = frozenset("have has had 've ve having hav".split())
_DO = frozenset("do does did".split())
_AUXILIARIES: Final = {
    **dict.fromkeys(_BE | _DO, "aux"),
    **dict.fromkeys(_HAVE, "perfect"),
    **dict.fromkeys("would could should must 'd shall ought".split(), "wished"),
    **dict.fromkeys("might may".split(), "doubted future"),
    **dict.fromkeys("will 'll gonna".split(), "future"),
    "can": "able",
}
_NOT: Final = frozenset("not n't nt never neither".split())
_SAID: Final = {
    **dict.fromkeys("barely hardly rarely seldom scarcely almost nearly".split(), "supposed"),
    **dict.fromkeys("usually always often typically generally normally regularly sometimes frequently".split(), "habit"),
    **dict.fromkeys("now currently presently".split(), "now"),
    **dict.fromkeys("probably possibly maybe perhaps apparently supposedly".split(), "doubted"),
}
_ADVERBS: Final = frozenset(
    """also really just still actually absolutely totally definitely truly deeply literally especially particularly
    recently finally already only even very pretty quite so too simply genuinely certainly honestly obviously basically
    both all kinda kind sort of officially originally mainly primarily largely personally strongly much secretly mostly
    fully completely seriously super happily proudly lately since long strictly newly once soon right then""".split()
)
_CONTRACTED: Final = {
    "don't": "do", "dont": "do", "doesn't": "does", "doesnt": "does", "didn't": "did", "didnt": "did", "isn't": "is",
    "isnt": "is", "aren't": "are", "arent": "are", "wasn't": "was", "wasnt": "was", "weren't": "were", "haven't": "have",
    "havent": "have", "hasn't": "has", "hasnt": "has", "hadn't": "had", "won't": "will", "wont": "will", "can't": "can",
    "cant": "can", "cannot": "can", "couldn't": "could", "wouldn't": "would", "shouldn't": "should", "ain't": "am",
}  # fmt: skip


@cache
def _token() -> re.Pattern[str]:
    return re.compile(
        r"\s*,?\s*(?P<phrase>(?:no longer|used to|going to|about to|have to|has to|had to|need to|kind of|sort of|at the moment|"
        r"these days)\b)|\s*(?P<word>'(?:m|re|s|ve|d|ll)\b|\w+(?:'t)?)",
        re.IGNORECASE,
    )


def verb_at(text: str, start: int, end: int) -> Verb | None:
    """The verb a stretch begins with, read through its auxiliaries, negations and adverbs."""
    return _Reader(text, end).read(start)


class _Reader:
    """Reads auxiliaries one by one and keeps what they say."""

    def __init__(self, text: str, end: int) -> None:
        self.text, self.end = text, end
        self.said: dict[str, bool] = {}
        self.auxiliary = ""
        self.past = False
        self.stood = 0

    def read(self, at: int) -> Verb | None:
        """The verb from here on; `be` and `have` are the verb themselves where no other follows."""
        for _ in range(9):
            token = _token().match(self.text, at, self.end)
            if token is None:
                break
            phrase, word = (token["phrase"] or "").lower(), (token["word"] or "").lower()
            if phrase == "going to" and not self._verb_follows(token.end()):
                return self._verb("going", at, token.end() - len(" to"))
            if phrase == "used to" and self.auxiliary in _BE:
                return None
            if not (self._phrase(phrase) if phrase else self._word(word, token.end() - len(word))):
                return self._verb(word, at, token.end())
            at = token.end()
        return self._alone(at)

    def _verb_follows(self, at: int) -> bool:
        token = _token().match(self.text, at, self.end)
        word = (token["word"] or "").lower() if token else ""
        return word == "be" or forms().get(word, ("", ""))[1] == PRESENT

    def _phrase(self, phrase: str) -> bool:
        if phrase in ("used to", "no longer"):
            self.said["ended"] = True
        elif phrase == "going to":
            self.said["supposed" if self.past else "future"] = True
        elif phrase in ("about to", "have to", "has to", "had to", "need to"):
            self.said["supposed"] = True
        if phrase in ("used to", "going to"):
            self.auxiliary = "to"
        return True

    def _word(self, word: str, start: int) -> bool:
        """Take in a word that is not yet the verb; false if it is."""
        if word in _CONTRACTED:
            word = _CONTRACTED[word]
            self.said["negated"] = True
        if flags := _AUXILIARIES.get(word):
            self.said |= dict.fromkeys(flags.split(), True)
            self.past = self.past or word in ("was", "were", "did", "had")
            self.auxiliary, self.stood = word, start
        elif word in _NOT:
            self.said["negated"] = not self.said.get("negated", False)
        elif word in _SAID:
            self.said[_SAID[word]] = True
        else:
            return word in _ADVERBS
        return True

    def _verb(self, word: str, at: int, end: int) -> Verb | None:
        lemma, tense = forms().get(word, ("", ""))
        start = end - len(word)
        if self.auxiliary in _BE:
            if tense == ING or (lemma in _PASSIVE and tense == PAST):
                self.said["passive"] = tense == PAST
                return Verb(lemma, self._stance(tense), start, end)
            return self._alone(at)
        if self.auxiliary in _HAVE and word == "got":
            self.said.pop("perfect", None)
            return Verb("have", self._stance(PRESENT), start, end)
        if self.auxiliary in _HAVE:
            if tense == PAST or lemma in ("run", "read", "quit", "become", "come"):
                return Verb(lemma, self._stance(PAST), start, end)
            return self._alone(at)
        if self.auxiliary in _DO and tense != PRESENT:
            return self._alone(at)
        if not lemma:
            return None
        return Verb(lemma, self._stance(PAST if self.past else tense), start, end)

    def _alone(self, at: int) -> Verb | None:
        """The auxiliary as the verb of the clause."""
        for lemma, words in (("be", _BE), ("have", _HAVE), ("do", _DO)):
            if self.auxiliary in words:
                if lemma == "have":
                    self.said.pop("perfect", None)
                return Verb(lemma, self._stance(PAST if self.past else PRESENT), self.stood, at)
        return None

    def _stance(self, tense: str) -> Stance:
        return Stance(tense=tense, **{name: value for name, value in self.said.items() if name != "aux"})


_PASSIVE = frozenset("bear diagnose raise employ hire promote name call retire engage divorce".split())
