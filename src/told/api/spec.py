"""The declaration of every public verb, once.

The SDK clients and the reference tables are generated from it, and the command line reads it.
To add a verb, declare it here, add its flow to `told.engine.Engine`, and run `make generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from told.api import serialize
from told.api.verb import (
    AS_OF,
    BELIEF,
    EXPIRATION,
    FAULT_IDS,
    FILTERS,
    IN_CODE_ONLY,
    KINDS,
    LIMIT,
    MEMORY_ID,
    METADATA,
    OPTIONAL_MEMORY_ID,
    PAGE,
    QUERY,
    RANKING,
    RERANK,
    SCOPE,
    SCORES,
    SHOW_EXPIRED,
    SOURCE,
    TIMES,
    TIMESTAMP,
    TOP_K,
    UNSET,
    Verb,
    VerbGroup,
    flag,
    option,
    positional,
)
from told.model.policy import Action

# Writing

ADD = Verb(
    "add",
    VerbGroup.WRITING,
    Action.WRITE,
    (
        positional("messages", "A string, a message or a list of messages.", "Any"),
        *SCOPE,
        METADATA,
        TIMESTAMP,
        EXPIRATION,
        option("kind", "Keep the text as one memory of this kind; extract no facts."),
        flag("infer", "Extract facts; False stores the text alone.", default=True),
        option("memory_type", "`procedural_memory` is another name of the kind `skill`."),
        option("prompt", "A system prompt for the extractor of this call."),
        option("filters", "Accepted for compatibility; has no effect.", "Any"),
        SOURCE,
        option("idempotency_key", "Return the first receipt if the call is repeated."),
        option("extract", "The extractor of this call; the setting `extract` by default."),
        option("facts", "Facts to store instead of extracting any.", "Sequence[Any] | None"),
        option("deferred", "Return before the model is called; `wait()` waits.", "bool | None"),
    ),
    serialize.receipt_to_dict,
    "Store messages and the facts extracted from them.",
    details=(
        "`messages` is a string, a message or a list of messages. The text is kept verbatim; "
        "`extract` names the extractor, and `infer=False` extracts nothing. `prompt` replaces the "
        "extractor's prompt, `facts` its answer. `deferred` returns before the model is called, "
        "which is the default for a remote model; `wait()` waits for it."
    ),
    result="a receipt",
)
UPDATE = Verb(
    "update",
    VerbGroup.WRITING,
    Action.WRITE,
    (
        MEMORY_ID,
        positional("text", "The new text.", "str | None", None),
        replace(METADATA, positional=True, help="Metadata that replaces the old."),
        replace(
            EXPIRATION,
            default=UNSET,
            positional=True,
            help="A new expiration date; None removes it.",
        ),
        positional("data", "Another name of `text`.", "str | None", None),
        TIMESTAMP,
        *SCOPE,
    ),
    serialize.update_to_dict,
    "Add a new version of a memory; earlier versions stay in its history.",
    result="a receipt",
)
DELETE = Verb(
    "delete",
    VerbGroup.WRITING,
    Action.WRITE,
    (MEMORY_ID, *SCOPE),
    serialize.deletion_to_dict,
    "Delete a memory; its history is kept. Use erase() to destroy content.",
    result="a receipt",
)
DELETE_ALL = Verb(
    "delete_all",
    VerbGroup.WRITING,
    Action.WRITE,
    tuple(replace(param, positional=True) for param in SCOPE),
    serialize.deletions_to_dict,
    "Delete all memories of a scope; their history is kept.",
    result="a receipt",
    command="delete",
)
RETRACT = Verb(
    "retract",
    VerbGroup.WRITING,
    Action.WRITE,
    (MEMORY_ID, option("why", "The reason to record.", "str", "retracted"), *SCOPE),
    serialize.receipt_to_dict,
    "Delete a memory and record the reason.",
    result="a receipt",
)
UPLOAD = Verb(
    "upload",
    VerbGroup.WRITING,
    Action.WRITE,
    (
        positional("content", "A path, bytes, a binary file or a URL.", "Any"),
        option("name", "The document's name; found out if left out."),
        replace(SOURCE, help="The key that tells the document from others."),
        option("media_type", "The media type; found out if left out."),
        METADATA,
        TIMESTAMP,
        EXPIRATION,
        *SCOPE,
    ),
    serialize.upload_to_dict,
    "Store a document, or revise the one with the same source.",
    details="`content` is a path, bytes, a binary file or a URL.",
    result="a receipt, and `document`: `hash title media_type`",
    command="blob upload",
)
TOOL_RESULT = Verb(
    "tool_result",
    VerbGroup.WRITING,
    Action.WRITE,
    (
        positional("text", "The tool's output."),
        option("tool", "The name of the tool."),
        SOURCE,
        *SCOPE,
    ),
    serialize.tool_output_to_dict,
    "Store a tool's output and return a version short enough for a prompt.",
    details="`blob` returns the original by its hash.",
    result="a receipt, `text`, and for a long output `blob` (its hash) and `properties`",
    interfaces=IN_CODE_ONLY,  # the agent that called the tool passes its output
)
LINK = Verb(
    "link",
    VerbGroup.WRITING,
    Action.WRITE,
    (
        positional("src", "The id of the first memory."),
        positional("rel", "The name of the relation."),
        positional("dst", "The id of the second memory."),
        option("weight", "The strength of the link, 0 to 1.", "float", 1.0),
        replace(METADATA, help="A JSON object kept with the link."),
        *SCOPE,
    ),
    serialize.link_to_dict,
    "Link two memories by a relation.",
    result='`{"message", "src", "rel", "dst", "tx"}`',
)
ERASE = Verb(
    "erase",
    VerbGroup.WRITING,
    Action.REQUEST_DELETION,
    (
        OPTIONAL_MEMORY_ID,
        *SCOPE,
        replace(SOURCE, help="Erase everything from this source."),
        option("why", "The reason, kept forever.", "str", "requested"),
        flag("dry_run", "Only return what would be erased."),
    ),
    serialize.erasure_to_dict,
    "Destroy content and everything derived from it, and return a certificate.",
    details="Pass exactly one of `memory_id`, a scope and `source`.",
    result="a certificate",
)
RESET = Verb(
    "reset",
    VerbGroup.WRITING,
    Action.REQUEST_DELETION,
    (),
    serialize.reset_to_dict,
    "Destroy everything in the account and start a new ledger.",
    result='`{"message"}`',
)


# Reading

SEARCH = Verb(
    "search",
    VerbGroup.READING,
    Action.READ_CONTENT,
    (
        QUERY,
        *SCOPE,
        *PAGE,
        *SCORES,
        RERANK,
        flag("explain", "Add `score_details` to each result."),
        *RANKING,
    ),
    serialize.search_to_dict,
    "Return the memories that match a query best, with scores.",
    result='`{"results": [item…], "confidence"}`',
)
CONTEXT = Verb(
    "context",
    VerbGroup.READING,
    Action.READ_CONTENT,
    (
        replace(QUERY, type="str | None", default=None),
        *SCOPE,
        option("budget", "The maximum number of tokens; 1000 by default.", "int | None"),
        option("format", "text (the default), markdown, xml or messages."),
        option("tail", "The number of last turns to append, 0 to 1000.", "int | None"),
        *PAGE,
        *SCORES,
        RERANK,
        *RANKING,
    ),
    serialize.keep_bundle,
    "Return memories as a block for a prompt, within a token budget.",
    details="Without a query, the block holds the newest memories.",
    result="a `Bundle`",
)
EXPLAIN = Verb(
    "explain",
    VerbGroup.READING,
    Action.READ_CONTENT,
    (QUERY, *SCOPE, *PAGE, *SCORES, RERANK, *RANKING),
    serialize.explanation_to_dict,
    "Run a search and trace every candidate with its scores and outcome.",
    result="a trace and `confidence`",
)
WHY_NOT = Verb(
    "why_not",
    VerbGroup.READING,
    Action.READ_CONTENT,
    (QUERY, MEMORY_ID, *SCOPE, *PAGE, *SCORES, *RANKING),
    serialize.to_dict,
    "Explain why a search leaves a memory out, or return its rank.",
    result=(
        '`{"id", "found", "stage", "reason", "sources"}` and, for a ranked memory, '
        "`place score least parts`"
    ),
    command="why-not",
)
GET = Verb(
    "get",
    VerbGroup.READING,
    Action.READ_CONTENT,
    (MEMORY_ID, *TIMES, *SCOPE),
    serialize.optional_fact_to_dict,
    "Return a memory, now or at an earlier point, or None.",
    result="an item or `None`",
)
GET_ALL = Verb(
    "get_all",
    VerbGroup.READING,
    Action.READ_CONTENT,
    (
        *SCOPE,
        FILTERS,
        LIMIT,
        TOP_K,
        SHOW_EXPIRED,
        *TIMES,
        option("offset", "The number of results to skip.", "int", 0),
        KINDS,
        BELIEF,
    ),
    serialize.listing_to_dict,
    "List the memories of a scope, oldest first.",
    result='`{"results": [item…]}`',
    command="list",
)
HISTORY = Verb(
    "history",
    VerbGroup.READING,
    Action.READ_CONTENT,
    (MEMORY_ID, *SCOPE),
    serialize.to_list,
    "List all changes of a memory in order.",
    result="a list of changes",
)
TIMELINE = Verb(
    "timeline",
    VerbGroup.READING,
    Action.READ_CONTENT,
    (*SCOPE, replace(LIMIT, help="Only the newest changes, 1 to 10,000.")),
    serialize.to_results,
    "List all changes of a scope in order.",
    result='`{"results": [change…]}`',
)
DIFF = Verb(
    "diff",
    VerbGroup.READING,
    Action.READ_CONTENT,
    (
        positional("before", "The earlier time or ledger position.", "Any"),
        positional("after", "The later time or ledger position; now by default.", "Any", None),
        *SCOPE,
    ),
    serialize.copy_mapping,
    "Compare the memories of a scope at two points in time.",
    result='`{"added", "changed", "removed"}`',
)
BLOB = Verb(
    "blob",
    VerbGroup.READING,
    Action.READ_CONTENT,
    (positional("hash", "The hash of a document or an image."), *SCOPE),
    serialize.blob_to_dict,
    "Return the bytes of a document or an image of the scope, in base64.",
    result='`{"hash", "media_type", "size", "data"}`',
    command="blob get",
)
BLOBS = Verb(
    "blobs",
    VerbGroup.READING,
    Action.READ_CONTENT,
    SCOPE,
    serialize.to_results,
    "List the documents and images of the scope.",
    result='`{"results": [{"hash", "media_type", "size", "sources"}…]}`',
    command="blob list",
)


# Extraction, entities, reconsolidation and topics

WAIT = Verb(
    "wait",
    VerbGroup.EXTRACTION,
    Action.DERIVE_CLAIMS,
    (),
    serialize.wait_to_dict,
    "Wait until all pending evidence has been extracted, and return the events.",
    result=(
        '`{"results", "understood", "failed", "pending", "warnings"}`: the events, and the '
        "numbers of calls extracted, of calls failed for good and of evidence still pending"
    ),
)
FAULTS = Verb(
    "faults",
    VerbGroup.EXTRACTION,
    Action.READ_CONTENT,
    (),
    serialize.faults_to_dict,
    "List failed jobs with the model's raw replies.",
    result='`{"results": [{"id", "consumer", "seq", "error", "at", "attempts", "raw"}…]}`',
    command="faults list",
)
RETRY_FAULTS = Verb(
    "retry_faults",
    VerbGroup.EXTRACTION,
    Action.DERIVE_CLAIMS,
    (FAULT_IDS,),
    serialize.copy_mapping,
    "Retry failed jobs, all of them or the given ids.",
    result='`{"mended", "left"}`',
    command="faults retry",
)
DROP_FAULTS = Verb(
    "drop_faults",
    VerbGroup.EXTRACTION,
    Action.WRITE,
    (FAULT_IDS,),
    serialize.dropped_to_dict,
    "Delete failed jobs, all of them or the given ids; the evidence is kept.",
    result='`{"dropped"}`',
    command="faults drop",
)
CONTRADICTIONS = Verb(
    "contradictions",
    VerbGroup.EXTRACTION,
    Action.READ_CONTENT,
    SCOPE,
    serialize.to_results,
    "List conflicting memories.",
    result=(
        '`{"results": [{"slot", "memories": [{"id", "memory", "trust"}…], "seq"}…]}`, '
        "the later memory first"
    ),
)
ENTITIES = Verb(
    "entities",
    VerbGroup.EXTRACTION,
    Action.READ_CONTENT,
    SCOPE,
    serialize.entities_to_dict,
    "List the entities mentioned in a scope.",
    result='`{"results": [{"id", "name", "type", "description"}…]}`',
)
RELATIONS = Verb(
    "relations",
    VerbGroup.EXTRACTION,
    Action.READ_CONTENT,
    (positional("name", "The name of an entity."), *SCOPE),
    serialize.relations_to_dict,
    "List an entity's relations.",
    result='`{"results": [{"source", "relation", "target", "weight"}…]}`',
)
IDENTIFY = Verb(
    "identify",
    VerbGroup.EXTRACTION,
    Action.DERIVE_CLAIMS,
    SCOPE,
    serialize.to_results,
    "Link names that may mean the same entity, for reads with a `lens`; nothing is merged.",
    result=(
        '`{"results": [{"source", "relation", "target", "weight", "method", "ids"}…]}`; the '
        "relation is `same_as` or `distinct_referent`"
    ),
)
QUARANTINE = Verb(
    "quarantine",
    VerbGroup.EXTRACTION,
    Action.READ_CONTENT,
    SCOPE,
    serialize.facts_to_dict,
    "List the claims that wait for a review; searches do not return them.",
    result='`{"results": [item…]}`; `metadata` has the `kind` each would get and `why` it waits',
    command="quarantine list",
)
REVIEW = Verb(
    "review",
    VerbGroup.EXTRACTION,
    Action.WRITE,
    (
        MEMORY_ID,
        positional("accept", "True accepts the claim, False rejects it.", "bool"),
        *SCOPE,
    ),
    serialize.receipt_to_dict,
    "Accept or reject a quarantined claim.",
    result="a receipt; an accepted claim gets an id of its own",
    command="quarantine accept",
)
REVEAL = Verb(
    "reveal",
    VerbGroup.EXTRACTION,
    Action.ADMINISTER,
    (MEMORY_ID, *SCOPE),
    serialize.revealed_to_dict,
    "Return a memory's text with its encrypted secrets decrypted.",
    result='`{"id", "memory"}`',
)
REVOKE = Verb(
    "revoke",
    VerbGroup.EXTRACTION,
    Action.WRITE,
    (positional("source", "The source to revoke."),),
    serialize.receipt_to_dict,
    "Delete everything derived from a source and restore what it had changed.",
    result="a receipt",
)
INFER_KINDS = Verb(
    "infer_kinds",
    VerbGroup.EXTRACTION,
    Action.READ_CONTENT,
    SCOPE,
    serialize.kind_proposals_to_dict,
    "Propose kinds for quarantined claims.",
    result='`{"results": [{"name", "claims", "examples", "yaml"}…]}`',
    command="kinds infer",
)
RECALLS = Verb(
    "recalls",
    VerbGroup.EXTRACTION,
    Action.READ_CONTENT,
    (MEMORY_ID, *SCOPE),
    serialize.recalls_to_dict,
    "Return a memory's access log and access states.",
    result=(
        '`{"results": [{"at", "rank", "score", "access", "query_hash"}…], '
        '"states": [{"since", "until", "count", "strength"}…]}`'
    ),
)
ENQUEUE = Verb(
    "enqueue",
    VerbGroup.EXTRACTION,
    Action.DERIVE_CLAIMS,
    (
        MEMORY_ID,
        option("reason", "The reason for the review.", "str", "explicit"),
        option("priority", "The priority, 0 to 1.", "float", 1.0),
        *SCOPE,
    ),
    serialize.enqueued_to_dict,
    "Queue a memory for reconsolidation by `reflect()`.",
    result='`{"id", "queued"}`; `queued` is false if it was queued already',
    command="reconsolidate enqueue",
)
QUEUE = Verb(
    "queue",
    VerbGroup.EXTRACTION,
    Action.READ_CONTENT,
    (LIMIT,),
    serialize.queue_to_dict,
    "List the reconsolidation queue, most urgent first.",
    result=(
        '`{"results": [{"task", "id", "memory", "reason", "priority", "due", "attempts", "why"}…]}`'
    ),
    command="reconsolidate queue",
)
REFLECT = Verb(
    "reflect",
    VerbGroup.EXTRACTION,
    Action.DERIVE_CLAIMS,
    (LIMIT,),
    serialize.reflection_to_dict,
    "Reconsolidate the queued memories that are due; the originals are kept.",
    result=(
        '`{"results", "operations", "tasks", "failed", "usage", "warnings"}`: the events, '
        "the operations as a delta, and the number of memories"
    ),
    command="reconsolidate run",
)
APPLY_DELTA = Verb(
    "apply_delta",
    VerbGroup.EXTRACTION,
    Action.WRITE,
    (positional("delta", "An operation or a list of operations as JSON.", "Any"), *SCOPE),
    serialize.delta_to_dict,
    "Apply an operation or a list of operations, all or none.",
    result="a receipt, and the `operations` that changed something",
    command="reconsolidate apply",
)
TOPICS = Verb(
    "topics",
    VerbGroup.EXTRACTION,
    Action.READ_CONTENT,
    (*SCOPE, AS_OF),
    serialize.to_results,
    "List the topics of a scope with their labels, members and neighbours.",
    result=(
        '`{"results": [{"id", "label", "super", "members", "turns", "neighbours", "parts", '
        '"supers"}…]}`; `members` counts exchanges, a neighbour has a `count` and a `weight`'
    ),
    command="topics list",
)
TOPIC = Verb(
    "topic",
    VerbGroup.EXTRACTION,
    Action.READ_CONTENT,
    (positional("topic_id", "The id of a topic."), *SCOPE),
    serialize.topic_to_dict,
    "Return a topic and its turns.",
    result="the topic, and its turns as `results`",
    command="topics show",
)
FILE_TOPICS = Verb(
    "file_topics",
    VerbGroup.EXTRACTION,
    Action.DERIVE_CLAIMS,
    (),
    serialize.filed_topics_to_dict,
    "Assign every pending exchange to a topic.",
    result='`{"filed", "made", "split", "warnings"}`',
    command="topics file",
)
MERGE_TOPICS = Verb(
    "merge_topics",
    VerbGroup.EXTRACTION,
    Action.DERIVE_CLAIMS,
    SCOPE,
    serialize.merged_topics_to_dict,
    "Merge topics that are nearly the same into the older one.",
    result='`{"merged": [{"id", "into"}…], "warnings"}`',
    command="topics merge",
)
ABSTRACT_TOPICS = Verb(
    "abstract_topics",
    VerbGroup.EXTRACTION,
    Action.DERIVE_CLAIMS,
    SCOPE,
    serialize.supertopics_to_dict,
    "Group topics into supertopics, named by the language model if there is one.",
    result='`{"results", "warnings"}`: the supertopics',
    command="topics abstract",
)


# Decay

DECAY = Verb(
    "decay",
    VerbGroup.DECAY,
    Action.READ_CONTENT,
    (
        MEMORY_ID,
        option("points", "The number of points of the curve, 2 to 10,000.", "int", 60),
        option("clock", "Draw the curve by another clock than the kind's."),
        AS_OF,
        *SCOPE,
    ),
    serialize.decay_to_dict,
    "Return a memory's strength, its mentions, when it fades, and its decay curve.",
    details=(
        "Readings are turns or days since it was first said. `clock` draws the curve as if its "
        "kind faded by another clock."
    ),
    result=(
        '`{"id", "memory", "kind", "tier", "clock", "salience", "faded", "fades_at", "now", '
        '"said", "threshold", "curve"}`; `curve` is a list of `[reading, weight]`'
    ),
)
ABOUT = Verb(
    "about",
    VerbGroup.DECAY,
    Action.READ_CONTENT,
    (*SCOPE, AS_OF),
    serialize.details_to_dict,
    "List a scope's memories with their quotes, strengths and fading times.",
    result=(
        '`{"results": [{"id", "memory", "kind", "said_at", "said", "words", "tier", "clock", '
        '"salience", "faded", "fades_at"}…]}`; `said` counts mentions, `words` is the quote'
    ),
)
FORGET = Verb(
    "forget",
    VerbGroup.DECAY,
    Action.WRITE,
    (OPTIONAL_MEMORY_ID, *SCOPE),
    serialize.forgotten_to_dict,
    "Archive one memory, or every faded memory of a scope; history keeps them.",
    result='`{"results": [{"id", "event", "memory", "kind", "salience"}…]}`',
)


# Tiers

CONSOLIDATE = Verb(
    "consolidate",
    VerbGroup.TIERS,
    Action.WRITE,
    (*SCOPE, flag("force", "File all turns, whatever their age.")),
    serialize.to_dict,
    "Move old turns out of the tail and file cold exchanges; `force` files all of them.",
    details="Without an id, it runs for the whole account.",
    result=(
        '`{"judged", "returned", "left", "dropped", "summarised", "filed", "topics", '
        '"forgotten", "warnings"}`: the number of turns rated by the model, brought back, moved '
        "out of the tail and dropped, of summaries, of exchanges filed and assigned to topics, "
        "and of memories archived"
    ),
)
TIERS = Verb(
    "tiers",
    VerbGroup.TIERS,
    Action.READ_CONTENT,
    SCOPE,
    serialize.to_dict,
    "Return what is in the tail, index, hot buffer, registry and topics of a scope.",
    result=(
        '`{"tail": [{"id", "memory", "role", "importance", "at"}…], "index": {"count", "cold"}, '
        '"hot": [{"id", "memory"}…], "registry": {"exchanges", "newest"}, "topics": {"count"}}`'
    ),
)
REGISTRY = Verb(
    "registry",
    VerbGroup.TIERS,
    Action.READ_CONTENT,
    (*SCOPE, LIMIT),
    serialize.to_results,
    "List a scope's filed exchanges with their summaries, newest first.",
    result=('`{"results": [{"id", "user", "agent", "summary", "importance", "at", "memories"}…]}`'),
)


# Administration

VERIFY = Verb(
    "verify",
    VerbGroup.ADMINISTRATION,
    Action.ADMINISTER,
    (),
    serialize.verification_to_dict,
    "Verify the ledger's hash chain, the store and every view.",
    result=(
        '`{"ok", "entries", "erased", "head", "index_problems"}`, and if not ok '
        "`first_bad_seq`, `problem`"
    ),
)
REBUILD = Verb(
    "rebuild",
    VerbGroup.ADMINISTRATION,
    Action.ADMINISTER,
    (
        positional(
            "views",
            "Some of evidence, facts, links, passages, ticks; all by default.",
            "Sequence[View] | None",
            None,
        ),
    ),
    serialize.rebuild_to_dict,
    "Drop views and rebuild them from the ledger.",
    result='`{"rebuilt": {view: rows}}`',
)
REINDEX = Verb(
    "reindex",
    VerbGroup.ADMINISTRATION,
    Action.DERIVE_EMBEDDINGS,
    (positional("embedder", "The new embedder; the current one by default.", "Any", None),),
    serialize.reindex_to_dict,
    "Embed everything with another embedder, or what has no vector yet with this one.",
    details="Searches work meanwhile.",
    result='`{"embedded", "model", "dim"}`',
)
STATS = Verb(
    "stats",
    VerbGroup.ADMINISTRATION,
    Action.READ_METADATA,
    (),
    serialize.copy_mapping,
    "Return counts and sizes.",
    result="a dictionary; `pending` counts evidence that waits for a model, `usage` its cost",
)
USERS = Verb(
    "users",
    VerbGroup.ADMINISTRATION,
    Action.READ_METADATA,
    (option("type", "Only this type: user, agent or run."),),
    serialize.users_to_dict,
    "List users, agents and runs with their memory counts and dates.",
    result='`{"results": [{"type", "name", "total_memories", "created_at", "updated_at"}…]}`',
)
EXPORT = Verb(
    "export",
    VerbGroup.ADMINISTRATION,
    Action.EXPORT_CLAIMS,
    (positional("target", "A path or a binary file.", "Any"),),
    serialize.export_to_dict,
    "Write the ledger as JSON Lines to a path or a binary file.",
    result='`{"entries"}`, and the `path`',
)
IMPORT = Verb(
    "import_",
    VerbGroup.ADMINISTRATION,
    Action.ADMINISTER,
    (positional("source", "A path, bytes or a binary file.", "Any"),),
    serialize.import_to_dict,
    "Append an exported ledger from a path, bytes or a binary file.",
    result='`{"entries"}`: the number of new ones, and `warnings`',
    command="import",
)
BACKUP = Verb(
    "backup",
    VerbGroup.ADMINISTRATION,
    Action.ADMINISTER,
    (positional("target", "The path of a new file.", "Any"),),
    serialize.backup_to_dict,
    "Write a consistent copy of the store; reads and writes continue meanwhile.",
    result='`{"path"}`',
)

VERBS: Mapping[str, Verb] = {
    value.name: value for value in list(globals().values()) if isinstance(value, Verb)
}
