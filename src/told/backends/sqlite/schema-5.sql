-- Schema 5: fewer B-trees, so that a commit writes fewer pages ------------------------------------
-- A fact has the id of its entry, so the index on entry.thread also finds the versions of a thread.

DROP INDEX fact_thread;

-- The passages of a fact are contiguous: the fact stores the first and the last id ----------------

ALTER TABLE fact ADD COLUMN first INTEGER;
ALTER TABLE fact ADD COLUMN last INTEGER;
UPDATE fact SET first = p.first, last = p.last
FROM (SELECT fact, min(id) AS first, max(id) AS last FROM passage GROUP BY fact) p WHERE fact.id = p.fact;
DROP INDEX passage_fact;

-- A partition's passage count, folded count and version follow from its last passage --------------

ALTER TABLE part DROP COLUMN rows;
ALTER TABLE part DROP COLUMN folded;

CREATE VIEW extent AS
SELECT id, account, epoch, rows, rows - rows % 64 AS folded, version + rows AS version
FROM (SELECT id, account, epoch, version, ifnull((SELECT max(p.id) - (part.id << 32) + 1 FROM passage p
    WHERE p.id >= part.id << 32 AND p.id < (part.id + 1) << 32), 0) AS rows FROM part);

-- Ticks are clustered by partition ----------------------------------------------------------------

ALTER TABLE tick RENAME TO scattered;
CREATE TABLE tick (
    part INTEGER NOT NULL,
    id INTEGER NOT NULL,
    space INTEGER NOT NULL,
    at INTEGER NOT NULL,
    turns INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    turns_so_far INTEGER NOT NULL,
    tokens_so_far INTEGER NOT NULL,
    PRIMARY KEY (part, id)
) WITHOUT ROWID;
INSERT INTO tick (part, id, space, at, turns, tokens, turns_so_far, tokens_so_far)
SELECT part, id, space, at, turns, tokens, turns_so_far, tokens_so_far FROM scattered ORDER BY part, id;
DROP TABLE scattered;

-- Vectors are appended and only their hashes are sorted: inserting wide rows in order splits pages ----

ALTER TABLE embedding RENAME TO scattered;
CREATE TABLE embedding (
    id INTEGER PRIMARY KEY,
    model INTEGER NOT NULL,
    hash BLOB NOT NULL,
    code BLOB NOT NULL,
    UNIQUE (hash, model)
);
INSERT INTO embedding (model, hash, code) SELECT model, hash, code FROM scattered;
DROP TABLE scattered;
