"""The first receipt of an idempotency key again, with its texts as they were then."""

from __future__ import annotations

import json
from collections.abc import Sequence

from told.core.entry import Asserted, Entry
from told.core.errors import IdempotencyConflict, StoreCorrupt
from told.core.query import Event, Receipt
from told.flow import Flow, call
from told.ports import IdempotencyRecord, Store
from told.write.desk import IdempotencyKey


def replay_receipt(
    store: Store, account: str, key: IdempotencyKey, record: IdempotencyRecord
) -> Flow[Receipt]:
    """What the write of a key did; the ticket says what became of which thread, and the ledger what each said."""
    if record.digest != key.digest:
        raise IdempotencyConflict()
    if record.thread_ids() is None or not isinstance(record.seq, int):
        raise StoreCorrupt(
            "What was done under this key cannot be read any more.", hint="Run `told rebuild`."
        )
    outcome = json.loads(record.outcome)
    before = record.seq - outcome.get("entries", 0)
    events: list[Event] = []
    threads: dict[str, ReplayedThread] = {}
    for event, id_, role, actor in outcome["events"]:
        if id_ not in threads:
            entries = yield from call(store.thread_entries, account, id_)
            threads[id_] = ReplayedThread(
                [entry for entry in entries if entry.seq <= record.seq], before
            )
        thread = threads[id_]
        previous = thread.current_text if event in ("UPDATE", "DELETE") else None
        text = thread.advance() if event in ("ADD", "UPDATE") else thread.current_text
        events.append(Event(event, id_, text, previous, role, actor))
    return Receipt(tuple(events), tuple(outcome["skipped"]), tuple(outcome["warnings"]))


class ReplayedThread:
    """What a thread said before a write and then, one assertion of the write after the other."""

    def __init__(self, entries: Sequence[Entry], before: int) -> None:
        texts = [
            (entry.seq, _get_asserted_text(entry)) for entry in entries if entry.sort == "asserted"
        ]
        self.current_text = next((text for seq, text in reversed(texts) if seq <= before), None)
        self._remaining = iter([text for seq, text in texts if seq > before])

    def advance(self) -> str | None:
        """What the thread says with its next assertion; what it says now, if there is none."""
        self.current_text = next(self._remaining, self.current_text)
        return self.current_text


def _get_asserted_text(entry: Entry) -> str | None:
    return entry.verb.claim.text if isinstance(entry.verb, Asserted) else None
