-- cache_spill keeps up to 32 MB of dirty pages of a commit in memory: if a page is spilled and then
-- changed again, SQLite has to redo the checksums of all log frames after it. With synchronous = NORMAL
-- a power failure loses everything since the last checkpoint, so checkpoints run twice as often.
-- name: pragmas_full
PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 8000;
PRAGMA cache_size = -16384; PRAGMA cache_spill = 8192; PRAGMA trusted_schema = OFF
-- name: pragmas_normal
PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 4000;
PRAGMA cache_size = -16384; PRAGMA cache_spill = 8192; PRAGMA trusted_schema = OFF

-- name: account
SELECT id, seq, at, hash FROM account WHERE name = ?
-- name: add_account
INSERT INTO account (name, seq, at, hash) VALUES (?, 0, 0, ?)
-- name: move_head
UPDATE account SET seq = ?, at = ?, hash = ? WHERE id = ?
-- name: account_names
SELECT name FROM account WHERE id IN (SELECT value FROM json_each(?)) AND typeof(name) = 'text' ORDER BY id
-- name: part_account
SELECT account FROM part WHERE id = ?
-- name: accounts
SELECT name FROM account WHERE seq > 0 ORDER BY id

-- name: add_entry
INSERT INTO entry (id, tx, at, sort, thread, digest, hash, salt, envelope) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
-- name: scan
SELECT id, tx, at, sort, thread, digest, hash, salt, envelope FROM entry WHERE id > ? AND id < ? ORDER BY id LIMIT ?
-- name: thread
SELECT id, tx, at, sort, thread, digest, hash, salt, envelope FROM entry
WHERE thread = ? AND id > ? AND id < ? ORDER BY id
-- name: entry_at
SELECT at FROM entry WHERE id = ?
-- name: entry_hash
SELECT hash FROM entry WHERE id = ?
-- name: tombstoned
SELECT digest FROM tombstone WHERE digest IN (SELECT unhex(value) FROM json_each(?))

-- name: known
WITH mark (md5, digest, hash) AS (VALUES (?, ?, ?))
SELECT a.seq, s.part, t.key, t.digest, t.outcome, t.seq, c.name, c.dim, e.digest, e.name, v.hash, f.id
FROM mark m CROSS JOIN account a
LEFT JOIN model c ON c.current
LEFT JOIN ticket t ON t.account = a.id AND t.key = ?
LEFT JOIN space s ON s.account = a.id AND s.user_id IS ? AND ifnull(s.agent_id, '') = ifnull(?, '')
    AND ifnull(s.run_id, '') = ifnull(?, '')
LEFT JOIN evidence e ON e.space = s.id AND e.digest = m.digest
LEFT JOIN embedding v ON v.model = c.id AND v.hash = m.hash
LEFT JOIN fact f ON f.space = s.id AND f.md5 = m.md5 AND f.until = 4611686018427387904
WHERE a.name = ?
-- name: ticket
SELECT key, digest, outcome, seq FROM ticket WHERE account = ? AND key = ?
-- name: add_ticket
INSERT INTO ticket (account, key, digest, outcome, seq) VALUES (?, ?, ?, ?, ?)

-- name: space
SELECT id, part FROM space
WHERE account = ? AND user_id IS ? AND ifnull(agent_id, '') = ifnull(?, '') AND ifnull(run_id, '') = ifnull(?, '')
-- name: spaces_by_user
SELECT id, part FROM space
WHERE account = ?1 AND user_id = ?2 AND (?3 IS NULL OR agent_id = ?3) AND (?4 IS NULL OR run_id = ?4)
-- name: spaces_by_agent
SELECT id, part FROM space WHERE account = ?1 AND agent_id = ?3 AND (?2 IS NULL) AND (?4 IS NULL OR run_id = ?4)
-- name: spaces_by_run
SELECT id, part FROM space WHERE account = ?1 AND run_id = ?4 AND (?2 IS NULL) AND (?3 IS NULL)
-- name: space_ids
SELECT user_id, agent_id, run_id FROM space WHERE id = ?
-- name: part
SELECT id FROM part WHERE account = ? AND home = ?
-- name: add_part
INSERT INTO part (account, home) VALUES (?, ?) RETURNING id
-- name: add_space
INSERT INTO space (account, part, user_id, agent_id, run_id) VALUES (?, ?, ?, ?, ?) RETURNING id
-- name: part_state
SELECT rows, folded, version, epoch FROM extent WHERE id = ?
-- name: bump_part
UPDATE part SET version = version + 1 WHERE id = ?
-- name: renew_part
UPDATE part SET version = version + (1 << 32), epoch = epoch + 1 WHERE id = ?
-- name: parts_of_account
SELECT id FROM part WHERE account = ?

-- name: add_evidence
INSERT INTO evidence (id, name, space, digest, source) VALUES (?, ?, ?, ?, ?)
-- name: evidence_held
SELECT 1 FROM evidence WHERE space = ? AND digest = ?
-- name: evidence_by_space
SELECT id, name, space, digest, source, (SELECT json_group_array(hash) FROM holding h WHERE h.id = evidence.id)
FROM evidence WHERE space IN (SELECT value FROM json_each(?)) ORDER BY id
-- name: evidence_by_source
SELECT id, name, space, digest, source, (SELECT json_group_array(hash) FROM holding h WHERE h.id = evidence.id)
FROM evidence WHERE source = ? AND id > ? AND id < ? ORDER BY id
-- name: evidence_named
SELECT id, name, space, digest, source, (SELECT json_group_array(hash) FROM holding h WHERE h.id = evidence.id)
FROM evidence WHERE +id > ? AND +id < ? AND name IN (SELECT value FROM json_each(?)) ORDER BY id

-- name: add_fact
INSERT INTO fact (id, thread, tx, space, until, gone, text, md5, kind, created_at, updated_at, valid_from, valid_to,
    precision, expires, said_at, role, actor, author, evidence, source, subject, predicate, object, polarity, modality,
    confidence, after, meta, first, last)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
