"""The engine: the table of contents. Each verb is one flow and names the policy action it needs; no logic is here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from told.core.belief import Sides
from told.core.blob import Blob, is_hash
from told.core.entry import Draft, Erased, Linked
from told.core.errors import EmbeddingError, InvalidInput, NotFoundError, ToldError
from told.core.fact import Fact, Witness
from told.core.ids import HASH, canonical, sha256
from told.core.policy import Action
from told.core.query import Bundle, Certificate, Find, Receipt, Trace, Verdict, listed
from told.core.scope import Scope
from told.core.text import clean, label, shown
from told.engine.base import VERBS as VERBS
from told.engine.base import named, verb
from told.engine.concepts import Conceiving
from told.engine.reflecting import Reflecting
from told.engine.tiering import Tiering
from told.flow import Flow, call, run
from told.ledger import agree, transfer
from told.ledger import blobs as keeping
from told.ledger import erase as erasing
from told.ledger import history as past
from told.ledger import verify as proof
from told.ledger.blobs import Kept
from told.ledger.consume import Failure, attempt
from told.ledger.erase import Closure
from told.ports import VIEWS, Embedder, View
from told.read import bundle, census, kinds, plan, whynot
from told.read import path as reading
from told.read.census import Someone
from told.read.guard import denials
from told.read.recall import Seen, Want
from told.read.whynot import Reason
from told.tend import judge, reconsolidate
from told.views import folding
from told.write import change, embed, gate, messages, understand
from told.write import path as writing
from told.write.change import Change
from told.write.desk import Key
from told.write.media.see import seen
from told.write.mind import Ask

if TYPE_CHECKING:
    from told.write.documents import Document

T = TypeVar("T")
W = TypeVar("W", Seen, Bundle, Receipt)


class Engine(Conceiving, Tiering, Reflecting):
    """Every verb."""

    __slots__ = ()

    # Writing ----------------------------------------------------------------------------------------------------------

    @verb(Action.WRITE)
    def add(
        self, said: Any, ids: Mapping[str, Any], *, metadata: Any = None, timestamp: Any = None, expires: Any = None,
        kind: str = "memory", source: Any = None, key: Any = None, ask: Ask | None = None,
    ) -> Flow[Receipt]:  # fmt: skip
        """Remember what was said, understood by the usual extractor unless the call names another."""
        scope = self.scope(ids)
        turns = messages.read(said, metadata=metadata, timestamp=timestamp, source=source, settings=self.settings)
        until = messages.expiry(expires, self.settings)
        how = self.ask() if ask is None else ask
        name = None if key is None else label(key, "idempotency_key", limit=256)
        idem = None if name is None else Key(name, _digest(scope, turns, until, kind, how))
        if turns.images:
            turns = yield from seen(turns, self.look)
        desk = self.desk
        unknown = yield from self._unknown(scope, kind)
        wanted = writing.order(desk, scope, turns, expires=until, kind=kind, ask=how)
        done = yield from writing.add(desk, wanted, idem)
        return warned(done, unknown)

    @verb(Action.WRITE)
    def update(
        self, id: str, *, text: str | None, metadata: Any, expires: Any, set_expiry: bool, timestamp: Any,
        ids: Mapping[str, Any],
    ) -> Flow[Receipt]:  # fmt: skip
        """A new version of a memory."""
        if text is None and metadata is None and timestamp is None and not set_expiry:
            raise InvalidInput("Nothing to update.", hint="Give a text, metadata, a timestamp or an expiration_date.")
        if text is not None and (not isinstance(text, str) or not text.strip()):
            raise InvalidInput("The new text is empty.", hint="To forget a memory use delete().")
        words, warnings = (None, ()) if text is None else gate.screen(
            clean(text, limit=self.settings.text_limit), self.settings
        )  # fmt: skip
        anew = Change(
            words,
            None if metadata is None else messages.check_metadata(metadata, self.settings),
            set_expiry, messages.expiry(expires, self.settings), messages.since(timestamp, self.settings),
        )  # fmt: skip
        done = yield from change.update(self.desk, self.account, named(id), anew, self.within(ids))
        return replace(done, warnings=(*warnings, *done.warnings)) if warnings else done

    @verb(Action.WRITE)
    def retract(self, id: str, *, why: str, ids: Mapping[str, Any]) -> Flow[Receipt]:
        """Give up a memory; the past keeps it."""
        why = clean(why, limit=256)
        return (yield from change.retract(self.desk, self.account, named(id), why, self.within(ids)))

    @verb(Action.WRITE)
    def retract_all(self, ids: Mapping[str, Any], *, why: str) -> Flow[Receipt]:
        """Give up everything a scope holds."""
        scope = self.scope(ids)
        now = yield from self.point()
        everything = plan.find(scope, now, None, limit=None, show_expired=True)
        return (yield from change.retract_all(self.desk, everything, why))

    @verb(Action.WRITE)
    def link(
        self, src: str, rel: str, dst: str, *, weight: float, metadata: Any, ids: Mapping[str, Any]
    ) -> Flow[Receipt]:
        """Say that one memory bears on another."""
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
            raise InvalidInput(f"weight must be a number from 0 to 1, not {shown(weight)}.")
        meta = messages.check_metadata(metadata, self.settings)
        link = Linked(named(src), label(rel, "rel", limit=64), named(dst), float(weight), meta)
        return (yield from change.link(self.desk, self.scope(ids), link))

    @verb(Action.WRITE)
    def upload(
        self, content: Any, ids: Mapping[str, Any], *, name: Any = None, source: Any = None, media_type: Any = None,
        metadata: Any = None, timestamp: Any = None, expires: Any = None,
    ) -> Flow[tuple[Receipt, Document]]:  # fmt: skip
        """Remember a document: add it, revise the one of the same source, or do nothing if that is the same."""
        meta = messages.check_metadata(metadata, self.settings)
        valid, until = messages.since(timestamp, self.settings), messages.expiry(expires, self.settings)
        from told.write import documents

        look = self.looking(self.settings.document_limit)
        return (yield from documents.upload(
            self.desk, self.scope(ids), content, look, name=name, source=source, media_type=media_type, metadata=meta,
            valid=valid, expires=until,
        ))  # fmt: skip

    # Reading ----------------------------------------------------------------------------------------------------------

    @verb(Action.READ_CONTENT)
    def blob(self, hash: str, *, ids: Mapping[str, Any]) -> Flow[Blob]:
        """The bytes of a document or an image, which evidence of the scope names."""
        scope = self.scope(ids)
        holders = yield from keeping.named(self.store, scope)
        named = is_hash(hash) and hash in holders
        found = (yield from call(self.store.blob, self.account, hash)) if named else None
        if found is None or not (yield from self._shown(holders[hash])):
            raise NotFoundError(f"There is no blob {shown(hash)} here.", hint="List them with blobs().")
        return found

    @verb(Action.READ_CONTENT)
    def blobs(self, ids: Mapping[str, Any]) -> Flow[Sequence[Kept]]:
        """Every document and image that evidence of the scope names."""
        found: list[Kept] = []
        for each in (yield from keeping.kept(self.store, self.scope(ids))):
            found += [each] if (yield from self._shown(each.witnesses)) else []
        return found

    @verb(Action.READ_CONTENT)
    def search(self, query: str, ids: Mapping[str, Any], **options: Any) -> Flow[Seen]:
        """The facts that answer a query best."""
        want, eye = (yield from self._want(query, ids, **options)), self.eye
        seen = yield from reading.search(eye, want)
        return warned(seen, (yield from kinds.asked(eye, want.find)))

    @verb(Action.READ_CONTENT)
    def explain(self, query: str, ids: Mapping[str, Any], **options: Any) -> Flow[tuple[Seen, Trace]]:
        """A search with every candidate accounted for."""
        want = yield from self._want(query, ids, **options)
        seen, trace = yield from reading.explain(self.eye, want)
        return warned(seen, (yield from kinds.asked(self.eye, want.find))), trace

    @verb(Action.READ_CONTENT)
    def why_not(self, query: str, id: str, ids: Mapping[str, Any], **options: Any) -> Flow[Reason]:
        """What keeps a memory out of a search, or where it stands in it."""
        want = yield from self._want(query, ids, **options)
        return (yield from whynot.why_not(self.eye, want, named(id)))

    @verb(Action.READ_CONTENT)
    def context(
        self, query: str | None, ids: Mapping[str, Any], *, budget: Any = None, format: Any = None, tail: Any = None,
        limit: Any = None, top_k: Any = None, **options: Any,
    ) -> Flow[Bundle]:  # fmt: skip
        """A block of memories that fits a token budget."""
        order = plan.order(budget, format, tail, self.settings)
        free = limit is None and top_k is None
        most = bundle.lines(order.budget) if free else plan.size(limit, top_k, self.settings)
        if query is None:
            want, (find, _) = None, (yield from self._find(ids, limit=most, **plan.without_query(options)))
        else:
            want = replace((yield from self._want(query, ids, limit=most, **options)), deep=False)
            find = want.find
        made = yield from bundle.context(self.eye, want, find, order)
        return warned(made, (yield from kinds.asked(self.eye, find)))

    @verb(Action.READ_CONTENT)
    def get(self, id: str, *, as_of: Any, valid_at: Any, ids: Mapping[str, Any]) -> Flow[Fact | None]:
        """One memory, now or as it was."""
        at = yield from self.point(as_of, valid_at)
        fact = yield from call(self.store.fact, self.account, named(id), at)
        scope = self.within(ids)
        unseen = fact is None or (scope and not scope.covers(fact.scope)) or denials([fact], self.eye.guards)
        return None if unseen else fact

    @verb(Action.READ_CONTENT)
    def get_all(
        self, ids: Mapping[str, Any], *, offset: int = 0, belief: Any = None, **options: Any
    ) -> Flow[tuple[Sequence[Fact], Sides, Sequence[str]]]:
        """Everything a scope holds, but for what only stands behind it; and what of it contradicts what."""
        find, _ = yield from self._find(ids, offset=offset, **options)
        side = None if belief is None else plan.belief(belief)
        facts, sides = yield from reading.listing(self.eye, listed(find), side)
        return facts, sides, (yield from kinds.asked(self.eye, find))

    @verb(Action.READ_CONTENT)
    def history(self, id: str, *, ids: Mapping[str, Any]) -> Flow[Sequence[past.Change]]:
        """Everything that happened to a memory."""
        changes = yield from past.history(self.store, self.account, named(id), self.within(ids))
        versions = yield from call(self.store.versions, self.account, [change.seq for change in changes])
        return [] if denials(versions.values(), self.eye.guards) else changes

    @verb(Action.READ_CONTENT)
    def timeline(self, ids: Mapping[str, Any], *, limit: Any = None) -> Flow[Sequence[past.Change]]:
        """Everything a scope came to believe or gave up; with a limit, the newest of it."""
        newest = 0 if limit is None else plan.whole(limit, "limit", 1, plan.MAX_CHANGES)
        scope = self.scope(ids)
        hidden = yield from self._hidden(scope)
        changes = yield from past.timeline(self.store, scope)
        return [change for change in changes if change.id not in hidden][-newest:]

    @verb(Action.READ_CONTENT)
    def diff(self, before: Any, after: Any, ids: Mapping[str, Any]) -> Flow[dict[str, Any]]:
        """What changed in a scope between two moments."""
        scope = self.scope(ids)
        hidden = yield from self._hidden(scope)
        first, last = (yield from self.point(before)), (yield from self.point(after))
        return (yield from past.diff(self.store, scope, first, last, hidden))

    # Forgetting -------------------------------------------------------------------------------------------------------

    @verb(Action.REQUEST_DELETION)
    def reach(self, id: str | None, ids: Mapping[str, Any], *, source: Any) -> Flow[Closure]:
        """What an erasure would destroy: the target, its evidence and everything derived from it."""
        scoped = {name: value for name, value in ids.items() if value is not None}
        if (id is not None) + bool(scoped) + (source is not None) != 1:
            raise InvalidInput("Say what to erase: a memory id, a scope or a source, and only one of them.")
        if id is not None:
            found = yield from erasing.of_thread(self.store, self.account, named(id))
        elif source is not None:
            found = yield from erasing.of_source(self.store, self.account, messages.check_source(source))
        else:
            found = yield from erasing.of_scope(self.store, self.scope(ids))
        if not found.seqs:
            hint = "See whose memories there are with users()." if scoped else ""
            raise NotFoundError("There is nothing to erase there.", hint=hint)
        return found

    @verb(Action.REQUEST_DELETION)
    def erase(self, id: str | None, ids: Mapping[str, Any], *, source: Any, why: str) -> Flow[Certificate]:
        """Destroy content and everything derived from it, and certify it."""
        why = clean(why, limit=256)
        found = yield from self.reach(id, ids, source=source)
        yield from understand.unsay(self.store, self.account, found.seqs)
        yield from judge.unsay(self.store, self.account, found.seqs)
        yield from reconsolidate.unsay(self.store, self.account)
        wounds = yield from self._forsake(found.threads)
        try:
            done = yield from erasing.destroy(self.store, self.account, found, why)
        finally:
            self.overlay.drop(self.account, found.threads)
        left = (*(yield from self._refill()), *(yield from self._mend(wounds, found.threads)))
        return replace(done, warnings=(*done.warnings, *left))

    @verb(Action.REQUEST_DELETION)
    def reset(self) -> Flow[None]:
        """Destroy the account's ledger and begin a new chain that remembers only how long the old one was."""
        head = yield from call(self.store.head, self.account)
        was = {"entries": head.seq, "head": f"{HASH}:{head.hash.hex()}"}
        yield from call(self.store.reset, self.account, Draft(Erased((), "reset", was), None, self.caller.name))
        self.overlay.forget(self.account)
        self.mind.echoes.forget(self.account)
        yield from call(self.store.scrub)

    # Care -------------------------------------------------------------------------------------------------------------

    @verb(Action.ADMINISTER)
    def verify(self) -> Flow[tuple[Verdict, Sequence[str]]]:
        """Prove the ledger, check the file and the index, and that every entry is in the views as the ledger has it."""
        yield from call(self.store.scrub)
        began = yield from self._beginning()
        found = yield from self._proof()
        while not _sound(found) and began != (began := (yield from self._beginning())):  # it was reset meanwhile
            found = yield from self._proof()
        return found

    @verb(Action.ADMINISTER)
    def rebuild(self, views: Sequence[View] | None = None) -> Flow[Mapping[str, int]]:
        """Drop views and fold them again from the ledger; no model is asked."""
        chosen = VIEWS if views is None else _views(views)
        done = yield from call(self.store.rebuild, self.account, chosen, folding(chosen))
        yield from self._renew()
        return done

    @verb(Action.DERIVE_EMBEDDINGS)
    def reindex(self, embedder: Embedder) -> Flow[int]:
        """Embed everything with a model while searches go on with the old one, then switch."""
        done = yield from attempt(embed.reindex(self.store, embedder, self.settings.conflict_retries))
        return answer(embedder.model, done)

    @verb(Action.READ_METADATA)
    def stats(self) -> Flow[Mapping[str, Any]]:
        """Counts and sizes."""
        found = yield from call(self.store.stats, self.account)
        spent = {} if self.meter is None else self.meter.by_operation
        usage = {"usage": {name: cost.as_dict() for name, cost in spent.items()}} if spent else {}
        waiting = yield from self.waiting()
        return {**found, "recalls": found["recalls"] + self.overlay.waiting(self.account), "pending": waiting, **usage}

    @verb(Action.READ_METADATA)
    def users(self, *, type: Any = None) -> Flow[Sequence[Someone]]:
        """Whose memories there are, how many, and since when; never what they say."""
        wanted = census.sorts(type)
        return census.census((yield from call(self.store.tallies, self.account)), wanted)

    @verb(Action.EXPORT_CLAIMS)
    def export(self, write: Callable[[bytes], Any]) -> Flow[int]:
        """Write the account's ledger as one portable JSONL."""
        return (yield from transfer.export(self.store, self.account, write))

    @verb(Action.ADMINISTER)
    def import_(self, lines: Iterable[bytes | str]) -> Flow[tuple[int, tuple[str, ...]]]:
        """Append an exported ledger to the account it continues; a tombstone in it erases here too."""
        warnings = yield from self.flush()
        before = yield from call(self.store.head, self.account)
        try:
            new, lacking = yield from transfer.import_(self.store, self.account, lines)
        finally:
            self.overlay.forget(self.account)
        yield from self._doubt(before.seq)
        yield from call(self.store.scrub)
        return new, (*warnings, *lacking, *((yield from self._refill()) if new else ()))

    @verb(Action.ADMINISTER)
    def backup(
        self, target: Path, arriving: Callable[[Path], AbstractContextManager[Path]] = nullcontext
    ) -> Flow[None]:
        """Write a consistent copy of the store while others go on."""
        yield from call(run, self._copied(target, arriving))

    # Shared -----------------------------------------------------------------------------------------------------------

    def _copied(self, target: Path, arriving: Callable[[Path], AbstractContextManager[Path]]) -> Flow[None]:
        """Copy and clear up, as one effect: whoever is cancelled meanwhile leaves no half of it."""
        with arriving(target) as part:
            yield from call(self.store.backup, part)

    def _beginning(self) -> Flow[list[bytes]]:
        """The mark of the ledger's first entry, which a reset changes and nothing else does."""
        return [entry.hash for entry in (yield from call(self.store.scan, self.account, 0, 1))]

    def _proof(self) -> Flow[tuple[Verdict, Sequence[str]]]:
        fates = agree.Fates()
        verdict = yield from proof.verify(self.store, self.account, fates.read)
        problems = yield from call(self.store.check)
        if verdict.ok and not problems:
            problems = yield from agree.disagreements(self.store, self.account, fates)
        return verdict, problems

    def _refill(self) -> Flow[tuple[str, ...]]:
        """Embed what has no vector, or say why not."""
        if self.embedder is None:
            return ()
        filled = yield from attempt(embed.fill(self.store, self.embedder))
        return (f"Not embedded yet, found by words only: {filled}",) if isinstance(filled, Failure) else ()

    def _hidden(self, scope: Scope) -> Flow[frozenset[str]]:
        """The memories of a scope of which some version may not be shown."""
        guards = self.eye.guards
        versions = (yield from call(self.store.lives, scope)) if guards else ()
        denied = denials(versions, guards)
        return frozenset(fact.id for fact in versions if fact.seq in denied)

    def _shown(self, witnesses: Sequence[Witness]) -> Flow[bool]:
        """Whether some memory taken from this evidence may be shown; evidence itself has no kind to judge by."""
        guards = self.eye.guards
        if not guards:
            return True
        for thread in (yield from call(self.store.derived, self.account, [witness.id for witness in witnesses])):
            fact = yield from call(self.store.fact, self.account, thread)
            if fact is not None and not denials([fact], guards):
                return True
        return False

    def _unknown(self, scope: Scope, kind: str) -> Flow[tuple[str, ...]]:
        """What to say of a kind that something is about to be kept under."""
        if kind in self.mind.ontology:
            return ()
        now = yield from self.point()
        return (yield from kinds.kept(self.eye, scope, now, kind))

    def _find(
        self, ids: Mapping[str, Any], *, filters: Any = None, kinds: Any = None, limit: Any = None, top_k: Any = None,
        as_of: Any = None, valid_at: Any = None, show_expired: Any = False, offset: Any = 0,
    ) -> Flow[tuple[Find, int]]:  # fmt: skip
        scope, rest = plan.scope_and_filter(ids, filters, self.account)
        at = yield from self.point(as_of, valid_at)
        wanted = plan.size(limit, top_k, self.settings)
        find = plan.find(scope, at, rest, limit=wanted, offset=offset, show_expired=show_expired)
        return plan.of_kinds(find, kinds), wanted

    def _want(
        self, query: str, ids: Mapping[str, Any], *, threshold: Any = None, min_score: Any = None, rerank: Any = False,
        reference_date: Any = None, belief: Any = None, lens: Any = None, **options: Any,
    ) -> Flow[Want]:  # fmt: skip
        side, sure = plan.belief(belief), plan.lens(lens)
        find, limit = yield from self._find(ids, **options)
        now = plan.reference(reference_date, find.as_of, self.settings)
        least, judged = plan.least(threshold, min_score), plan.flag(rerank, "rerank")
        deep = limit > self.settings.depth
        return Want(query, find, limit, least, judged, now, deep, belief=side, lens=sure)


