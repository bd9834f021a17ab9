"""Detection of secrets: keys, tokens and passwords by pattern, cards by Luhn, IBANs by mod 97.

Patterns are anchored to prefixes of their issuers, so UUIDs, hashes, commits and phone numbers do
not match. A text without such a prefix costs a few substring searches; every pattern runs in linear
time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import log2
from typing import Final

from told.runtime import lazy_regex


@dataclass(frozen=True, slots=True)
class Secret:
    """A detected secret and its span."""

    kind: str
    start: int
    end: int


def find_secrets(text: str) -> tuple[Secret, ...]:
    """Return the secrets of a text in order; of overlapping ones, the first."""
    lowered = text.lower()
    longest = max(map(len, text.split()), default=0)
    secrets: list[Secret] = []
    if patterns := [
        pattern
        for hint, pattern in _list_hints(min(longest, _MAX_MIN_WORD_LENGTH))
        if hint in lowered
    ]:
        secrets += (
            secret for pattern in dict.fromkeys(patterns) for secret in pattern.find_matches(text)
        )
    if _CARD_OR_IBAN_START.search(text):
        secrets += _find_cards(text)
        secrets += _find_ibans(text)
    return tuple(_drop_overlaps(secrets)) if secrets else ()


def format_redaction(secret: Secret, _: str) -> str:
    """Return the text that replaces a secret."""
    return f"[redacted: {secret.kind}]"


def redact(text: str, replacement: Callable[[Secret, str], str] = format_redaction) -> str:
    """Replace every secret in a text, by default with a note of its kind."""
    parts: list[str] = []
    end = 0
    for secret in find_secrets(text):
        parts += (text[end : secret.start], replacement(secret, text[secret.start : secret.end]))
        end = secret.end
    return "".join((*parts, text[end:]))


def list_secret_kinds(secrets: Iterable[Secret]) -> tuple[str, ...]:
    """Return the distinct kinds of secrets."""
    return tuple(dict.fromkeys(secret.kind for secret in secrets))


def _drop_overlaps(secrets: Iterable[Secret]) -> Iterator[Secret]:
    end = 0
    for secret in sorted(secrets, key=lambda secret: (secret.start, -secret.end)):
        if secret.start >= end:
            yield secret
            end = secret.end


# Randomness

_PLACEHOLDER: Final = lazy_regex(
    r"(?i)^(?:[<{$%*]|x{3,}|\.{3})|^(?:your|my|the|some|a)[_-]|placeholder|example|change_?me|"
    r"redacted|^(?:password|passwd"
    r"|pass|pwd|secret|token|none|null|true|false|undefined|required|optional|string|hidden|"
    r"unknown|test)$"
    r"|^(?:os\.|process\.|env\.|self\.|config\.|settings\.|getenv|ENV\[)|://"
)
_JOINED_WORDS: Final = lazy_regex(r"(?:[A-Za-z]++|\d{1,8}+)(?:[-_./:](?:[A-Za-z]++|\d{1,8}+))*")
_SIZE_LIKE: Final = lazy_regex(r"\d{1,3}[-+]?[a-z]*")
_NOT_IN_WORDS: Final = lazy_regex(r"[^\w\-'.,/:]")
RANDOM_BITS: Final = 3.0
"""The minimum entropy per character of a random key; prose has more, but no digits in words."""


def compute_entropy(text: str) -> float:
    """Return the entropy of a text in bits per character."""
    size = len(text)
    return -sum(count / size * log2(count / size) for count in Counter(text).values())


def _is_random(value: str) -> bool:
    """Return True for mixed letters and digits that are not joined words."""
    is_mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return (
        is_mixed
        and not (_PLACEHOLDER.search(value) or _JOINED_WORDS.fullmatch(value))
        and compute_entropy(value) >= RANDOM_BITS
    )


def _is_password(value: str) -> bool:
    """Return True for digits, or letters with digits or symbols."""
    if _PLACEHOLDER.search(value) or (not value.isdigit() and _SIZE_LIKE.fullmatch(value)):
        return False
    letters, digits = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    return value.isdigit() or (letters and (digits or _NOT_IN_WORDS.search(value) is not None))


def _is_not_placeholder(value: str) -> bool:
    return not _PLACEHOLDER.search(value)


# Patterns


@dataclass(frozen=True, slots=True)
class _SecretPattern:
    """A kind of secret: required substrings and a pattern, whose group `secret` is redacted."""

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    check: Callable[[str], bool] | None = None
    min_word_length: int = 0
    """The minimum length of the text's longest word."""

    def find_matches(self, text: str) -> Iterator[Secret]:
        """Yield every secret of this kind."""
        group = "secret" if "secret" in self.pattern.groupindex else 0
        for match in self.pattern.finditer(text):
            if self.check is None or self.check(match[group]):
                yield Secret(self.kind, *match.span(group))


