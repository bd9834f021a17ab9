"""The first receipt of an idempotency key again, with its texts as they were then."""

from __future__ import annotations

import json
from collections.abc import Sequence

from told.core.entry import Asserted, Entry
from told.core.errors import IdempotencyConflict, StoreCorrupt
from told.core.query import Event, Receipt
from told.flow import Flow, call
from told.ports import Store, Ticket
from told.write.desk import Key


def replay(store: Store, account: str, key: Key, ticket: Ticket) -> Flow[Receipt]:
    """What the write of a key did; the ticket says what became of which thread, and the ledger what each said."""
    if ticket.digest != key.digest:
        raise IdempotencyConflict()
    if ticket.threads() is None or not isinstance(ticket.seq, int):
        raise StoreCorrupt("What was done under this key cannot be read any more.", hint="Run `told rebuild`.")
    outcome = json.loads(ticket.outcome)
    before = ticket.seq - outcome.get("entries", 0)
    events: list[Event] = []
    threads: dict[str, Thread] = {}
    for event, id_, role, actor in outcome["events"]:
        if id_ not in threads:
            entries = yield from call(store.thread, account, id_)
            threads[id_] = Thread([entry for entry in entries if entry.seq <= ticket.seq], before)
        thread = threads[id_]
        previous = thread.says if event in ("UPDATE", "DELETE") else None
        text = thread.next() if event in ("ADD", "UPDATE") else thread.says
        events.append(Event(event, id_, text, previous, role, actor))
    return Receipt(tuple(events), tuple(outcome["skipped"]), tuple(outcome["warnings"]))


class Thread:
    """What a thread said before a write and then, one assertion of the write after the other."""

    def __init__(self, entries: Sequence[Entry], before: int) -> None:
        texts = [(entry.seq, _text(entry)) for entry in entries if entry.sort == "asserted"]
        self.says = next((text for seq, text in reversed(texts) if seq <= before), None)
        self._later = iter([text for seq, text in texts if seq > before])

    def next(self) -> str | None:
        """What the thread says with its next assertion; what it says now, if there is none."""
        self.says = next(self._later, self.says)
        return self.says


def _text(entry: Entry) -> str | None:
    return entry.verb.claim.text if isinstance(entry.verb, Asserted) else None
