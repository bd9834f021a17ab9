"""The gate: what of a turn may become memory, decided without a model in microseconds.

Evidence is committed whatever the gate says of it, as far as it holds no secret that is to be rejected. To skip a turn
is to extract nothing from it and to make no memory of it; the receipt names the reason.
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
"""Where the metadata of a turn whose secrets are kept names their sorts."""

SEALED_KEY = "sealed"
"""Where the metadata of a turn whose secrets are encrypted keeps them, by their marks."""

_SEALED_MARK = lazy_regex(r"\[sealed ([0-9a-f]{8}): [^\]]*\]")
ECHO_WARNING = "What told itself had put into the prompt was left out of what was said."

GateOutcome = Literal["keep", "skip", "refuse"]


@dataclass(frozen=True, slots=True)
class GateDecision:
    """What becomes of a turn: keep it, skip it (evidence only) or refuse it (not even that), and why.

    `turn` is what may be committed: redacted where the policy says so or the turn is refused. `part` are the words in
    it that the speaker said, where told's own were among them, or those of an image.
    """

    outcome: GateOutcome
    turn: InputTurn
    partial_text: OwnText | None = None
    reason: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def own_text(self) -> OwnText:
        """The words that the speaker said."""
        return self.partial_text or OwnText.from_text(self.turn.evidence.content)


@dataclass(frozen=True, slots=True)
class GateResult:
    """What the gate says of an add: a verdict on every turn to commit, and what the receipt says of the others."""

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
    """Judge every turn; the rows of the receipt are in the order of the messages."""
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
    """What becomes of a turn; secrets, echoes and prompts are kept out even where the gate is open.

    A turn that is to be a memory word for word is never skipped, whatever it says.
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
    """Why a turn is skipped; nothing if it is not."""
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
    if len(text) > settings.gate_most:
        return "too long"
    if noise.is_short(text, settings.gate_least):
        return "too short"
    if noise.is_filler(text):
        return "nothing but filler words"
    return "infrastructure noise" if noise.is_noise(text) else ""


# -------------------------------------------------------------------------------------------------------------- secrets


def screen_text(text: str, settings: Settings) -> tuple[str, tuple[str, ...]]:
    """A text that somebody writes over a memory, as it may be kept, and a warning; to reject it is an error here."""
    secret_kinds = secrets.list_secret_kinds(secrets.find_secrets(text))
    if not secret_kinds:
        return text, ()
    if settings.secrets == "reject":
        raise InvalidInput(
            f"The text holds a secret: {', '.join(secret_kinds)}.",
            hint="Leave it out, or keep it in a vault.",
        )
    screened = text if settings.secrets == "keep" else secrets.redact(text)
    return screened, (_format_warning(secret_kinds, settings.secrets),)


def _protect_secrets(
    turn: InputTurn, policy: str, vault: Vault | None
) -> tuple[InputTurn, tuple[str, ...]]:
    """A turn as it may be kept, and the sorts of secrets that were in it: in what was said, its source or metadata."""
    evidence = turn.evidence
    matches = secrets.find_secrets(evidence.content)
    if evidence.name or evidence.source or turn.meta:
        other_texts = (evidence.name, evidence.source, *_iter_strings(turn.meta))
        matches += tuple(
            found_secret
            for text in other_texts
            if text
            for found_secret in secrets.find_secrets(text)
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
    """Where a speaker's own words end now that secrets are marked; what cannot be told apart is an image's."""
    if OWN_CHARS_KEY not in evidence.meta:
        return {}
    own_text = secrets.redact(get_own_words(evidence))
    return {OWN_CHARS_KEY: len(own_text) if content.startswith(own_text) else 0}


def _seal_secrets(text: str, vault: Vault | None) -> tuple[str, dict[str, str]]:
    """A text with a mark in the place of each secret, and what the vault made of them by their marks."""
    if vault is None:
        raise ConfigError(
            "Secrets are to be encrypted, and there is no vault.", hint="Set TOLD_VAULT_KEY."
        )
    sealed_values: dict[str, str] = {}

    def seal_secret(secret: Secret, plaintext: str) -> str:
        mark = vault.mark(plaintext)
        sealed_values.setdefault(mark, vault.seal(plaintext))
        return f"[sealed {mark}: {secret.kind}]"

    return secrets.redact(text, seal_secret), sealed_values


def reveal_secrets(text: str, meta: Mapping[str, Any], vault: Vault) -> str:
    """A text with the secrets that its metadata keeps sealed."""
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
    """Every text inside metadata."""
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
    action = {"keep": "kept as they are, unencrypted", "encrypt": "encrypted"}.get(
        policy, "redacted"
    )
    return f"Secrets were {action}: {', '.join(secret_kinds)}."
