-- Schema 3: blobs ---------------------------------------------------------------------------------
-- A blob is stored once per account under its content hash. A holding is a reference from an evidence
-- row (by row id) to a blob, folded from the ledger; a blob is deleted with its last holding.

CREATE TABLE blob (
    account INTEGER NOT NULL,
    hash TEXT NOT NULL,
    media_type TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (account, hash)
);

CREATE TABLE holding (
    id INTEGER NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (id, hash)
) WITHOUT ROWID;
CREATE INDEX holding_hash ON holding (hash);

-- Indexes of facts by evidence and, for curation, by subject and predicate; the raw reply of a fault

CREATE INDEX fact_evidence ON fact (evidence) WHERE evidence IS NOT NULL;
CREATE INDEX fact_claim ON fact (space, subject, predicate) WHERE subject IS NOT NULL;

ALTER TABLE fault ADD COLUMN raw TEXT NOT NULL DEFAULT '';