-- name: place_fact
UPDATE fact SET first = ?2, last = ?3 WHERE id = ?1
-- name: place_facts
UPDATE fact SET first = p.first, last = p.last
FROM (SELECT fact, min(id) AS first, max(id) AS last FROM passage WHERE fact > ?1 AND fact < ?2 GROUP BY fact) p
WHERE fact.id = p.fact
-- name: held
WITH wanted (thread, before) AS (VALUES (?, ?))
SELECT f.id, e.thread FROM wanted w CROSS JOIN entry e ON e.thread = w.thread AND e.id < w.before AND e.id > ?
    CROSS JOIN fact f ON f.id = e.id WHERE f.until = 4611686018427387904
-- name: close_fact
UPDATE fact SET until = ? WHERE id = ?
-- name: close_passages
UPDATE passage SET until = ?1 WHERE id >= (SELECT first FROM fact WHERE id = ?2)
    AND id <= (SELECT last FROM fact WHERE id = ?2) AND fact = ?2 AND until = 4611686018427387904 RETURNING id >> 32
-- name: retire_thread
UPDATE fact SET gone = ?1 WHERE gone = 4611686018427387904
    AND id IN (SELECT id FROM entry WHERE thread = ?2 AND id > ?3 AND id < ?4)
-- name: text_held
SELECT 1 FROM fact WHERE space = ? AND md5 = ? AND until = 4611686018427387904
-- name: held_about
SELECT f.* FROM json_each(?2) q CROSS JOIN fact f ON f.space = ?1 AND f.subject = q.value ->> 0
    AND f.predicate = q.value ->> 1 AND f.until = 4611686018427387904 AND f.expires > ?3
-- name: held_kinds
SELECT f.* FROM json_each(?2) q CROSS JOIN fact f ON f.space = ?1 AND f.kind = q.value AND f.kind <> 'memory'
    AND f.until = 4611686018427387904 AND f.expires > ?3
-- name: news
SELECT 1 FROM json_each(?3) q CROSS JOIN fact f ON f.space = ?1 AND f.subject = ?2 AND f.predicate = q.value
    AND f.until = 4611686018427387904 AND f.id > ?4
-- name: more
SELECT 1 FROM fact f WHERE f.space = ?1 AND f.kind = ?2 AND f.kind <> 'memory'
    AND f.until = 4611686018427387904 AND f.id > ?3 LIMIT 1
-- name: stirred
SELECT 1 FROM entry WHERE thread = ?1 AND id > ?2 AND id < ?3 LIMIT 1
-- name: facts_latest
SELECT f.* FROM fact f
WHERE f.space IN (SELECT value FROM json_each(?1)) AND f.id <= ?2 AND f.until > ?3 AND (?4 OR f.expires > ?5)
-- name: facts_valid
SELECT f.* FROM fact f
WHERE f.space IN (SELECT value FROM json_each(?1)) AND f.id <= ?2 AND f.gone > ?3 AND (?4 OR f.expires > ?5)
    AND f.valid_from <= ?6 AND f.valid_to > ?6
    AND NOT EXISTS (SELECT 1 FROM entry e CROSS JOIN fact g ON g.id = e.id
        WHERE e.thread = f.thread AND e.id > f.id AND e.id <= ?2
            AND g.gone > ?3 AND g.valid_from <= ?6 AND g.valid_to > ?6)
-- name: fact_latest
SELECT f.* FROM entry e CROSS JOIN fact f ON f.id = e.id
WHERE e.thread = :thread AND e.id > :base AND e.id <= :pos AND f.until > :seq
-- name: fact_valid
SELECT f.* FROM entry e CROSS JOIN fact f ON f.id = e.id
WHERE e.thread = :thread AND e.id > :base AND e.id <= :pos AND f.gone > :seq
    AND f.valid_from <= :valid AND f.valid_to > :valid ORDER BY e.id DESC LIMIT 1
-- name: taken
SELECT f.* FROM entry e CROSS JOIN fact f ON f.id = e.id
WHERE +e.id > ?1 AND +e.id < ?2
    AND e.thread IN (SELECT thread FROM fact WHERE evidence IN (SELECT value FROM json_each(?3)))
ORDER BY f.id
-- name: scopes
SELECT user_id, agent_id, run_id FROM space WHERE account = ?
-- name: tallies
SELECT s.user_id, s.agent_id, s.run_id, t.memories, a.at, z.at
FROM (SELECT space, sum(held) AS memories, min(id) AS first, max(id) AS last
    FROM (SELECT space, id, until = 4611686018427387904 AND kind NOT IN ('turn', 'node', 'quarantine', 'topic') AS held
            FROM fact WHERE id > ?2 AND id < ?3
        UNION ALL SELECT space, id, 0 FROM evidence WHERE id > ?2 AND id < ?3
        UNION ALL SELECT space, id, 0 FROM link WHERE id > ?2 AND id < ?3) GROUP BY space) t
    JOIN space s ON s.id = t.space AND s.account = ?1 JOIN entry a ON a.id = t.first JOIN entry z ON z.id = t.last
-- name: turns
SELECT o.id, f.* FROM fact o
    CROSS JOIN entry e ON e.thread = o.thread AND e.id >= o.id AND e.id < ?5
    CROSS JOIN fact f ON f.id = e.id AND f.until = 4611686018427387904
WHERE o.space = ?1 AND o.id > ?2 AND o.id < ?3 AND o.evidence IS NOT NULL AND o.gone = 4611686018427387904
    AND f.role IN ('user', 'assistant') AND f.kind NOT IN ('node', 'quarantine')
    AND o.id = (SELECT min(g.id) FROM entry v CROSS JOIN fact g ON g.id = v.id
        WHERE v.thread = o.thread AND v.id <= f.id AND g.evidence = o.evidence AND g.gone = 4611686018427387904
            AND v.id > ifnull((SELECT max(h.id) FROM entry w CROSS JOIN fact h ON h.id = w.id
                WHERE w.thread = o.thread AND w.id > ?4 AND w.id <= f.id AND h.evidence <> o.evidence), ?4))
    AND f.thread = (SELECT g.thread FROM fact g WHERE g.evidence = o.evidence AND +g.space = ?1
        AND g.id > ?4 AND g.id < ?5 ORDER BY g.id LIMIT 1)
