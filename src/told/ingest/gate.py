"""Decide without a model which turns may become memories.

Evidence is committed regardless, unless it holds a secret to be rejected. A skipped turn is not
extracted and makes no memory; the receipt gives the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from told.errors import ConfigError, InvalidInput
from told.ingest.messages import SILENT_ROLES, InputTurn, ParsedMessages, get_own_words
from told.model.entry import Evidence
from told.ports import Vault
from told.runtime import lazy_regex
from told.settings import Settings
from told.text import noise, secrets
from told.text.echo import OWN_CHARS_KEY, EchoFilter, OwnText
from told.text.secrets import Secret

SECRETS_KEY = "secrets"
"""Metadata key for the kinds of secrets a turn was allowed to keep."""

SEALED_KEY = "sealed"
"""Metadata key for encrypted secrets by their marks."""

_SEALED_MARK = lazy_regex(r"\[sealed ([0-9a-f]{8}): [^\]]*\]")
ECHO_WARNING = "Text that told itself had put into the prompt was ignored."

GateOutcome = Literal["keep", "skip", "refuse"]


@dataclass(frozen=True, slots=True)
class GateDecision:
    """The decision on a turn: keep, skip (evidence only) or refuse (not even that).

    `turn` is what may be committed, redacted if required. `partial_text` holds the speaker's own
    words if the turn also contains echoes or image text.
    """

    outcome: GateOutcome
    turn: InputTurn
    partial_text: OwnText | None = None
    reason: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def own_text(self) -> OwnText:
        """Return the words of the speaker."""
        return self.partial_text or OwnText.from_text(self.turn.evidence.content)


@dataclass(frozen=True, slots=True)
class GateResult:
    """The decisions on the turns to commit, and receipt rows for the others."""

    decisions: tuple[GateDecision, ...]
    skipped: tuple[Mapping[str, Any], ...]
    warnings: tuple[str, ...]


def apply_gate(
    parsed: ParsedMessages,
    account: str,
    settings: Settings,
    echoes: EchoFilter,
    vault: Vault | None = None,
    *,
    verbatim: bool = False,
) -> GateResult:
    """Decide on every turn; receipt rows are in message order."""
    rows = {row["index"]: row for row in parsed.skipped} if parsed.skipped else {}
    numbers = [number for number in range(len(parsed.turns) + len(rows)) if number not in rows]
    decisions: list[GateDecision] = []
    warnings: dict[str, None] = {}
    for number, turn in zip(numbers, parsed.turns, strict=True):
        decision = decide_turn(turn, account, settings, echoes, vault, verbatim=verbatim)
        if decision.warnings:
            warnings.update(dict.fromkeys(decision.warnings))
        if decision.outcome != "keep":
            rows[number] = {"index": number, "role": turn.evidence.role, "reason": decision.reason}
        if decision.outcome != "refuse":
            decisions.append(decision)
    skipped = tuple(rows[number] for number in sorted(rows)) if rows else ()
    return GateResult(tuple(decisions), skipped, tuple(warnings))


def decide_turn(
    turn: InputTurn,
    account: str,
    settings: Settings,
    echoes: EchoFilter,
    vault: Vault | None = None,
    *,
    verbatim: bool = False,
) -> GateDecision:
    """Decide on a turn; secrets, echoes and prompts are handled even if the gate is off.

    A verbatim turn is never skipped.
    """
    turn, secret_kinds = _protect_secrets(turn, settings.secrets, vault)
    evidence = turn.evidence
    own_part = echoes.strip_echoes(account, evidence.content)
    text = evidence.content if own_part is None else own_part.text
    own_text = (
        echoes.extract_own_text(account, get_own_words(evidence))
        if OWN_CHARS_KEY in evidence.meta
        else own_part
    )
    if secret_kinds and settings.secrets == "reject":
        return GateDecision("refuse", turn, own_text, f"secret: {', '.join(secret_kinds)}")
    warnings = (_format_warning(secret_kinds, settings.secrets),) if secret_kinds else ()
    if len(text) < len(evidence.content) and text:
        warnings = (*warnings, ECHO_WARNING)
    reason = "" if verbatim else _find_skip_reason(turn, text, settings)
    return GateDecision("skip" if reason else "keep", turn, own_text, reason, warnings)


def _find_skip_reason(turn: InputTurn, text: str, settings: Settings) -> str:
    """Return the reason to skip a turn, or an empty string."""
    if turn.evidence.role in SILENT_ROLES:
        return "system message"
    if not text and turn.evidence.content.strip():
        return "echo of recalled memories"
    if turn.evidence.role != "assistant" and noise.is_prompt(text):
        return "system prompt"
    return (
        _find_noise_reason(text, settings)
        if settings.gate and OWN_CHARS_KEY not in turn.evidence.meta
        else ""
    )


def _find_noise_reason(text: str, settings: Settings) -> str:
    if len(text) > settings.ingestion.gate_most:
        return "too long"
    if noise.is_short(text, settings.ingestion.gate_least):
        return "too short"
    if noise.is_filler(text):
        return "nothing but filler words"
    return "infrastructure noise" if noise.is_noise(text) else ""


# Secrets


def screen_text(text: str, settings: Settings) -> tuple[str, tuple[str, ...]]:
    """Return an edited text with secrets handled, and a warning; raise if they are rejected."""
    secret_kinds = secrets.list_secret_kinds(secrets.find_secrets(text))
    if not secret_kinds:
        return text, ()
    if settings.secrets == "reject":
        raise InvalidInput(
            f"The text contains a secret: {', '.join(secret_kinds)}.",
            hint="Leave it out, or keep it in a vault.",
        )
    screened = text if settings.secrets == "keep" else secrets.redact(text)
    return screened, (_format_warning(secret_kinds, settings.secrets),)


def _protect_secrets(
    turn: InputTurn, policy: str, vault: Vault | None
) -> tuple[InputTurn, tuple[str, ...]]:
    """Return a turn with secrets handled, and the kinds found in text, source and metadata."""
    evidence = turn.evidence
    matches = secrets.find_secrets(evidence.content)
    if evidence.name or evidence.source or turn.meta:
        other_texts = (evidence.name, evidence.source, *_iter_strings(turn.meta))
        matches += tuple(
            secret for text in other_texts if text for secret in secrets.find_secrets(text)
        )
    if not matches:
        return turn, ()
    secret_kinds = secrets.list_secret_kinds(matches)
    if policy == "keep":
        flagged = replace(evidence, meta={**evidence.meta, SECRETS_KEY: list(secret_kinds)})
        return replace(
            turn, evidence=flagged, meta={SECRETS_KEY: list(secret_kinds), **turn.meta}
        ), secret_kinds
    content, sealed = (
        _seal_secrets(evidence.content, vault)
        if policy == "encrypt"
        else (secrets.redact(evidence.content), {})
    )
    redacted = replace(
        evidence,
        content=content,
        name=evidence.name and secrets.redact(evidence.name),
        source=evidence.source and secrets.redact(evidence.source),
        meta={**evidence.meta, **_adjust_own_end(evidence, content)},
    )
    meta = _redact_value(turn.meta)
    return replace(
        turn, evidence=redacted, meta={**meta, SEALED_KEY: sealed} if sealed else meta
    ), secret_kinds


def _adjust_own_end(evidence: Evidence, content: str) -> dict[str, int]:
    """Return where the own words end after redaction; 0 if that cannot be determined."""
    if OWN_CHARS_KEY not in evidence.meta:
        return {}
    own_text = secrets.redact(get_own_words(evidence))
    return {OWN_CHARS_KEY: len(own_text) if content.startswith(own_text) else 0}


def _seal_secrets(text: str, vault: Vault | None) -> tuple[str, dict[str, str]]:
    """Replace each secret by a mark; return the text and the sealed values by mark."""
    if vault is None:
        raise ConfigError("Encrypting secrets requires a vault.", hint="Set TOLD_VAULT_KEY.")
    sealed_values: dict[str, str] = {}

    def seal_secret(secret: Secret, plaintext: str) -> str:
        mark = vault.mark(plaintext)
        sealed_values.setdefault(mark, vault.seal(plaintext))
        return f"[sealed {mark}: {secret.kind}]"

    return secrets.redact(text, seal_secret), sealed_values


def reveal_secrets(text: str, meta: Mapping[str, Any], vault: Vault) -> str:
    """Replace the marks in a text by the secrets sealed in its metadata."""
    sealed = meta.get(SEALED_KEY)
    sealed_values = sealed if isinstance(sealed, Mapping) else {}
    return _SEALED_MARK.sub(
        lambda mark_match: (
            vault.open(sealed_values[mark_match[1]])
            if mark_match[1] in sealed_values
            else mark_match[0]
        ),
        text,
    )


def _iter_strings(value: Any) -> Iterator[str]:
    """Iterate over all strings in a metadata value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _iter_strings(member)


def _redact_value(value: Any) -> Any:
    if isinstance(value, str):
        return secrets.redact(value)
    if isinstance(value, dict):
        return {name: _redact_value(member) for name, member in value.items()}
    return [_redact_value(member) for member in value] if isinstance(value, list) else value


def _format_warning(secret_kinds: tuple[str, ...], policy: str) -> str:
    action = {"keep": "kept unencrypted", "encrypt": "encrypted"}.get(policy, "redacted")
    return f"Secrets were {action}: {', '.join(secret_kinds)}."