def warned(found: W, warnings: tuple[str, ...]) -> W:
    """What a read returns, with something more to say of it."""
    return replace(found, warnings=(*found.warnings, *warnings)) if warnings else found


def answer(model: str, done: T | Failure) -> T:
    """What an embedder was asked for, or the error that says which one failed."""
    if not isinstance(done, Failure):
        return done
    if isinstance(done.error, ToldError):
        raise done.error
    hint = "An embedder turns a list of texts into a list of vectors."
    raise EmbeddingError(f"The embedder {model} failed: {done}.", hint=hint) from done.error


def _views(names: Any) -> tuple[View, ...]:
    hint = f"Views: {', '.join(VIEWS)}. Give a list of them, or leave it out for all."
    if not isinstance(names, list | tuple | set | frozenset) or not names:
        raise InvalidInput(f"views must be a list of names, not {shown(names)}.", hint=hint)
    unknown = [name for name in names if name not in VIEWS]
    if unknown:
        raise InvalidInput(f"There is no view {shown(unknown[0])}.", hint=hint)
    return tuple(view for view in VIEWS if view in names)


def _digest(scope: Scope, said: messages.Said, expires: int | None, kind: str, ask: Ask) -> bytes:
    """What a request comes to, whichever way it was spelled."""
    turns = [
        [turn.evidence.digest().hex(), dict(turn.meta), turn.valid.as_json(), *(i.identity() for i in turn.images)]
        for turn in said.turns
    ]
    how = [ask.by, ask.prompt, list(ask.facts)]
    return sha256(canonical([scope.ids(), turns, list(said.skipped), expires, kind, *how]))


def _sound(found: tuple[Verdict, Sequence[str]]) -> bool:
    verdict, problems = found
    return verdict.ok and not problems
