-- Schema 5: fewer trees, so that a commit writes fewer pages -----------------------------------------------------------
-- A fact has the id of its entry, so the versions of a thread are found by the threads of entries.

DROP INDEX fact_thread;

-- The passages of a fact stand together: the fact says where ---------------------------------------------------------------

ALTER TABLE fact ADD COLUMN first INTEGER;
ALTER TABLE fact ADD COLUMN last INTEGER;
UPDATE fact SET first = p.first, last = p.last
FROM (SELECT fact, min(id) AS first, max(id) AS last FROM passage GROUP BY fact) p WHERE fact.id = p.fact;
DROP INDEX passage_fact;

-- How far a partition's passages and postings go follows from its last passage; its version moves with each of them -----

ALTER TABLE part DROP COLUMN rows;
ALTER TABLE part DROP COLUMN folded;

CREATE VIEW extent AS
SELECT id, account, epoch, rows, rows - rows % 64 AS folded, version + rows AS version
FROM (SELECT id, account, epoch, version, ifnull((SELECT max(p.id) - (part.id << 32) + 1 FROM passage p
    WHERE p.id >= part.id << 32 AND p.id < (part.id + 1) << 32), 0) AS rows FROM part);

-- The ticks of a partition stand together ---------------------------------------------------------------------------------

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

-- Vectors are appended, and only their hashes are sorted: rows as wide as these, put in between, would split page by page --

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
