"""Detection of texts not worth remembering: greetings, machine output and prompts.

Each test is deliberately narrow. A short meaningful text ("Call Bob", "likes tea") passes none of
them, and a text of several lines is noise only if every line is.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any, Final

from told.runtime import lazy_regex
from told.text.tokens import STOP_WORDS, normalise_text

# Filler

_FILLER_WORDS: Final = frozenset(
    """hello hi hey hiya heya howdy yo greetings goodbye bye byebye cheers thanks thank thx thankyou
        ty tysm please pls sorry pardon oops whoops welcome ok okay okey okie k kk alright alrighty
        sure cool nice great awesome perfect excellent amazing wonderful lovely fantastic brilliant
        good fine gotcha understood noted roger ack acknowledged right exactly indeed agreed wow
        whoa yay hooray congrats congratulations haha hahaha lol lmao rofl hehe heh ha hmm hm mm mhm
        mmhm uh um uhm er ah aha oh ooh huh phew ugh meh well anyway hallo servus moin tschüss
        tschuess tschau ciao danke dankeschön bitte gerne gern genau klar gut prima super toll
        entschuldigung verstanden okidoki ach naja guten hola adiós adios gracias vale bueno bien
        claro perfecto genial perdón perdon disculpa disculpe buenos buenas bonjour bonsoir salut
        merci oui d'accord parfait super coucou pardon désolé salve buongiorno buonasera grazie
        prego scusa olá ola oi obrigado obrigada tchau bom boa dag hoi doei bedankt dank привет
        здравствуйте спасибо пока хорошо 你好 您好 嗨 谢谢 謝謝 好的 好 再见 再見 嗯 哈哈 明白
        こんにちは こんばんは おはよう おはようございます ありがとう ありがとうございます さようなら
        はい わかりました 안녕 안녕하세요 감사합니다 고마워 네""".split()
)
"""Words without content."""

_FILLER_COMPANIONS: Final = STOP_WORDS | frozenset(
    """yes yeah yep yup ya no nope nah not morning afternoon evening night day dear much many lot
        bunch everyone everybody all there again mate buddy bro dude man guys friend folks team sir
        madam claude chatgpt assistant ai bot really very pretty super best wishes regards kind see
        later soon take care have had you're i'm it's that's let's sounds looks going doing help
        morgen tag abend nacht vielen lieben sehr schön schon wie geht es dir ihnen mir alles auf
        wiedersehen bis bald später liebe lieber grüße gruß herzlichen viele ja nein und auch ich
        ist das dann na días dias tardes noches muchas muchos mil cómo como estás estas está qué que
        tal todo muy hasta luego pronto señor señora sí si no y el la de por favor beaucoup bien
        comment allez vous ça ca va à bientôt plus tard s'il plaît monsieur madame et toi tout très
        come stai bene molto e tu dia noite tarde muito tudo bem goed goede dank je wel""".split()
)
"""Words without content beside a filler word."""

_BARE_QUESTIONS: Final = frozenset("what why how who where when so and but".split())
_VERBS: Final = frozenset(
    "am are be been can could did do does had has have is shall should was were will would".split()
)
"""Verbs that make a sentence of stop words; without one they may be a title ("The Who")."""

_REACTIONS: Final = frozenset(
    "👍👎👌🙏👏🙌💪🤝❤💕😀😁😂🤣😃😄😅😆😉😊😋😎😍🥰😘🙂🤗🤔😐😢😭😡🎉🔥💯✅✨🤷\ufe0f\u200d"
)
_MAX_FILLER_LENGTH: Final = 80
"""Longer texts are never filler."""

_WORD: Final = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")


def is_short(text: str, minimum: int) -> bool:
    """Return True if a text has fewer letters and digits than a minimum.

    A pictograph or an ideographic character counts as three.
    """
    for char in text:
        if minimum <= 0:
            return False
        if char.isalnum() or (char > "\u2000" and unicodedata.category(char) == "So"):
            minimum -= 3 if char > "\u2e7f" else 1
    return minimum > 0


def is_filler(text: str) -> bool:
    """Return True for a greeting, thanks, an "ok", a reaction or a sentence of stop words."""
    if len(text) > _MAX_FILLER_LENGTH:
        return False
    words = []
    for match in _WORD.finditer(normalise_text(text).replace("\u2019", "'")):
        word = match[0]
        if word == "not" or not (word in _FILLER_WORDS or word in _FILLER_COMPANIONS):
            return False
        words.append(word)
    if not words:
        return bool(text) and _REACTIONS.issuperset("".join(text.split()))
    is_empty = any(word in _FILLER_WORDS for word in words) or _is_empty_sentence(words, text)
    return is_empty and not _has_capitalised_name(text)


def _is_empty_sentence(words: list[str], text: str) -> bool:
    """Return True if stop words form a sentence or a question ("and you?")."""
    if len(words) == 1:
        return words[0] in _BARE_QUESTIONS
    return ("?" in text or not _VERBS.isdisjoint(words)) and all(
        word in STOP_WORDS for word in words
    )


_CAPITAL: Final = lazy_regex(r"(?<=[a-z,;] )[A-Z][a-z]+|\b[A-Z]{2,}\b")


def _has_capitalised_name(text: str) -> bool:
    """Return True if a stop word is written as a name ("I saw The Who", "I do IT")."""
    return not text.isupper() and any(word.lower() in STOP_WORDS for word in _CAPITAL.findall(text))


# Noise

_LOG_LEVEL: Final = r"(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|ERR|FATAL|CRITICAL|SEVERE)"
_LOG_TIMESTAMP: Final = r"\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d)?[\d.,Z+:-]*\]?"
_NETWORK_ERROR: Final = (
    r"(?:E(?:CONNREFUSED|CONNRESET|CONNABORTED|TIMEDOUT|NOTFOUND|PIPE|HOSTUNREACH|AI_AGAIN)"
    r"|connection (?:was )?(?:refused|reset|closed|aborted|lost|timed ?out|time-?out|error|"
    r"failed)(?: by peer)?"
    r"|(?:request|read|connect|gateway|operation|socket|upstream)? ?time(?:d ?|-)?out|socket "
    r"hang ?up|broken pipe"
    r"|network (?:error|is unreachable|unreachable)|no route to host|name or service not known"
    r"|temporary failure in name resolution|(?:could not|couldn't|cannot|failed to|unable to) "
    r"(?:connect|fetch|reach)"
    r"|max retries exceeded|service (?:temporarily )?unavailable|bad gateway|internal server "
    r"error|too many requests"
    r"|rate limit(?:ed| exceeded| reached)|(?:server )?overloaded(?:_error)?|unexpected eof)"
)
_ERROR_PREFIX: Final = (
    r"(?:(?:[\w.]+(?:Error|Exception)|error|errno|fetch failed)[:\s]{1,3})?(?:\[errno "
    r"-?\d+\]\s?)?(?:[45]\d\d:?\s)?"
    r"(?:(?:connect|read|write|getaddrinfo)\s(?=E[A-Z]))?"
)
_HEARTBEAT_STATUS: Final = (
    r"(?:ok|ack|received|sent|passed|failed|success(?:ful)?|alive|healthy|probe|check|"
    r"\d{1,12}(?:ms|s)?)"
)
_HEARTBEAT_LINES: Final = (
    (
        rf"(?i:(?:heart-?beat|ping|pong|keep-?alive|health[- ]?check|no_reply|ack)(?:[ "
        rf"_:.-]{{1,3}}{_HEARTBEAT_STATUS})*)[.!]?"
    ),
    r"(?i:status|health|state)\s?[:=]\s?(?i:ok|up|healthy|alive|200|green|ready|running)[.!]?",
    r"(?i:null|undefined|nan|\[object object\]|\(no output\)|no output|<no output>|\(empty\))",
)
_LOG_LINES: Final = (
    rf"{_LOG_TIMESTAMP}\s.{{0,2000}}\b{_LOG_LEVEL}\b.{{0,2000}}",
    rf"\[{_LOG_LEVEL}\].{{0,2000}}",
    rf"{_LOG_LEVEL}:[\w.]+:.{{0,2000}}",
    rf"{_LOG_LEVEL}\s+\[?{_LOG_TIMESTAMP}.{{0,2000}}",
    r"\w{3} {1,2}\d{1,2} \d\d:\d\d:\d\d \S+ [\w./-]+(?:\[\d+\])?: .{0,2000}",
    r"HTTP(?:/\d(?:\.\d)?)? [1-5]\d\d(?: [A-Za-z -]{0,40})?[.!]?",
    (
        r"(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) /\S{0,500}(?: HTTP/\d(?:\.\d)?)?(?:[\" "
        r"-]+[1-5]\d\d\b.{0,200})?"
    ),
    r"\d{1,3}(?:\.\d{1,3}){3} \S+ \S+ \[[^\]]{10,40}\] .{0,1000}",
    r"npm (?:WARN|ERR!|notice)\b.{0,500}",
)
_ERROR_LINES: Final = (
    (
        rf"(?i:{_ERROR_PREFIX}{_NETWORK_ERROR})(?:[.!]?|[:;,(].{{0,300}}|\s\S{{1,80}}:\d+|\s(?i:to|"
        rf"from|while|after|at|by|for|on|with|due)\b.{{0,200}})"
    ),
    r"(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Interrupt|Exit)(?:: .{0,1000})?",
)
_FILE_CHANGE_VERBS: Final = "(?:created|updated|written|saved|deleted)"
_TOOL_LINES: Final = (
    (
        r"(?i:(?:the )?(?:command|process|tool|task|job|script)(?: call)? (?:has )?"
        r"(?:completed|finished|exited|succeeded|ran)(?: successfully)?"
        r"(?: with(?:out)? (?:exit )?(?:code|status|output|errors?):?(?: -?\d+)?)?)[.!]?"
    ),
    r"(?i:exit(?:ed)? (?:with )?(?:code|status)\s?[:=]?\s?-?\d+)[.!]?",
    (
        rf"(?i:(?:the )?file (?:was |has been )?{_FILE_CHANGE_VERBS}(?: successfully)?(?: (?:at|"
        rf"to):? \S{{1,300}})?)[.!]?"
    ),
    r"(?i:(?:todos|the todo list) ha(?:ve|s) been (?:modified|updated)(?: successfully)?).{0,200}",
    (
        r"\[(?i:request interrupted|tool use|tool result|image|compacted|truncated|"
        r"system)\b[^\]]{0,100}\]"
    ),
    (
        r"(?i:done|finished|completed|built|compiled)(?: successfully)? in \d+(?:\.\d+)? "
        r"?m?s(?:ec(?:onds)?)?[.!]?"
    ),
    r"[\[|]?[#=>.█▓▒░ -]{4,}[\]|]?\s{0,3}\d{1,3}(?:\.\d+)?%.{0,100}",
)
_CODE_LOCATION: Final = (
    r"(?:[\w./\\:@-]{1,300}:\d+(?::\d+)?|native|Native Method|Unknown Source|<anonymous>)"
)
_STACK_LINES: Final = (
    r"Traceback \(most recent call last\):",
    r"File \"[^\"]{1,300}\", line \d+(?:, in \S{1,200})?",
    rf"at (?:async |new )?[\w$.<>/ \[\]]{{1,200}}\(?{_CODE_LOCATION}\)?",
    r"(?:Caused by|Suppressed): [\w.$]+(?:: .{0,1000})?",
    r"\.\.\. \d+ (?:more|common frames omitted)",
    r"(?:The above exception was|During handling of the above exception).{0,100}",
    r"(?:goroutine \d+ \[[\w ,]{1,40}\]:|panic: .{0,500}|thread '[^']{1,80}' panicked at .{0,500})",
    r"[~^]+",
)
_NOISE: Final = lazy_regex(
    "|".join(
        f"(?:{line})"
        for line in (*_HEARTBEAT_LINES, *_LOG_LINES, *_ERROR_LINES, *_TOOL_LINES, *_STACK_LINES)
    )
)
_TRACEBACK: Final = lazy_regex(
    r"Traceback \(most recent call last\)|^\s+at \S|^\s+File \"|^goroutine \d", re.MULTILINE
)
_EXCEPTION_LINE: Final = lazy_regex(
    r"(?:Uncaught )?(?:Error|Exception)(?: in thread \S{1,80})?(?:: .{0,1000})?"
)
_ALIVE_VALUES: Final = frozenset(
    "ping pong heartbeat ok okay ack alive healthy success up true pass green ready keepalive "
    "keep-alive noop".split()
)
_STATUS_KEYS: Final = frozenset(
    "type event status state op kind ok health message msg result success code ping pong".split()
)
_METADATA_KEYS: Final = frozenset(
    """id ts t time timestamp seq uptime version v service host pid request_id requestid trace_id
        latency duration ms""".split()
)
_NUMERIC_STATUS_KEYS: Final = frozenset("status ok success code".split())


def is_noise(text: str) -> bool:
    """Return True if every line is machine output: a log, heartbeat, error or stack frame."""
    stripped = text.strip()
    if stripped.startswith(("{", "[")) and _is_ping(text):
        return True
    first, _, rest = stripped.partition("\n")
    first = first.rstrip()
    is_noise_line = _NOISE.fullmatch(first) is not None
    if not (is_noise_line or _EXCEPTION_LINE.fullmatch(first)):
        return False
    is_traceback = bool(rest) and _TRACEBACK.search(text) is not None
    if not (is_noise_line or is_traceback):
        return False
    lines = (line for line in rest.splitlines() if line.strip())
    return all(
        (is_traceback and line[0].isspace()) or _NOISE.fullmatch(line.strip()) for line in lines
    )


def _is_ping(text: str) -> bool:
    """Return True if a JSON text is only a heartbeat."""
    if len(text) > 2000:
        return False
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if not data or not isinstance(data, dict):
        return not data
    members = {name.lower(): value for name, value in data.items()}
    status_keys = members.keys() - _METADATA_KEYS
    return bool(status_keys) and all(_is_alive_member(name, members[name]) for name in status_keys)


def _is_alive_member(name: str, value: Any) -> bool:
    """Return True if a JSON member reports "alive", as text or as a status number."""
    is_alive = (
        value is None
        or value is True
        or (isinstance(value, str) and value.lower() in _ALIVE_VALUES)
    )
    return name in _STATUS_KEYS and (
        is_alive or (name in _NUMERIC_STATUS_KEYS and isinstance(value, int))
    )


# Prompts

_BOOT_FILE: Final = lazy_regex(
    r"""(?ix)\A\s*(?:
        (?:<[!]--.{0,200}?-->\s*)?\#\s*(?:AGENTS?|CLAUDE|GEMINI|SOUL|TOOLS|HEARTBEAT
            |BOOT(?:STRAP)?|SKILL|IDENTITY)\.md\b
      | (?:contents?\ of\ |file:?\ )\S{0,300}(?:AGENTS?|CLAUDE|GEMINI|SKILL)\.md\b
      | (?:contents?\ of\ |file:?\ )\S{0,300}(?:copilot-instructions\.md|\.cursorrules
          |\.windsurfrules)
      | <(?:system|system[-_]reminder|system[-_]prompt|instructions|user_instructions
          |environment_context)>
      | (?:\[system\]|system\ prompt:|\#{1,3}\ system\ prompt\b|<\|(?:im_start\|>)?system)
      | \#{0,3}\ ?(?:this\ file|the\ following)\ provides\ guidance\ to\ (?:claude|ai|agents|coding)
    )"""
)
_GUIDANCE_PHRASE: Final = "file provides guidance to claude code"
_GUIDANCE_SEARCH_LENGTH: Final = 2000
_PERSONA: Final = lazy_regex(
    r"""(?ix)\A\s*(?:\#{1,3}\ [^\n]{0,60}\n\s*)?
        (?:(?:you\ are|act\ as|du\ bist|eres|tu\ es)\ (?:now\ )?(?:[\w-]+,\ )?
           (?:an?|the|eine?|un[ae]?)\ (?:[\w,'-]+\ ){0,8}?
           (?:assistant|agent|ai|chatbot|bot|language\ model|llm|copilot|assistent|asistente)
          |you\ are\ (?:chatgpt|claude|gemini|copilot))\b"""
)
_FIRST_PERSON: Final = lazy_regex(
    r"(?i)\b(?:i|i'm|i've|i'd|i'll|my|mine|ich|mein\w*|yo|mis?|je|j'ai|mon|ma)\b"
)


def is_prompt(text: str) -> bool:
    """Return True for a system prompt or a boot file such as AGENTS.md, whatever its role.

    A prompt never speaks in the first person ("You are a great assistant, I owe you one").
    """
    if _BOOT_FILE.match(text) or _GUIDANCE_PHRASE in text[:_GUIDANCE_SEARCH_LENGTH].lower():
        return True
    return _PERSONA.match(text) is not None and not _FIRST_PERSON.search(
        text.replace("\u2019", "'")
    )