-- name: versions
SELECT f.* FROM fact f WHERE f.id IN (SELECT value FROM json_each(?))
-- name: versions_of
SELECT s.user_id, s.agent_id, s.run_id, f.* FROM account a CROSS JOIN json_each(?2) j
CROSS JOIN fact f ON f.id = (a.id << 40) + j.value CROSS JOIN space s ON s.id = f.space WHERE a.name = ?1
-- name: lives
SELECT f.* FROM fact f WHERE f.space IN (SELECT value FROM json_each(?)) ORDER BY f.id
-- name: tellings
SELECT f.* FROM entry e CROSS JOIN fact f ON f.id = e.id
WHERE +e.id > ?1 AND +e.id < ?2 AND e.thread IN (SELECT value FROM json_each(?3)) ORDER BY f.id

-- name: add_link
INSERT INTO link (id, src, rel, dst, space, weight, until, meta) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
-- name: add_tick
INSERT INTO tick (id, space, part, at, turns, tokens, turns_so_far, tokens_so_far) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
-- name: last_tick
SELECT turns_so_far, tokens_so_far FROM tick WHERE part = ? ORDER BY id DESC LIMIT 1
-- name: ticks
SELECT id & 1099511627775, space, at, turns, tokens FROM tick WHERE part = ? AND id <= ? ORDER BY id DESC LIMIT ?
-- name: ticked
SELECT p.key, ifnull(t.turns_so_far, 0), ifnull(t.tokens_so_far, 0) FROM json_each(?2) p
LEFT JOIN tick t ON t.part = ?1
    AND t.id = (SELECT id FROM tick WHERE part = ?1 AND id <= p.value ORDER BY id DESC LIMIT 1)
ORDER BY p.key
-- name: recount_ticks
UPDATE tick SET turns_so_far = s.turns, tokens_so_far = s.tokens
FROM (SELECT part, id, sum(turns) OVER whole AS turns, sum(tokens) OVER whole AS tokens
    FROM tick WHERE part = ? WINDOW whole AS (ORDER BY id)) s
WHERE tick.part = s.part AND tick.id = s.id
-- name: searched
SELECT a.id, EXISTS (SELECT 1 FROM link), m.id, m.name, m.dim
FROM account a LEFT JOIN model m ON m.current WHERE a.name = ?
-- name: links
SELECT l.* FROM link l
WHERE (l.src IN (SELECT value FROM json_each(:nodes)) OR l.dst IN (SELECT value FROM json_each(:nodes)))
    AND l.id > :base AND l.id <= :pos AND l.until > :seq
ORDER BY l.id

