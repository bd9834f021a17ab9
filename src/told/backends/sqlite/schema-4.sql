-- Schema 4: conversation clocks, and data kept beside the ledger ----------------------------------
-- A tick is folded from an entry that is also evidence, so a tick alone keeps no space alive. It stores
-- the running totals of its partition, so that a clock is read at any position without a sum.

CREATE TABLE tick (
    id INTEGER PRIMARY KEY,
    space INTEGER NOT NULL,
    part INTEGER NOT NULL,
    at INTEGER NOT NULL,
    turns INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    turns_so_far INTEGER NOT NULL,
    tokens_so_far INTEGER NOT NULL
);
CREATE INDEX tick_part ON tick (part);

-- Stale views: those newer than an account's ledger, until a rebuild folds them -------------------

CREATE TABLE behind (
    account INTEGER NOT NULL,
    view TEXT NOT NULL,
    PRIMARY KEY (account, view)
) WITHOUT ROWID;
INSERT INTO behind (account, view) SELECT id, 'ticks' FROM account WHERE seq > 0;

-- Like `access`, the following tables are kept beside the ledger: not folded from it, not exported.
-- Co-occurrence counts of topics, the lesser id first ---------------------------------------------

CREATE TABLE met (
    account INTEGER NOT NULL,
    one TEXT NOT NULL,
    other TEXT NOT NULL,
    count INTEGER NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (account, one, other)
) WITHOUT ROWID;
CREATE INDEX met_other ON met (account, other);

-- The access log, and the access states of each thread; the open state has no end yet -------------

CREATE TABLE recall (
    id INTEGER PRIMARY KEY,
    account INTEGER NOT NULL,
    thread TEXT NOT NULL,
    at INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    score REAL NOT NULL,
    query TEXT NOT NULL,
    access TEXT NOT NULL
);
CREATE INDEX recall_thread ON recall (account, thread, at);

CREATE TABLE recall_state (
    id INTEGER PRIMARY KEY,
    account INTEGER NOT NULL,
    thread TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL,
    count INTEGER NOT NULL,
    strength REAL NOT NULL
);
CREATE INDEX recall_state_thread ON recall_state (account, thread, since);

-- The reconsolidation queue; completed tasks are deleted ------------------------------------------

CREATE TABLE task (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account INTEGER NOT NULL,
    thread TEXT NOT NULL,
    reason TEXT NOT NULL,
    priority REAL NOT NULL,
    due INTEGER NOT NULL,
    claimed INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX task_thread ON task (account, thread, reason, due);
CREATE INDEX task_urgency ON task (account, priority DESC, due, id, claimed);

-- Notes of consumers; a note whose key is a thread id is deleted when the thread is erased --------

CREATE TABLE note (
    account INTEGER NOT NULL,
    consumer TEXT NOT NULL,
    key TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (account, consumer, key)
) WITHOUT ROWID;
CREATE INDEX note_key ON note (account, key);

-- Turns and links of one exact scope in ledger order: an index row ends with the rowid ------------

CREATE INDEX fact_said ON fact (space) WHERE evidence IS NOT NULL;
CREATE INDEX link_space ON link (space);

-- Evidence by its id, to find the source of a memory without a scan -------------------------------

CREATE INDEX evidence_name ON evidence (name);
