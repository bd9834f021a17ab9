"""The ports: protocols for everything told needs from the outside world.

Storage is split by operation: `Ledger`, `Facts`, `Index`, `Vectors`, `AccessLog`, `Queue`, `Blobs`
and `Maintenance`; a `Store` is all of them in one object. Every call names its account or its
scope. Methods may be plain or `async def`.

A third party registers a backend as an entry point in `told.stores`, `told.embedders`, … and
checks it with the contract tests in `told.testing`.
"""

from told.ports.access_log import AccessHistory, AccessLog
from told.ports.blobs import Blobs
from told.ports.facts import ExistingState, Facts, ScopeTally, StoredTurn, TickTotals
from told.ports.index import Index, Vectors
from told.ports.ledger import (
    VIEWS,
    Batch,
    CloseThread,
    CursorStep,
    EndVersion,
    EntryIntact,
    Fold,
    Guard,
    Head,
    IdempotencyRecord,
    KindNotGrown,
    Ledger,
    NoEvidence,
    NoFact,
    RowOp,
    ThreadAt,
    ThreadUntouched,
    UnchangedSlot,
    View,
    ViewRow,
)
from told.ports.models import (
    DEFAULT_SPREAD,
    LLM,
    ChatLine,
    Embedder,
    ImageReader,
    Purpose,
    Reply,
    Reranker,
    Tool,
    ToolCall,
    ToolLLM,
    ToolReply,
    Usage,
    Vault,
    Vector,
    get_usage,
    validate_vectors,
)
from told.ports.queue import Fault, Queue
from told.ports.store import Maintenance, Store

__all__ = [
    "AccessHistory",
    "AccessLog",
    "Batch",
    "Blobs",
    "ChatLine",
    "CloseThread",
    "CursorStep",
    "DEFAULT_SPREAD",
    "Embedder",
    "EndVersion",
    "EntryIntact",
    "ExistingState",
    "Facts",
    "Fault",
    "Fold",
    "Guard",
    "Head",
    "IdempotencyRecord",
    "ImageReader",
    "Index",
    "KindNotGrown",
    "LLM",
    "Ledger",
    "Maintenance",
    "NoEvidence",
    "NoFact",
    "Purpose",
    "Queue",
    "Reply",
    "Reranker",
    "RowOp",
    "ScopeTally",
    "Store",
    "StoredTurn",
    "ThreadAt",
    "ThreadUntouched",
    "TickTotals",
    "Tool",
    "ToolCall",
    "ToolLLM",
    "ToolReply",
    "UnchangedSlot",
    "Usage",
    "VIEWS",
    "Vault",
    "Vector",
    "Vectors",
    "View",
    "ViewRow",
    "get_usage",
    "validate_vectors",
]