-- name: add_passage
INSERT INTO passage (id, fact, slot, space, until, expires, before, length, hash, text, ready, terms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
-- name: spoken
SELECT f.until, s.text FROM fact f JOIN spoken s ON s.id = f.id WHERE f.id = ?
-- name: turn
SELECT w.id & 4294967295, w.text FROM entry e CROSS JOIN fact f ON f.id = e.id
    JOIN wording w ON w.id BETWEEN f.first AND f.last AND +w.fact = f.id AND w.slot = 0
WHERE e.thread = ? AND f.space = ? AND f.created_at = f.updated_at AND nullif(f.actor, '') IS NOT NULL
ORDER BY e.id LIMIT 1
-- name: last_of_part
SELECT p.fact FROM passage p JOIN fact f ON f.id = p.fact
WHERE p.id >= ? AND p.id < ? AND f.predicate IS NULL AND f.kind <> 'node' ORDER BY p.id DESC LIMIT 1
-- name: pending_of
SELECT w.hash, w.earlier, w.text FROM fact f
    CROSS JOIN wording w ON w.id BETWEEN f.first AND f.last AND +w.fact = f.id
WHERE f.id IN (SELECT value FROM json_each(?1))
    AND NOT EXISTS (SELECT 1 FROM embedding e WHERE e.model = ?2 AND e.hash = w.hash)
ORDER BY w.id LIMIT ?3
-- name: part_terms
SELECT id & 4294967295, terms FROM passage WHERE id >= ? AND id < ? ORDER BY id
-- name: drop_terms
UPDATE passage SET terms = NULL WHERE id >= ? AND id < ?
-- name: passages_of_facts
SELECT p.id, p.fact FROM fact f CROSS JOIN passage p ON p.id BETWEEN f.first AND f.last AND +p.fact = f.id
WHERE f.id IN (SELECT value FROM json_each(?))
-- name: part_rows
SELECT p.id & 4294967295, p.fact & 1099511627775, p.space, p.until, p.expires, p.length, p.slot, ifnull(p.before, -1),
    ifnull(f.said_at, ifnull(f.updated_at, 0)), ifnull(f.kind NOT IN ('turn', 'node'), 1), f.role, f.actor, p.terms
FROM passage p LEFT JOIN fact f ON f.id = p.fact WHERE p.id >= ? AND p.id < ? ORDER BY p.id
-- name: part_closed
SELECT id & 4294967295, until FROM passage WHERE id >> 32 = ? AND until > ? AND until < 4611686018427387904
-- name: part_texts
SELECT p.id & 4294967295, p.fact, p.slot, p.space, p.until, p.expires, p.before, ifnull(p.text, f.text), p.hash
FROM passage p JOIN spoken f ON f.id = p.fact WHERE p.id >= ? AND p.id < ? ORDER BY p.id

-- name: add_posting
INSERT INTO posting (part, term, chunk, docs) VALUES (?, ?, ?, ?)
ON CONFLICT (part, term, chunk) DO UPDATE SET docs = CAST(docs || excluded.docs AS BLOB)
-- name: postings
SELECT docs FROM posting WHERE part = ? AND term = ? ORDER BY chunk

-- name: model
SELECT id, name, dim FROM model WHERE current
-- name: model_named
SELECT id, name, dim FROM model WHERE name = ?
-- name: models
SELECT id, name, dim, current FROM model
-- name: add_model
INSERT INTO model (name, dim, current) VALUES (?, ?, ?) RETURNING id
-- name: use_model
UPDATE model SET current = (id = ?)
-- name: add_embedding
INSERT OR IGNORE INTO embedding (model, hash, code) VALUES (?, ?, ?)
RETURNING hash, EXISTS (SELECT 1 FROM passage p WHERE p.ready IS NULL AND p.hash = embedding.hash)
-- name: embedded
SELECT hash FROM embedding
WHERE model = (SELECT id FROM model WHERE current) AND hash IN (SELECT unhex(value) FROM json_each(?))
-- name: pending
SELECT DISTINCT w.hash, w.earlier, w.text FROM wording w
WHERE NOT EXISTS (SELECT 1 FROM embedding e WHERE e.model = ? AND e.hash = w.hash) LIMIT ?
-- name: pending_count
SELECT count(*) FROM passage p WHERE NOT EXISTS (SELECT 1 FROM embedding e WHERE e.model = ? AND e.hash = p.hash)
-- name: part_codes
SELECT p.id & 4294967295, e.code FROM passage p CROSS JOIN embedding e ON e.model = ? AND e.hash = p.hash
WHERE p.id >= ? AND p.id < ? ORDER BY p.id
-- name: blocks
SELECT number, epoch, builder, sha256, codes FROM block WHERE model = ? AND part = ? AND number >= ? ORDER BY number
-- name: add_block
INSERT OR REPLACE INTO block (model, part, number, epoch, builder, sha256, codes) VALUES (?, ?, ?, ?, ?, ?, ?)
-- name: drop_block
DELETE FROM block WHERE model = ? AND part = ? AND number = ?
-- name: drop_homeless_postings
DELETE FROM posting WHERE part NOT IN (SELECT id FROM part)
-- name: drop_homeless_blocks
DELETE FROM block WHERE part NOT IN (SELECT id FROM part) OR model NOT IN (SELECT id FROM model)
-- name: homeless_postings
SELECT DISTINCT part FROM posting WHERE part NOT IN (SELECT id FROM part)
-- name: full_stretches
SELECT (p.id & 4294967295) / ?1 FROM passage p CROSS JOIN embedding e ON e.model = ?2 AND e.hash = p.hash
WHERE p.id >= ?3 AND p.id < ?4 AND typeof(e.code) = 'blob' AND length(e.code) = ?5 GROUP BY 1 HAVING count(*) = ?1
-- name: block_numbers
SELECT number FROM block WHERE model = ? AND part = ?
-- name: misfit_vectors
SELECT NULL, count(*) FROM embedding e LEFT JOIN model m ON m.id = e.model
WHERE m.id IS NULL OR typeof(e.code) <> 'blob' OR length(e.code) <> m.dim GROUP BY 1
-- name: drop_misfit_vectors
DELETE FROM embedding WHERE NOT EXISTS (
    SELECT 1 FROM model m WHERE m.id = embedding.model AND typeof(code) = 'blob' AND length(code) = m.dim)
-- name: part_passages
SELECT p.id & 4294967295, ifnull(p.text, s.text), ifnull(q.text, g.text), p.terms, p.length, p.hash,
    (p.space, p.until, p.expires) IS (f.space, f.until, f.expires) AND p.id BETWEEN f.first AND f.last
    AND p.id >> 32 IS (SELECT part FROM space WHERE id = p.space) AND (p.before IS NULL) = (ifnull(q.text, g.text) IS NULL)
FROM passage p LEFT JOIN fact f ON f.id = p.fact LEFT JOIN spoken s ON s.id = p.fact
    LEFT JOIN passage q ON q.id = (p.id >> 32 << 32) + p.before LEFT JOIN spoken g ON g.id = q.fact
WHERE p.id >= ? AND p.id < ? ORDER BY p.id
-- name: part_postings
SELECT term, chunk, docs FROM posting WHERE part = ?
-- name: facts_without_passage
SELECT f.id >> 40, count(*) FROM fact f WHERE f.kind NOT IN ('quarantine', 'topic')
    AND (NOT EXISTS (SELECT 1 FROM passage p WHERE p.id = f.first AND p.fact = f.id)
        OR NOT EXISTS (SELECT 1 FROM passage p WHERE p.id = f.last AND p.fact = f.id))
GROUP BY 1
-- name: misplaced_spaces
SELECT s.account, count(*) FROM space s LEFT JOIN part p ON p.id = s.part AND p.account = s.account
WHERE p.home IS NOT CASE WHEN s.user_id IS NOT NULL THEN 'u:' || s.user_id
    WHEN s.agent_id IS NOT NULL THEN 'a:' || s.agent_id ELSE 'r:' || s.run_id END GROUP BY 1
-- name: all_blocks
SELECT b.model, b.part, b.number, b.epoch, b.builder, b.sha256, b.codes, p.epoch
FROM block b LEFT JOIN part p ON p.id = b.part ORDER BY b.part, b.number
-- name: waiting
SELECT id, hash FROM passage WHERE ready IS NULL AND hash IN (SELECT unhex(value) FROM json_each(?))
-- name: passages_with_hash
SELECT id, hash FROM passage WHERE hash IN (SELECT unhex(value) FROM json_each(?))
-- name: ready_passage
UPDATE passage SET ready = 1 WHERE id = ?
-- name: ready_passages
UPDATE passage SET ready = 1 WHERE ready IS NULL
-- name: wait_again
UPDATE passage SET ready = NULL WHERE ready IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM embedding e WHERE e.model = (SELECT id FROM model WHERE current) AND e.hash = passage.hash)
-- name: bump_all_parts
UPDATE part SET version = version + 1, epoch = epoch + 1
-- name: drop_model
DELETE FROM model WHERE id = ?
-- name: drop_embeddings
DELETE FROM embedding WHERE model = ?
-- name: drop_blocks_of_model
DELETE FROM block WHERE model = ?

-- name: cursor
SELECT seq FROM cursor WHERE account = ? AND consumer = ?
-- name: advance
INSERT OR REPLACE INTO cursor (account, consumer, seq) VALUES (?, ?, ?)
-- name: add_fault
INSERT INTO fault (account, consumer, seq, error, raw, at, attempts) VALUES (?, ?, ?, ?, ?, ?, 1)
ON CONFLICT (account, consumer, seq) DO UPDATE
SET error = excluded.error, raw = excluded.raw, at = excluded.at, attempts = attempts + 1

-- name: settle_faults
DELETE FROM fault WHERE account = ? AND id IN (SELECT value FROM json_each(?))

-- name: faults
SELECT id, consumer, seq, error, at, attempts, raw FROM fault WHERE account = ? ORDER BY id

-- name: touched
SELECT thread, count, last FROM access WHERE account = ? AND thread IN (SELECT value FROM json_each(?))
-- name: drop_access
DELETE FROM access WHERE account = ? AND thread IN (SELECT value FROM json_each(?)) RETURNING count