MIN_KEY_LENGTH: Final = 20
"""The minimum length of a prefixed key; words of prose are shorter."""

_NOT_AFTER_ALNUM: Final = r"(?<![A-Za-z0-9])"
_NOT_BEFORE_ALNUM: Final = r"(?![A-Za-z0-9])"
_B64: Final = "[A-Za-z0-9+/]"
_URL64: Final = "[A-Za-z0-9_-]"

_PREFIXED: Final = (
    ("AWS access key", "akia asia abia acca", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"),
    ("Google API key", "aiza", rf"AIza{_URL64}{{35}}"),
    ("Google OAuth secret", "gocspx-", rf"GOCSPX-{_URL64}{{20,40}}"),
    ("Google access token", "ya29.", rf"ya29\.{_URL64}{{20,1024}}"),
    ("Azure storage key", "accountkey=", rf"AccountKey=(?P<secret>{_B64}{{40,90}}={{0,2}})"),
    (
        "Azure shared access key",
        "sharedaccesskey=",
        (
            rf"SharedAccessKey=(?P<secret>{_B64}{{40,"
            rf"90}}={{0,2}})"
        ),
    ),
    (
        "Azure shared access signature",
        "sig=",
        (
            r"(?<=[?&;])sig=(?P<secret>[A-Za-z0-9%+/]{40,"
            r"128}(?:%3D|=)?)"
        ),
    ),
    ("Azure client secret", "q~", r"[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"),
    ("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{36,255}"),
    ("GitHub token", "github_pat_", r"github_pat_\w{22,255}"),
    (
        "GitLab token",
        "glpat- gldt- glrt- glcbt- glptt- glft-",
        (
            rf"gl(?:pat|dt|rt|cbt|ptt|"
            rf"ft)-{_URL64}{{20,128}}"
        ),
    ),
    ("Slack token", "xox xapp-", r"(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,255}"),
    (
        "Slack webhook",
        "hooks.slack.com",
        (
            r"hooks\.slack\.com/(?:services|"
            r"workflows)/(?P<secret>[A-Za-z0-9/]{20,128})"
        ),
    ),
    ("Stripe key", "k_live_ k_test_ whsec_", r"(?:[spr]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,255}"),
    ("Anthropic API key", "sk-ant-", rf"sk-ant-{_URL64}{{20,255}}"),
    ("Hugging Face token", "hf_", r"hf_[A-Za-z0-9]{30,64}"),
    ("Groq API key", "gsk_", r"gsk_[A-Za-z0-9]{40,64}"),
    ("xAI API key", "xai-", r"xai-[A-Za-z0-9]{60,128}"),
    ("Replicate token", "r8_", r"r8_[A-Za-z0-9]{37,64}"),
    ("npm token", "npm_", r"npm_[A-Za-z0-9]{36,64}"),
    ("PyPI token", "pypi-", rf"pypi-AgE{_URL64}{{50,255}}"),
    ("SendGrid API key", "sg.", rf"SG\.{_URL64}{{16,32}}\.{_URL64}{{32,64}}"),
    ("Mailgun API key", "key-", r"key-[0-9a-f]{32}"),
    ("Mailchimp API key", "-us", r"[0-9a-f]{32}-us\d{1,2}"),
    ("Telegram bot token", ":aa", rf"\d{{8,10}}:AA{_URL64}{{33}}"),
    (
        "Discord webhook",
        "/api/webhooks/",
        (
            rf"com/api/webhooks/(?P<secret>\d{{17,"
            rf"20}}/{_URL64}{{60,80}})"
        ),
    ),
    ("Shopify token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    ("Square token", "sq0", rf"sq0[a-z]{{3}}-{_URL64}{{22,43}}"),
    ("DigitalOcean token", "_v1_", r"do[opr]_v1_[0-9a-f]{64}"),
    ("Databricks token", "dapi", r"dapi[0-9a-f]{32}"),
    ("Docker token", "dckr_pat_", rf"dckr_pat_{_URL64}{{20,64}}"),
    ("Vault token", "hvs. hvb.", rf"hv[sb]\.{_URL64}{{24,255}}"),
    ("Terraform token", ".atlasv1.", rf"[A-Za-z0-9]{{14}}\.atlasv1\.{_URL64}{{60,80}}"),
    ("Linear API key", "lin_api_", r"lin_api_[A-Za-z0-9]{40,64}"),
    ("Notion token", "secret_ ntn_", r"(?:secret_[A-Za-z0-9]{43}|ntn_[A-Za-z0-9]{40,64})"),
    ("Airtable token", "pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("Grafana token", "glsa_", r"glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}"),
    ("Sentry token", "sntrys_ sntryu_", r"sntry[su]_[A-Za-z0-9+/=_-]{40,512}"),
    ("New Relic key", "nrak-", r"NRAK-[A-Z0-9]{27}"),
    ("age key", "age-secret-key-", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
)

_KEY_NAME: Final = (
    r"(?:(?:api|secret|access|auth|private|encryption|signing|account|license)[ _-]?key(?:[ "
    r"_-]?id)?"
    r"|(?:(?:auth|access|refresh|session|bot|api|bearer|id)[ _-]?)?(?<![a-z])token"
    r"|(?:(?:client|app|webhook|signing|shared|jwt)[ _-]?)?(?<![a-z])secret|(?<![a-z])credentials?)"
)
_LOGIN_NAME: Final = (
    r"(?:password|passwd|passphrase|passcode|passwort|kennwort|contrase\u00f1a|mot de passe|"
    r"(?<![a-z])pwd)"
)
_ASSIGNMENT: Final = (
    r"[\"'`*]{0,3}(?:\s{0,3}(?:={1,2}>?|:=?)|\s{1,3}(?:is|ist|lautet|es|"
    r"est)\s?:?(?=\s))\*{0,2}\s{0,3}[\"'`]?"
)
# A name followed by a bracket is a call that returns the password.
_PASSWORD_VALUE: Final = (
    r"(?P<secret>(?![\w.]{1,128}\()[^\s\"'`,;<>()\[\]{}]{3,128}[^\s\"'`,;<>()\[\]{}.!?:*])"  # noqa: S105
)
_DATABASES: Final = (
    "postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?|mssql|sqlserver|oracle|clickhouse|"
    "neo4j|bolt"
)
_URL_PASSWORD: Final = (
    r"(?:\+[a-z0-9]{1,16})?://[^\s:/@?#]{0,128}:(?P<secret>[^\s/@?#]{1,256})@(?=[\w\[])"  # noqa: S105
)
_FENCE_BODY: Final = r"[^-]*+(?:-(?!----)[^-]*+)*"

_PATTERNS: Final = (
    *(
        _SecretPattern(
            kind,
            tuple(hints.split()),
            lazy_regex(f"{_NOT_AFTER_ALNUM}{pattern}{_NOT_BEFORE_ALNUM}"),
            _is_not_placeholder,
            MIN_KEY_LENGTH,
        )
        for kind, hints, pattern in _PREFIXED
    ),
    _SecretPattern(
        "OpenAI API key",
        ("sk-",),
        lazy_regex(
            rf"{_NOT_AFTER_ALNUM}sk-(?!ant-)(?:[a-z]{{2,"
            rf"8}}-(?:v\d-)?)?{_URL64}{{20,255}}"
        ),
        _is_random,
        MIN_KEY_LENGTH,
    ),
    _SecretPattern(
        "Twilio API key",
        ("sk",),
        lazy_regex(f"{_NOT_AFTER_ALNUM}SK[0-9a-f]{{32}}{_NOT_BEFORE_ALNUM}"),
        None,
        34,
    ),
    _SecretPattern(
        "Discord bot token",
        (".",),
        lazy_regex(
            rf"(?<![\w.-])[MNO]{_URL64}{{23,27}}\.{_URL64}{{6}}\.{_URL64}{{27,"
            rf"40}}(?![\w.-])"
        ),
        _is_random,
        58,
    ),
    _SecretPattern(
        "JSON web token",
        ("eyj",),
        lazy_regex(rf"(?<![\w-])eyJ{_URL64}{{8,}}+\.eyJ{_URL64}{{8,}}+\.{_URL64}{{8,}}+"),
        None,
        30,
    ),
    _SecretPattern(
        "private key",
        ("private key",),
        lazy_regex(
            rf"-----BEGIN [A-Z0-9 ]{{0,32}}PRIVATE KEY(?: BLOCK)?-----"
            rf"(?:{_FENCE_BODY}-----END [A-Z0-9 ]{{0,32}}PRIVATE KEY(?: BLOCK)?-----"
            r"|(?:\s++|\\n|[A-Za-z0-9+/=]{20,}+)*)"
        ),
        None,
        10,
    ),
    _SecretPattern(
        "private key",
        ("putty-user-key-file",),
        lazy_regex(
            rf"PuTTY-User-Key-File-\d:[^\n]{{0,64}}\n(?:[A-Za-z-]{{4,20}}+:[^\n]{{0,128}}+\n|"
            rf"{_B64}{{1,64}}+={{0,2}}+\n?+)*"
        ),
        None,
        MIN_KEY_LENGTH,
    ),
    _SecretPattern(
        "database password",
        ("://",),
        lazy_regex(
            rf"(?i){_NOT_AFTER_ALNUM}(?:"
            rf"{_DATABASES}){_URL_PASSWORD}"
        ),
        _is_not_placeholder,
        9,
    ),
    _SecretPattern(
        "password in a URL",
        ("://",),
        lazy_regex(
            rf"(?i)(?<![a-z0-9+.-])[a-z][a-z0-9.-]{{1,"
            rf"20}}{_URL_PASSWORD}"
        ),
        _is_not_placeholder,
        9,
    ),
    _SecretPattern(
        "bearer token",
        ("bearer",),
        lazy_regex(
            r"(?i)\bbearer\s{1,3}(?P<secret>[A-Za-z0-9._~+/=-"
            r"]{20,2048})"
        ),
        _is_random,
        MIN_KEY_LENGTH,
    ),
    _SecretPattern(
        "basic credentials",
        ("authorization",),
        lazy_regex(
            rf"(?i)authorization[\"']?\s{{0,3}}[:=]\s{{0,3}}[\"']?basic\s{{1,"
            rf"3}}(?P<secret>{_B64}{{6,512}}={{0,2}})"
        ),
        None,
        13,
    ),
    _SecretPattern(
        "AWS secret key",
        ("aws", "secretaccesskey"),
        lazy_regex(
            rf"(?i)secret_?(?:access_?)?key{_ASSIGNMENT}(?P<secret>{_B64}{{40}})"
            rf"{_NOT_BEFORE_ALNUM}"
        ),
        _is_random,
        40,
    ),
    _SecretPattern(
        "password",
        ("passw", "passphrase", "passcode", "kennwort", "contrase", "mot de passe", "pwd"),
        lazy_regex(rf"(?i){_LOGIN_NAME}{_ASSIGNMENT}{_PASSWORD_VALUE}"),
        _is_password,
    ),
    _SecretPattern(
        "key or token",
        ("key", "token", "secret", "credential"),
        lazy_regex(
            rf"(?i){_KEY_NAME}{_ASSIGNMENT}(?P<secret>[A-Za-z0-9_\-./+=~!@#$%^&*|"
            rf":]{{12,512}})"
        ),
        _is_random,
        12,
    ),
    _SecretPattern(
        "social security number",
        ("ssn", "social security"),
        lazy_regex(
            r"(?i)(?:\bssn|social security(?: number)?)\b\D{0,12}(?P<secret>\d{3}[- "
            r"]?\d{2}[- ]?\d{4})(?!\d)"
        ),
    ),
)


_MAX_MIN_WORD_LENGTH: Final = max(shape.min_word_length for shape in _PATTERNS)


@lru_cache(maxsize=_MAX_MIN_WORD_LENGTH + 1)
def _list_hints(longest: int) -> tuple[tuple[str, _SecretPattern], ...]:
    """Return the required substrings and patterns for a longest word of this length."""
    return tuple(
        (hint, shape)
        for shape in _PATTERNS
        if shape.min_word_length <= longest
        for hint in shape.hints
    )


# Payment cards and bank accounts

_CARD_OR_IBAN_START: Final = re.compile(
    "[0-9][0-9](?:[0-9][0-9][ -]?[0-9]{4}[0-9 -]{4}|(?<=[A-Z][A-Z]..))"
)
"""The start of every card number (twelve digits) or IBAN (two letters, two digits)."""

# A pattern that begins with a character set scans faster than one with a lookbehind.
_CARD: Final = re.compile(
    r"[2-6](?<![\w.,+/#-].)\d{3}(?:(?P<four>[ -]?)\d{4}(?P=four)\d{4}(?P=four)\d{4}|(?P<six>[ "
    r"-]?)\d{6}(?P=six)\d{4,5})"
    r"(?![\w/-]|[.,]\d)"
)
_ISSUER: Final = lazy_regex(
    r"(?:4|5[1-5]|2(?:22[1-9]|2[3-9]|[3-6]|7[01]|720)|6(?:011|5|4[4-9]|2)|35(?:2[89]|[3-8]))\d*"
    r"|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}"
)


def _find_cards(text: str) -> Iterator[Secret]:
    for match in _CARD.finditer(text):
        digits = match[0].replace(" ", "").replace("-", "")
        if digits.isascii() and _ISSUER.fullmatch(digits) and is_luhn_valid(digits):
            yield Secret("payment card", *match.span())


def is_luhn_valid(digits: str) -> bool:
    """Return True if the Luhn check digit is correct."""
    doubled = (int(digit) * (2 if place % 2 else 1) for place, digit in enumerate(reversed(digits)))
    return sum(sum(divmod(value, 10)) for value in doubled) % 10 == 0


_IBAN_LENGTHS: Final = {
    row[:2]: int(row[2:])
    for row in """AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22
        DK18 DO28 EE20 EG29 ES24 FI18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23
        IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MR27
        MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SD18 SE24 SI19 SK24 SM27
        ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20""".split()
}
_IBAN: Final = re.compile(
    r"[A-Z](?<![A-Za-z0-9].)[A-Z]\d{2}(?=(?P<rest>(?: ?[A-Z0-9]){11,28}))", re.ASCII
)


def _find_ibans(text: str) -> Iterator[Secret]:
    for match in _IBAN.finditer(text):
        start = match.start()
        size = _find_iban_end(match[0] + match["rest"], _IBAN_LENGTHS.get(match[0][:2], 0))
        if size and not text[start + size : start + size + 1].isalnum():
            yield Secret("bank account", start, start + size)


def _find_iban_end(text: str, length: int) -> int:
    """Return the end of a valid IBAN, spaces included, or 0."""
    positions = [i for i, char in enumerate(text) if char != " "][:length]
    number = "".join(text[i] for i in positions)
    return (
        positions[-1] + 1 if length and len(positions) == length and is_mod97_valid(number) else 0
    )


def is_mod97_valid(number: str) -> bool:
    """Return True if the IBAN check digits are correct."""
    return int("".join(str(int(char, 36)) for char in number[4:] + number[:4])) % 97 == 1
