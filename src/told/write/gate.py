"""The gate: what of a turn may become memory, decided without a model in microseconds.

Evidence is committed whatever the gate says of it, as far as it holds no secret that is to be rejected. To skip a turn
is to extract nothing from it and to make no memory of it; the receipt names the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from told.core import noise, secrets
from told.core.echo import Echoes, Own
from told.core.entry import Evidence
from told.core.errors import ConfigError, InvalidInput
from told.core.hearsay import OWN
from told.core.lazy import regex
from told.core.secrets import Secret
from told.core.value import quick
from told.ports import Vault
from told.settings import Settings
from told.write.messages import SILENT_ROLES, Said, Turn, own_words

SECRETS = "secrets"
"""Where the metadata of a turn whose secrets are kept names their sorts."""

SEALED = "sealed"
"""Where the metadata of a turn whose secrets are encrypted keeps them, by their marks."""

_MARKED = regex(r"\[sealed ([0-9a-f]{8}): [^\]]*\]")
ECHOED = "What told itself had put into the prompt was left out of what was said."

Outcome = Literal["keep", "skip", "refuse"]


@quick
@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a turn: keep it, skip it (evidence only) or refuse it (not even that), and why.

    `turn` is what may be committed: redacted where the policy says so or the turn is refused. `part` are the words in
    it that the speaker said, where told's own were among them, or those of an image.
    """

    outcome: Outcome
    turn: Turn
    part: Own | None = None
    reason: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def own(self) -> Own:
        """The words that the speaker said."""
        return self.part or Own.whole(self.turn.evidence.content)


@quick
@dataclass(frozen=True, slots=True)
class Admitted:
    """What the gate says of an add: a verdict on every turn to commit, and what the receipt says of the others."""

    verdicts: tuple[Verdict, ...]
    skipped: tuple[Mapping[str, Any], ...]
    warnings: tuple[str, ...]


def admit(
    said: Said, account: str, settings: Settings, echoes: Echoes, vault: Vault | None = None, *, verbatim: bool = False
) -> Admitted:
    """Judge every turn; the rows of the receipt are in the order of the messages."""
    rows = {row["index"]: row for row in said.skipped} if said.skipped else {}
    numbers = [number for number in range(len(said.turns) + len(rows)) if number not in rows]
    verdicts: list[Verdict] = []
    warnings: dict[str, None] = {}
    for number, turn in zip(numbers, said.turns, strict=True):
        verdict = judge(turn, account, settings, echoes, vault, verbatim=verbatim)
        if verdict.warnings:
            warnings.update(dict.fromkeys(verdict.warnings))
        if verdict.outcome != "keep":
            rows[number] = {"index": number, "role": turn.evidence.role, "reason": verdict.reason}
        if verdict.outcome != "refuse":
            verdicts.append(verdict)
    skipped = tuple(rows[number] for number in sorted(rows)) if rows else ()
    return Admitted(tuple(verdicts), skipped, tuple(warnings))


def judge(
    turn: Turn, account: str, settings: Settings, echoes: Echoes, vault: Vault | None = None, *, verbatim: bool = False
) -> Verdict:
    """What becomes of a turn; secrets, echoes and prompts are kept out even where the gate is open.

    A turn that is to be a memory word for word is never skipped, whatever it says.
    """
    turn, found = _guarded(turn, settings.secrets, vault)
    said = turn.evidence
    heard = echoes.part(account, said.content)
    words = said.content if heard is None else heard.text
    spoken = echoes.own(account, own_words(said)) if OWN in said.meta else heard
    if found and settings.secrets == "reject":
        return Verdict("refuse", turn, spoken, f"secret: {', '.join(found)}")
    warnings = (_warning(found, settings.secrets),) if found else ()
    if len(words) < len(said.content) and words:
        warnings = (*warnings, ECHOED)
    reason = "" if verbatim else _reason(turn, words, settings)
    return Verdict("skip" if reason else "keep", turn, spoken, reason, warnings)