-- name: known_threads
SELECT j.value FROM json_each(?1) j
WHERE EXISTS (SELECT 1 FROM entry e CROSS JOIN fact f ON f.id = e.id
    WHERE e.thread = j.value AND e.id > ?2 AND e.id < ?3)
-- name: add_access
INSERT INTO access (account, thread, count, last) VALUES (?, ?, ?, ?)
ON CONFLICT (account, thread) DO UPDATE SET count = count + excluded.count, last = max(last, excluded.last)
-- name: meet
INSERT INTO met (account, one, other, count, last) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (account, one, other) DO UPDATE SET count = count + excluded.count, last = max(last, excluded.last)
-- name: met
SELECT one, other, count, last FROM met WHERE account = ?1 AND one IN (SELECT value FROM json_each(?2))
UNION SELECT one, other, count, last FROM met INDEXED BY met_other
WHERE account = ?1 AND other IN (SELECT value FROM json_each(?2)) ORDER BY one, other
-- name: add_recall
INSERT INTO recall (account, thread, at, rank, score, query, access) VALUES (?, ?, ?, ?, ?, ?, ?)
-- name: recalls
SELECT at, rank, score, query, access FROM recall WHERE account = ? AND thread = ? ORDER BY at, id
-- name: trim_recalls
DELETE FROM recall WHERE id IN (SELECT r.id FROM json_each(?2) t CROSS JOIN recall r WHERE r.id IN (
    SELECT id FROM recall WHERE account = ?1 AND thread = t.value ORDER BY at DESC, id DESC LIMIT -1 OFFSET ?3))
-- name: open_recall_states
SELECT s.id, s.thread, s.since, s.until, s.count, s.strength FROM json_each(?2) t JOIN recall_state s ON s.id = (
    SELECT id FROM recall_state WHERE account = ?1 AND thread = t.value ORDER BY since DESC, id DESC LIMIT 1)
-- name: close_recall_state
UPDATE recall_state SET until = ? WHERE id = ?
-- name: add_recall_state
INSERT INTO recall_state (account, thread, since, until, count, strength) VALUES (?, ?, ?, ?, ?, ?)
-- name: recall_states
SELECT thread, since, until, count, strength FROM recall_state
WHERE account = ? AND thread IN (SELECT value FROM json_each(?)) ORDER BY thread, since, id
-- name: trim_recall_states
DELETE FROM recall_state WHERE id IN (SELECT s.id FROM json_each(?2) t CROSS JOIN recall_state s WHERE s.id IN (
    SELECT id FROM recall_state WHERE account = ?1 AND thread = t.value ORDER BY since DESC, id DESC LIMIT -1 OFFSET ?3))
-- name: open_tasks
SELECT thread, reason, priority, due, id, claimed FROM task
WHERE account = ? AND thread IN (SELECT value FROM json_each(?))
-- name: add_task
INSERT INTO task (account, thread, reason, priority, due) VALUES (?, ?, ?, ?, ?)
-- name: urge_task
UPDATE task SET priority = ?, due = ? WHERE id = ?
-- name: tasks
SELECT thread, reason, priority, due, id, claimed, attempts FROM task WHERE account = ?
ORDER BY priority DESC, due, id LIMIT ?
-- name: claim_tasks
UPDATE task SET claimed = ?2, attempts = attempts + 1 WHERE id IN (
    SELECT id FROM task WHERE account = ?1 AND due <= ?2 AND (claimed = 0 OR claimed < ?3)
    ORDER BY priority DESC, due, id LIMIT ?4)
RETURNING thread, reason, priority, due, id, claimed, attempts
-- name: drop_tasks
DELETE FROM task WHERE +account = ? AND id IN (SELECT value FROM json_each(?))
-- name: put_note
INSERT OR REPLACE INTO note (account, consumer, key, value) VALUES (?, ?, ?, ?)
-- name: drop_note
DELETE FROM note WHERE account = ? AND consumer = ? AND key = ?
-- name: notes
SELECT key, value FROM note WHERE account = ? AND consumer = ? ORDER BY key
-- name: notes_named
SELECT key, value FROM note WHERE account = ? AND consumer = ? AND key IN (SELECT value FROM json_each(?)) ORDER BY key
-- name: forget_met_one
DELETE FROM met WHERE account = ? AND one IN (SELECT value FROM json_each(?))
-- name: forget_met_other
DELETE FROM met INDEXED BY met_other WHERE account = ? AND other IN (SELECT value FROM json_each(?))
-- name: forget_recall
DELETE FROM recall WHERE account = ? AND thread IN (SELECT value FROM json_each(?))
-- name: forget_recall_state
DELETE FROM recall_state WHERE account = ? AND thread IN (SELECT value FROM json_each(?))
-- name: forget_task
DELETE FROM task WHERE account = ? AND thread IN (SELECT value FROM json_each(?))
-- name: forget_note
DELETE FROM note INDEXED BY note_key WHERE account = ? AND key IN (SELECT value FROM json_each(?))
-- name: drop_account_met
DELETE FROM met WHERE account = ?
-- name: drop_account_recall
DELETE FROM recall WHERE account = ?
-- name: drop_account_recall_state
DELETE FROM recall_state WHERE account = ?
-- name: drop_account_task
DELETE FROM task WHERE account = ?
-- name: drop_account_note
DELETE FROM note WHERE account = ?
-- name: count_tasks
SELECT count(*) FROM task WHERE account = ?

-- name: behind
SELECT view FROM behind WHERE account = (SELECT id FROM account WHERE name = ?) ORDER BY view
-- name: caught_up
DELETE FROM behind WHERE account = ? AND view IN (SELECT value FROM json_each(?))
-- name: drop_account_behind
DELETE FROM behind WHERE account = ?

