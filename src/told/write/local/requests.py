"""How somebody wants to be spoken to: "call me Sam", "please answer in short sentences", "no emojis"."""

from __future__ import annotations

import re
from functools import cache

from told.write.local.said import Said
from told.write.local.speaker import titled
from told.write.local.value import Value, is_name, trimmed, until

_STYLE = (
    r"short|brief|concise|long|detailed|simple|plain|formal|informal|casual|direct|friendly|polite|bullet(?:s|ed)?|bullet[- ]points?|lists?|tables?|"
    r"markdown|sentences?|paragraphs?|words?|emojis?|jargon|humou?r|jokes?|sarcasm|examples?|code|step[- ]by[- ]step|english|german|french|spanish|"
    r"italian|portuguese|dutch|polish|russian|chinese|japanese|korean|hindi|arabic|turkish|swedish|technical|layman'?s|metric|imperial|celsius|fahrenheit|"
    r"24[- ]hour|first name|british|american|terse|succinct|blunt|honest|professional|professionally|lowercase|straightforward|straight|lengthy|summar(?:y|ies)|"
    r"references|sources|citations|explanations?|preamble|disclaimers?|apologi[sz]\w*|fluff|filler|pleasantries|deutsch|français|español|exclamation"
)
_REPLIES = r"(?:answers?|repl(?:y|ies)|responses?|explanations?|messages|summaries|it|things)"
_ORDERS = (
    rf"(?:please\s+|pls\s+|plz\s+|always\s+|from now on,?\s+|in (?:the )?future,?\s+|going forward,?\s+|can you (?:please\s+)?|could you (?:please\s+)?|you (?:can|should|must)\s+|i(?:'d| would) (?:like|want) you to\s+|i want you to\s+|only\s+|just\s+)*",
    r"(?P<verb>answer|reply|respond|speak|talk|write|communicate|explain|keep|be|use|give|make|avoid|stick|format|address|don't|do not|never|stop|no|skip|limit|omit|respond)\b",
)


@cache
def _order() -> re.Pattern[str]:
    return re.compile("".join(_ORDERS), re.IGNORECASE)


@cache
def _styled() -> re.Pattern[str]:
    return re.compile(
        rf"(?:(?:answer|reply|respond|communicate|speak|talk|write|explain)(?:\s+(?:to|with)\s+me|\s+things|\s+everything|\s+back)?\s+(?:always\s+|only\s+)?(?:in|with|using|like|more|less|without|as)\s+(?:\S+\s+){{0,4}}?(?:{_STYLE})\b"
        rf"|keep\s+(?:your\s+|the\s+|all\s+)*{_REPLIES}\s+(?:\S+\s+){{0,3}}?(?:{_STYLE}|under\s+\d+\s+words)\b"
        rf"|be\s+(?:(?:more|less|very|extra|as|a\s+bit\s+more|brutally|completely|always)\s+)*(?:{_STYLE})\b"
        rf"|(?:use|give\s+me|make\s+(?:your\s+)?{_REPLIES}|format\s+(?:your\s+)?{_REPLIES}\s+(?:as|in|with)|stick\s+to|limit\s+(?:your\s+)?{_REPLIES}\s+to)\s+(?:\S+\s+){{0,3}}?(?:{_STYLE})\b(?!\s+to\b)"
        rf"|(?:don't|do\s+not|never|stop|avoid|no|skip|omit)\s+(?:(?:use|using|add|adding|include|including|write|writing|give|giving|me|any|the|more|so\s+many|too\s+many|long|be|with)\s+)*(?:{_STYLE})\b)",
        re.IGNORECASE,
    )


@cache
def _call() -> re.Pattern[str]:
    return re.compile(
        r"(?:(?:please|just|but|and|you can|you may|feel free to|my friends|friends|everyone|everybody|most people|people|they all|they|my family|folks)\s+)*"
        r"calls?\s+me\s+(?P<name>[^\W\d_][\w'.-]*(?:\s+(?-i:[A-Z])[\w'.-]*)?)(?!\s+(?:if|when|back|at|on|tomorrow|later|later)\b)",
        re.IGNORECASE,
    )


@cache
def _called() -> re.Pattern[str]:
    return re.compile(r"i\s+(?:prefer|like|want|go)\s+(?:to\s+be\s+called|being\s+called|by)\s+(?P<name>[^\W\d_][\w'.-]*)", re.IGNORECASE)


_NO_NICKNAMES = frozenset("crazy back later when if at on names old tomorrow today maybe asap anytime stupid a an the out up in lazy".split())


def nickname(text: str, start: int, end: int, speaker: str) -> Said | None:
    """What "call me Sam" says."""
    found = _call().match(text, start, end) or _called().match(text, start, end)
    if found is None or found["name"].lower() in _NO_NICKNAMES or not is_name(found["name"]):
        return None
    name = titled(found["name"])
    return Said(speaker, "nickname", name, f"{speaker} goes by {name}", start, found.end("name"))


def reply_style(text: str, start: int, end: int, speaker: str) -> Said | None:
    """How the assistant is asked to speak, from now on rather than about one thing."""
    order = _order().match(text, start, end)
    if order is None or not _styled().match(text, order.start("verb"), end):
        return None
    value: Value = trimmed(text, order.start("verb"), _stop(text, order.start("verb"), end), article=False)
    if not value.text or len(value.text.split()) > 14 or re.search(r"\b(?:this|that|these|following|above|below|the (?:code|function|text|article|email|question))\b", value.text, re.IGNORECASE):
        return None
    return Said(speaker, "reply_style", value.text, f"{speaker} asks the assistant to {_order_text(value.text)}", start, value.end)


def _stop(text: str, start: int, end: int) -> int:
    found = re.compile(r"[.;!?\n]|,\s*(?:please|thanks|and\b|i\b|because|so\b)|\s+(?:because|since|please|thanks|when|if)\b", re.IGNORECASE).search(text, start, end)
    return found.start() if found else end


def _order_text(value: str) -> str:
    low = value[0].lower() + value[1:]
    low = re.sub(r"^(?:don't|do not|never|no|skip|omit)\s+", lambda word: "avoid " if word[0].lower().startswith(("no ", "skip", "omit")) else "not ", low)
    return re.sub(r"\bme\b", "them", re.sub(r"\byour\b", "its", low))
