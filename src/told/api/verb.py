"""Types of the verb specification, and the parameters that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from told.model.policy import Action

REQUIRED: Any = object()
"""The default of a parameter that has none."""

UNSET: Any = object()
"""The default of a parameter for which None is a value; such an argument is not passed on."""


class Interface(StrEnum):
    """An interface that exposes verbs."""

    SDK = "sdk"
    CLI = "cli"


class VerbGroup(StrEnum):
    """A group of verbs in the reference."""

    WRITING = "writing"
    READING = "reading"
    EXTRACTION = "extraction"
    DECAY = "decay"
    TIERS = "tiers"
    ADMINISTRATION = "administration"


EVERYWHERE: Final = frozenset(Interface)
IN_CODE_ONLY: Final = frozenset({Interface.SDK})


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a verb; keyword-only unless it is positional."""

    name: str
    type: str
    default: Any = REQUIRED
    help: str = ""
    positional: bool = False

    @property
    def is_required(self) -> bool:
        """Return whether callers must pass the parameter."""
        return self.default is REQUIRED


@dataclass(frozen=True, slots=True)
class Verb:
    """A public verb: its parameters, policy action, result and documentation.

    `serialize` converts the result of the engine's flow; its annotation is the return type.
    `command` is the command's name where it differs from the verb's.
    """

    name: str
    group: VerbGroup
    action: Action
    params: tuple[Param, ...]
    serialize: Callable[[Any], Any]
    summary: str
    details: str = ""
    result: str = ""
    command: str = ""
    interfaces: frozenset[Interface] = EVERYWHERE

    @property
    def returns(self) -> str:
        """Return the annotation of the result."""
        return str(self.serialize.__annotations__["return"])

    @property
    def command_name(self) -> str:
        """Return the command that runs the verb."""
        return self.command or self.name

    @property
    def is_scoped(self) -> bool:
        """Return whether the verb takes the ids of a scope."""
        return any(param.name == USER_ID.name for param in self.params)


def flag(name: str, help: str, *, default: bool = False) -> Param:
    """Declare a boolean parameter."""
    return Param(name, "bool", default, help)


def option(name: str, help: str, type: str = "str | None", default: Any = None) -> Param:
    """Declare an optional parameter."""
    return Param(name, type, default, help)


def positional(name: str, help: str, type: str = "str", default: Any = REQUIRED) -> Param:
    """Declare a positional parameter."""
    return Param(name, type, default, help, positional=True)


# Parameters that several verbs share

USER_ID = option("user_id", "The user.")
AGENT_ID = option("agent_id", "The agent.")
RUN_ID = option("run_id", "The run or conversation.")
SCOPE = (USER_ID, AGENT_ID, RUN_ID)
SCOPE_NAMES = tuple(param.name for param in SCOPE)
MEMORY_ID = positional("memory_id", "The id of a memory.")
OPTIONAL_MEMORY_ID = replace(MEMORY_ID, type="str | None", default=None)
QUERY = positional("query", "The text to search for.")
METADATA = option("metadata", "Metadata as a JSON object.", "Mapping[str, Any] | None")
TIMESTAMP = option("timestamp", "The time the content was said.", "Any")
EXPIRATION = option("expiration_date", "The time from which it is no longer recalled.", "Any")
SOURCE = option("source", "The origin of the content, at most 1024 characters.")
AS_OF = option(
    "as_of",
    'Read as of this time: 2026-03-01, "last Tuesday", or a ledger position such as #12.',
    "Any",
)
VALID_AT = option("valid_at", "Read what held in the world at this time.", "Any")
TIMES = (AS_OF, VALID_AT)
FILTERS = option("filters", "A filter on fields of memories.", "Any")
KINDS = option("kinds", "Only memories of this kind or these kinds.", "Any")
LIMIT = option("limit", "The maximum number of results, 1 to 1000.", "int | None")
TOP_K = option("top_k", "Another name of `limit`.", "int | None")
SHOW_EXPIRED = flag("show_expired", "Include memories past their expiration date.")
THRESHOLD = option("threshold", "Another name of `min_score`.", "float | None")
MIN_SCORE = option("min_score", "Leave out results with a lower score, 0 to 1.", "float | None")
RERANK = flag("rerank", "Let the reranker score the best results.")
REFERENCE_DATE = option("reference_date", 'The time that "last week" is relative to.', "Any")
BELIEF = option(
    "belief", "The side of a contradiction: latest, all, majority (best supported) or trusted."
)
LENS = option(
    "lens", "Expand to identical entities: strict (0.98), likely (0.85), exploratory (0.60)."
)
FAULT_IDS = positional("ids", "The numbers of faults; all by default.", "Any", None)
PAGE = (FILTERS, KINDS, LIMIT, TOP_K, SHOW_EXPIRED, *TIMES)
SCORES = (THRESHOLD, MIN_SCORE)
RANKING = (REFERENCE_DATE, BELIEF, LENS)