-- name: add_blob
INSERT OR IGNORE INTO blob (account, hash, media_type, data) VALUES (?, ?, ?, ?)
-- name: add_holding
INSERT OR IGNORE INTO holding (id, hash) VALUES (?, ?)
-- name: blob
SELECT media_type, data FROM blob WHERE account = ? AND hash = ?
-- name: blobs
SELECT hash, media_type, length(data) FROM blob WHERE account = ? ORDER BY hash
-- name: all_blobs
SELECT hash, data FROM blob
-- name: drop_holdings
DELETE FROM holding WHERE id IN (SELECT value FROM json_each(?)) RETURNING hash
-- name: drop_unheld
DELETE FROM blob WHERE account = ?1 AND hash IN (SELECT value FROM json_each(?2))
    AND NOT EXISTS (SELECT 1 FROM holding h WHERE h.hash = blob.hash AND h.id > ?3 AND h.id < ?4)
-- name: range_holding
DELETE FROM holding WHERE id > ? AND id < ?
-- name: drop_account_blobs
DELETE FROM blob WHERE account = ?
-- name: count_blobs
SELECT count(*) FROM blob WHERE account = ?

-- name: shred_entry
UPDATE entry SET envelope = NULL, salt = NULL WHERE id = ? AND envelope IS NOT NULL
-- name: intact
SELECT 1 FROM entry WHERE id = ? AND envelope IS NOT NULL
-- name: entries_named
SELECT count(*) FROM entry WHERE id IN (SELECT value FROM json_each(?))
-- name: bury
INSERT OR IGNORE INTO tombstone (digest) SELECT digest FROM entry WHERE id = ?
-- name: bury_empty
INSERT OR IGNORE INTO tombstone (digest) SELECT digest FROM entry WHERE id = ? AND envelope IS NULL
-- name: bury_range
INSERT OR IGNORE INTO tombstone (digest) SELECT digest FROM entry WHERE id > ? AND id < ?
-- name: drop_passages_of_facts
DELETE FROM passage WHERE fact IN (SELECT value FROM json_each(?)) RETURNING id >> 32, hash
-- name: threads_of_facts
SELECT DISTINCT thread FROM fact WHERE id IN (SELECT value FROM json_each(?))
-- name: drop_facts
DELETE FROM fact WHERE id IN (SELECT value FROM json_each(?))
-- name: drop_links
DELETE FROM link WHERE id IN (SELECT value FROM json_each(?))
-- name: drop_evidence
DELETE FROM evidence WHERE id IN (SELECT value FROM json_each(?))
-- name: drop_ticks
DELETE FROM tick WHERE (part, id) IN (SELECT s.part, e.id FROM evidence e JOIN space s ON s.id = e.space
    WHERE e.id IN (SELECT value FROM json_each(?))) RETURNING part
-- name: drop_vectors
DELETE FROM embedding WHERE hash IN (SELECT unhex(value) FROM json_each(?))
-- name: tickets
SELECT key, outcome, seq FROM ticket WHERE account = ?
-- name: drop_ticket
DELETE FROM ticket WHERE account = ? AND key = ?
-- name: drop_faults
DELETE FROM fault WHERE account = ? AND seq IN (SELECT value FROM json_each(?))
-- name: spaces_of_rows
SELECT space FROM fact WHERE id IN (SELECT value FROM json_each(?1))
UNION SELECT space FROM evidence WHERE id IN (SELECT value FROM json_each(?1))
UNION SELECT space FROM link WHERE id IN (SELECT value FROM json_each(?1))
-- name: drop_empty_space
DELETE FROM space WHERE id = ?1
    AND NOT EXISTS (SELECT 1 FROM fact WHERE space = ?1)
    AND NOT EXISTS (SELECT 1 FROM evidence WHERE space = ?1)
    AND NOT EXISTS (SELECT 1 FROM link WHERE space = ?1)
RETURNING part, user_id, agent_id, run_id
-- name: drop_cursors_of
DELETE FROM cursor WHERE account = ? AND consumer GLOB ?
-- name: drop_empty_part
DELETE FROM part WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM space WHERE part = ?1) RETURNING id
-- name: drop_part_passages
DELETE FROM passage WHERE id >= ? AND id < ?
-- name: drop_part_postings
DELETE FROM posting WHERE part = ?
-- name: drop_part_blocks
DELETE FROM block WHERE part = ?
-- name: orphan_embeddings
DELETE FROM embedding WHERE hash NOT IN (SELECT hash FROM passage)
-- name: range_entry
DELETE FROM entry WHERE id > ? AND id < ?
-- name: range_fact
DELETE FROM fact WHERE id > ? AND id < ?
-- name: range_link
DELETE FROM link WHERE id > ? AND id < ?
-- name: range_evidence
DELETE FROM evidence WHERE id > ? AND id < ?
-- name: range_tick
DELETE FROM tick WHERE part IN (SELECT p.id FROM part p WHERE p.account = ?1 >> 40) AND id > ?1 AND id < ?2
-- name: drop_account_tickets
DELETE FROM ticket WHERE account = ?
-- name: drop_account_cursors
DELETE FROM cursor WHERE account = ?
-- name: drop_account_faults
DELETE FROM fault WHERE account = ?
-- name: drop_account_access
DELETE FROM access WHERE account = ?
-- name: drop_account_spaces
DELETE FROM space WHERE account = ?
-- name: drop_account_parts
DELETE FROM part WHERE account = ?

-- name: rows_evidence
SELECT e.id & 1099511627775, e.name, s.user_id, s.agent_id, s.run_id, e.digest, e.source,
    (SELECT json_group_array(hash) FROM holding h WHERE h.id = e.id)
FROM evidence e JOIN space s ON s.id = e.space WHERE e.id > ? AND e.id < ? ORDER BY e.id
-- name: rows_facts
SELECT f.id & 1099511627775, f.thread, f.tx, s.user_id, s.agent_id, s.run_id, f.until, f.gone, f.text, f.md5, f.kind,
    f.created_at, f.updated_at, f.valid_from, f.valid_to, f.precision, f.expires, f.said_at, f.role, f.actor, f.author,
    f.evidence, f.source, f.subject, f.predicate, f.object, f.polarity, f.modality, f.confidence, f.after, f.meta
FROM fact f JOIN space s ON s.id = f.space WHERE f.id > ? AND f.id < ? ORDER BY f.id
-- name: rows_links
SELECT l.id & 1099511627775, l.src, l.rel, l.dst, s.user_id, s.agent_id, s.run_id, l.weight, l.until, l.meta
FROM link l JOIN space s ON s.id = l.space WHERE l.id > ? AND l.id < ? ORDER BY l.id
-- name: rows_passages
SELECT p.fact & 1099511627775, s.user_id, s.agent_id, s.run_id, ifnull(p.text, g.text), p.slot, p.until, p.expires,
    p.before, p.length, p.hash, p.terms, p.id & 4294967295
