-- Schema 3: blobs ------------------------------------------------------------------------------------------------------
-- Bytes under the hash of their content, once in an account. A holding is one piece of evidence that names a blob, by the
-- id of its evidence row: it is folded from the ledger like the row itself, and a blob goes with its last holding.

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

-- What was taken from one piece of evidence; what is said of whom, for whoever decides about a claim; and what a model answered where it could not be read ---------

CREATE INDEX fact_evidence ON fact (evidence) WHERE evidence IS NOT NULL;
CREATE INDEX fact_claim ON fact (space, subject, predicate) WHERE subject IS NOT NULL;

ALTER TABLE fault ADD COLUMN raw TEXT NOT NULL DEFAULT '';
