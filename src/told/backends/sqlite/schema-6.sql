-- Schema 6: fewer trees again --------------------------------------------------------------------------------------------
-- An entry is found by the name it stands under: that of its thread or, where something was observed, that of the evidence.

DROP INDEX entry_thread;
ALTER TABLE entry ADD COLUMN name TEXT GENERATED ALWAYS AS (CASE WHEN sort <> 'observed' THEN thread
    WHEN json_valid(CAST(envelope AS TEXT)) THEN CAST(envelope AS TEXT) ->> '$.body.id' END) VIRTUAL;
CREATE INDEX entry_name ON entry (name);

-- A fact that was told in so many words stands right after its evidence; only one that stands apart from it is looked for --

ALTER TABLE fact ADD COLUMN apart INTEGER;
UPDATE fact SET apart = 1 WHERE evidence IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM entry e WHERE e.id = fact.id - 1 AND e.name = fact.evidence);
DROP INDEX fact_evidence;
CREATE INDEX fact_apart ON fact (evidence) WHERE apart IS NOT NULL;

-- Evidence is asked for by what it says in which space, and stands in that order -----------------------------------------

ALTER TABLE evidence RENAME TO scattered;
CREATE TABLE evidence (
    space INTEGER NOT NULL,
    digest BLOB NOT NULL,
    id INTEGER NOT NULL,
    name TEXT NOT NULL,
    source TEXT,
    PRIMARY KEY (space, digest, id)
) WITHOUT ROWID;
INSERT INTO evidence (space, digest, id, name, source)
SELECT space, digest, id, name, source FROM scattered ORDER BY space, digest, id;
DROP TABLE scattered;
CREATE INDEX evidence_source ON evidence (source, id) WHERE source IS NOT NULL;

-- Vectors that come late look for their passages; most come with them ----------------------------------------------------

DROP INDEX passage_hash;
ALTER TABLE passage ADD COLUMN late INTEGER;
UPDATE passage SET late = 1 WHERE NOT EXISTS (
    SELECT 1 FROM embedding e WHERE e.model = (SELECT id FROM model WHERE current) AND e.hash = passage.hash);
CREATE INDEX passage_late ON passage (hash) WHERE late IS NOT NULL;