FROM fact f CROSS JOIN passage p ON p.id BETWEEN f.first AND f.last AND +p.fact = f.id
    JOIN space s ON s.id = p.space JOIN spoken g ON g.id = p.fact
WHERE f.id > ? AND f.id < ? ORDER BY p.fact, p.id
-- name: rows_ticks
SELECT t.id & 1099511627775, s.user_id, s.agent_id, s.run_id, t.at, t.turns, t.tokens
FROM part p CROSS JOIN tick t ON t.part = p.id JOIN space s ON s.id = t.space
WHERE p.account = ?1 >> 40 AND t.id > ?1 AND t.id < ?2 ORDER BY t.id
-- name: rows_postings
SELECT o.part, o.term, o.chunk, o.docs FROM posting o JOIN part p ON p.id = o.part WHERE p.account = ?
ORDER BY o.part, o.term, o.chunk

-- name: count_entries
SELECT count(*), sum(envelope IS NULL) FROM entry WHERE id > ? AND id < ?
-- name: count_facts
SELECT count(*), sum(until = 4611686018427387904 AND kind NOT IN ('turn', 'node', 'quarantine', 'topic')) FROM fact
WHERE id > ? AND id < ?
-- name: count_evidence
SELECT count(*) FROM evidence WHERE id > ? AND id < ?
-- name: count_links
SELECT count(*) FROM link WHERE id > ? AND id < ?
-- name: count_spaces
SELECT count(*), count(DISTINCT user_id), count(DISTINCT agent_id), count(DISTINCT run_id) FROM space WHERE account = ?
-- name: count_faults
SELECT count(*) FROM fault WHERE account = ?
-- name: count_recalls
SELECT ifnull(sum(count), 0) FROM access WHERE account = ?
-- name: schema_version
SELECT value FROM meta WHERE key = 'schema'
-- name: set_schema_version
INSERT OR REPLACE INTO meta (key, value) VALUES ('schema', ?)
-- name: tables
SELECT name FROM sqlite_schema
-- name: has_schema
SELECT 1 FROM sqlite_schema WHERE name = 'meta'
-- name: begin_reset
INSERT INTO meta (key, value) VALUES ('resetting', 1)
-- name: end_reset
DELETE FROM meta WHERE key = 'resetting'
-- name: all_parts
SELECT id, rows FROM extent
-- name: part_shapes
SELECT id, account, rows, folded FROM extent ORDER BY id
-- name: owe_scrub
INSERT OR REPLACE INTO meta (key, value) VALUES ('scrub', 1)
-- name: scrub_owed
SELECT value FROM meta WHERE key = 'scrub'
-- name: scrub_done
DELETE FROM meta WHERE key = 'scrub'

-- name: folded_facts
SELECT s.user_id, s.agent_id, s.run_id, f.* FROM fact f JOIN space s ON s.id = f.space WHERE f.id > ? AND f.id <= ?
ORDER BY f.id
-- name: folded_links
SELECT s.user_id, s.agent_id, s.run_id, l.* FROM link l JOIN space s ON s.id = l.space WHERE l.id > ? AND l.id <= ?
ORDER BY l.id
-- name: folded_evidence
SELECT s.user_id, s.agent_id, s.run_id, e.id, e.name, e.digest, e.source,
    (SELECT json_group_array(hash) FROM holding h WHERE h.id = e.id)
FROM evidence e JOIN space s ON s.id = e.space WHERE e.id > ? AND e.id <= ? ORDER BY e.id
-- name: folded_passages
SELECT s.user_id, s.agent_id, s.run_id, f.id, ifnull(p.text, g.text), p.slot, h.thread, p.until, p.expires
FROM fact f CROSS JOIN passage p ON p.id BETWEEN f.first AND f.last AND +p.fact = f.id
    JOIN space s ON s.id = p.space JOIN spoken g ON g.id = f.id
    LEFT JOIN passage q ON q.id = (p.id >> 32 << 32) + p.before LEFT JOIN fact h ON h.id = q.fact
WHERE f.id > ? AND f.id <= ? ORDER BY f.id, p.id
-- name: folded_ticks
SELECT s.user_id, s.agent_id, s.run_id, t.id, t.at, t.turns, t.tokens
FROM evidence e CROSS JOIN space s ON s.id = e.space CROSS JOIN tick t ON t.part = s.part AND t.id = e.id
WHERE e.id > ? AND e.id <= ? ORDER BY e.id

-- name: shapes
SELECT name, 'SELECT ' || account || ', count(*) ' || misfits || ' GROUP BY 1',
    'DELETE ' || misfits || ' AND ifnull((SELECT a.id FROM account a WHERE a.id = ' || account || '), ?1) = ?1' FROM (
    SELECT m.name, 'FROM "' || m.name || '" WHERE (' || group_concat('typeof("' || c.name || '") NOT IN ('''
        || lower(c.type) || iif(c."notnull" OR c.pk, ''')', ''', ''null'')'), ' OR ') || ')' AS misfits,
        CASE WHEN m.name IN ('entry', 'fact', 'link', 'evidence', 'holding') THEN m.name || '.id >> 40'
            WHEN m.name = 'passage' THEN '(SELECT p.account FROM part p WHERE p.id = passage.id >> 32)'
            WHEN max(c.name = 'account') THEN m.name || '.account'
            WHEN max(c.name = 'part') THEN '(SELECT p.account FROM part p WHERE p.id = ' || m.name || '.part)'
            ELSE 'NULL' END AS account
    FROM sqlite_schema m JOIN pragma_table_info(m.name) c
    WHERE m.type = 'table' AND c.type <> '' AND m.name IN (SELECT value FROM json_each(?)) GROUP BY m.name)
-- name: homeless_entries
SELECT NULL, count(*) FROM entry WHERE id >> 40 NOT IN (SELECT id FROM account) GROUP BY 1
-- name: stray_facts
SELECT f.id >> 40, count(*) FROM fact f
    LEFT JOIN entry e ON e.id = f.id AND e.sort = 'asserted' AND e.envelope IS NOT NULL