def _reason(turn: Turn, words: str, settings: Settings) -> str:
    """Why a turn is skipped; nothing if it is not."""
    if turn.evidence.role in SILENT_ROLES:
        return "system message"
    if not words and turn.evidence.content.strip():
        return "echo of recalled memories"
    if turn.evidence.role != "assistant" and noise.is_prompt(words):
        return "system prompt"
    return _emptiness(words, settings) if settings.gate and OWN not in turn.evidence.meta else ""


def _emptiness(words: str, settings: Settings) -> str:
    if len(words) > settings.gate_most:
        return "too long"
    if noise.is_short(words, settings.gate_least):
        return "too short"
    if noise.is_filler(words):
        return "nothing but filler words"
    return "infrastructure noise" if noise.is_noise(words) else ""


# -------------------------------------------------------------------------------------------------------------- secrets


def screen(text: str, settings: Settings) -> tuple[str, tuple[str, ...]]:
    """A text that somebody writes over a memory, as it may be kept, and a warning; to reject it is an error here."""
    found = secrets.kinds(secrets.find(text))
    if not found:
        return text, ()
    if settings.secrets == "reject":
        raise InvalidInput(f"The text holds a secret: {', '.join(found)}.", hint="Leave it out, or keep it in a vault.")
    kept = text if settings.secrets == "keep" else secrets.redact(text)
    return kept, (_warning(found, settings.secrets),)


def _guarded(turn: Turn, policy: str, vault: Vault | None) -> tuple[Turn, tuple[str, ...]]:
    """A turn as it may be kept, and the sorts of secrets that were in it: in what was said, its source or metadata."""
    said = turn.evidence
    secret = secrets.find(said.content)
    if said.name or said.source or turn.meta:
        beside = (said.name, said.source, *_strings(turn.meta))
        secret += tuple(each for text in beside if text for each in secrets.find(text))
    if not secret:
        return turn, ()
    found = secrets.kinds(secret)
    if policy == "keep":
        marked = replace(said, meta={**said.meta, SECRETS: list(found)})
        return replace(turn, evidence=marked, meta={SECRETS: list(found), **turn.meta}), found
    content, sealed = _sealed(said.content, vault) if policy == "encrypt" else (secrets.redact(said.content), {})
    clean = replace(
        said,
        content=content,
        name=said.name and secrets.redact(said.name),
        source=said.source and secrets.redact(said.source),
        meta={**said.meta, **_moved(said, content)},
    )
    meta = _redacted(turn.meta)
    return replace(turn, evidence=clean, meta={**meta, SEALED: sealed} if sealed else meta), found


def _moved(said: Evidence, content: str) -> dict[str, int]:
    """Where a speaker's own words end now that secrets are marked; what cannot be told apart is an image's."""
    if OWN not in said.meta:
        return {}
    words = secrets.redact(own_words(said))
    return {OWN: len(words) if content.startswith(words) else 0}


def _sealed(text: str, vault: Vault | None) -> tuple[str, dict[str, str]]:
    """A text with a mark in the place of each secret, and what the vault made of them by their marks."""
    if vault is None:
        raise ConfigError("Secrets are to be encrypted, and there is no vault.", hint="Set TOLD_VAULT_KEY.")
    kept: dict[str, str] = {}

    def hide(secret: Secret, words: str) -> str:
        mark = vault.mark(words)
        kept.setdefault(mark, vault.seal(words))
        return f"[sealed {mark}: {secret.kind}]"

    return secrets.redact(text, hide), kept


def revealed(text: str, meta: Mapping[str, Any], vault: Vault) -> str:
    """A text with the secrets that its metadata keeps sealed."""
    sealed = meta.get(SEALED)
    kept = sealed if isinstance(sealed, Mapping) else {}
    return _MARKED.sub(lambda found: vault.open(kept[found[1]]) if found[1] in kept else found[0], text)


def _strings(value: Any) -> Iterator[str]:
    """Every text inside metadata."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _strings(member)


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return secrets.redact(value)
    if isinstance(value, dict):
        return {name: _redacted(member) for name, member in value.items()}
    return [_redacted(member) for member in value] if isinstance(value, list) else value


def _warning(found: tuple[str, ...], policy: str) -> str:
    done = {"keep": "kept as they are, unencrypted", "encrypt": "encrypted"}.get(policy, "redacted")
    return f"Secrets were {done}: {', '.join(found)}."