WHERE e.id IS NULL GROUP BY 1
-- name: stray_links
SELECT l.id >> 40, count(*) FROM link l
    LEFT JOIN entry e ON e.id = l.id AND e.sort = 'linked' AND e.envelope IS NOT NULL
WHERE e.id IS NULL GROUP BY 1
-- name: stray_evidence
SELECT v.id >> 40, count(*) FROM evidence v
    LEFT JOIN entry e ON e.id = v.id AND e.sort = 'observed' AND e.envelope IS NOT NULL
WHERE e.id IS NULL GROUP BY 1
-- name: stray_holdings
SELECT h.id >> 40, count(*) FROM holding h LEFT JOIN evidence e ON e.id = h.id WHERE e.id IS NULL GROUP BY 1
-- name: stray_ticks
SELECT t.id >> 40, count(*) FROM tick t LEFT JOIN evidence e ON e.id = t.id LEFT JOIN space s ON s.id = e.space
WHERE (t.part, t.space) IS NOT (s.part, e.space) GROUP BY 1
-- name: stray_passages
SELECT NULL, count(*) FROM passage WHERE id >> 32 NOT IN (SELECT id FROM part) GROUP BY 1
-- name: tick_sums
SELECT part, turns, tokens, turns_so_far, tokens_so_far FROM tick ORDER BY part, id
-- name: empty_spaces
SELECT s.account, count(*) FROM space s WHERE NOT EXISTS (SELECT 1 FROM fact WHERE space = s.id)
    AND NOT EXISTS (SELECT 1 FROM evidence WHERE space = s.id) AND NOT EXISTS (SELECT 1 FROM link WHERE space = s.id)
GROUP BY 1
-- name: empty_parts
SELECT account, count(*) FROM part WHERE id NOT IN (SELECT part FROM space) GROUP BY 1
-- name: all_tickets
SELECT t.account, t.seq = 0 AND a.id IS NOT NULL OR ifnull(e.tx <> ifnull(n.tx, 0), 0), t.key, t.digest, t.outcome, t.seq
FROM ticket t LEFT JOIN account a ON a.id = t.account LEFT JOIN entry e ON t.seq > 0 AND e.id = (a.id << 40) + t.seq
    LEFT JOIN entry n ON n.id = e.id + 1
-- name: lacking_threads
SELECT count(*) FROM json_each(?1) j
WHERE NOT EXISTS (SELECT 1 FROM entry e WHERE e.thread = j.value AND e.id > ?2 AND e.id <= ?3)
-- name: homeless_blobs
SELECT NULL, count(*) FROM blob WHERE account NOT IN (SELECT id FROM account) GROUP BY 1
-- name: cursors_astray
SELECT c.account, count(*) FROM cursor c LEFT JOIN account a ON a.id = c.account
WHERE c.seq < 0 OR c.seq > ifnull(a.seq, -1) GROUP BY 1
-- name: lost_vectors
SELECT (SELECT h.account FROM part h WHERE h.id = p.id >> 32), count(*) FROM passage p
WHERE p.ready IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM embedding e WHERE e.model = (SELECT id FROM model WHERE current) AND e.hash = p.hash) GROUP BY 1
-- name: stray_vectors
SELECT NULL, count(*) FROM embedding WHERE hash NOT IN (SELECT hash FROM passage) GROUP BY 1
-- name: models_too_many
SELECT NULL, count(*) - 1 FROM model WHERE current HAVING count(*) > 1
-- name: said_at
SELECT hash, earlier, text FROM wording WHERE id = ?
-- name: mend_vector
INSERT INTO embedding (model, hash, code) VALUES (?, ?, ?)
ON CONFLICT (hash, model) DO UPDATE SET code = excluded.code

-- name: drop_misplaced_spaces
DELETE FROM space WHERE (account = ?1 OR account NOT IN (SELECT id FROM account)
    OR part IN (SELECT p.id FROM part p WHERE p.account = ?1))
AND NOT EXISTS (SELECT 1 FROM part p WHERE p.id = space.part AND p.account = space.account
    AND p.home IS CASE WHEN user_id IS NOT NULL THEN 'u:' || user_id WHEN agent_id IS NOT NULL THEN 'a:' || agent_id
        ELSE 'r:' || run_id END)
-- name: drop_empty_spaces
DELETE FROM space WHERE account = ?
    AND NOT EXISTS (SELECT 1 FROM fact WHERE space = space.id)
    AND NOT EXISTS (SELECT 1 FROM evidence WHERE space = space.id)
    AND NOT EXISTS (SELECT 1 FROM link WHERE space = space.id)
-- name: drop_empty_parts
DELETE FROM part WHERE id NOT IN (SELECT part FROM space)
-- name: search_one_model
UPDATE model SET current = (id = (SELECT min(id) FROM model WHERE current)) WHERE current
-- name: drop_homeless_passages
DELETE FROM passage WHERE id >> 32 NOT IN (SELECT id FROM part)
-- name: drop_homeless_ticks
DELETE FROM tick WHERE part NOT IN (SELECT id FROM part)
    OR (id > ?1 AND id < ?2) OR part IN (SELECT p.id FROM part p WHERE p.account = ?1 >> 40)
-- name: drop_homeless_facts
DELETE FROM fact WHERE id >> 40 NOT IN (SELECT id FROM account) AND id NOT IN (SELECT id FROM entry)
-- name: drop_homeless_links
DELETE FROM link WHERE id >> 40 NOT IN (SELECT id FROM account) AND id NOT IN (SELECT id FROM entry)
-- name: drop_homeless_evidence
DELETE FROM evidence WHERE id >> 40 NOT IN (SELECT id FROM account) AND id NOT IN (SELECT id FROM entry)
-- name: drop_homeless_holdings
DELETE FROM holding WHERE id NOT IN (SELECT id FROM evidence)
-- name: draw_in_cursors
UPDATE cursor SET seq = max(0, min(seq, (SELECT a.seq FROM account a WHERE a.id = cursor.account))) WHERE account = ?
-- name: drop_homeless_cursors
DELETE FROM cursor WHERE account NOT IN (SELECT id FROM account)
-- name: drop_homeless_tickets
DELETE FROM ticket WHERE account NOT IN (SELECT id FROM account)
