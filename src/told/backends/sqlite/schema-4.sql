-- Schema 4: the clock of a conversation, and what is kept beside the ledger -------------------------------------------
-- A tick is folded from the ledger, from an entry that is evidence too: it keeps no space alive of its own. What has been
-- counted in its part up to it stands beside it, so that a clock is read at any position without adding up.

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

-- Views that a ledger was never folded into, as it is older than they are; a rebuild catches up -------------------------

CREATE TABLE behind (
    account INTEGER NOT NULL,
    view TEXT NOT NULL,
    PRIMARY KEY (account, view)
) WITHOUT ROWID;
INSERT INTO behind (account, view) SELECT id, 'ticks' FROM account WHERE seq > 0;

-- Like `access`, all that follows is no view: nothing in it comes from the ledger, and nothing of the ledger comes from it.
-- Topics that came up together, the lesser id first ----------------------------------------------------------------------

CREATE TABLE met (
    account INTEGER NOT NULL,
    one TEXT NOT NULL,
    other TEXT NOT NULL,
    count INTEGER NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (account, one, other)
) WITHOUT ROWID;
CREATE INDEX met_other ON met (account, other);

-- Recalls one by one, and the states they made of a thread; the open state has no end yet --------------------------------

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

-- What is to be thought over; what is done is not here -------------------------------------------------------------------

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

-- What consumers note for themselves; a note under the id of a thread goes with the thread --------------------------------

CREATE TABLE note (
    account INTEGER NOT NULL,
    consumer TEXT NOT NULL,
    key TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (account, consumer, key)
) WITHOUT ROWID;
CREATE INDEX note_key ON note (account, key);

-- What was said in one exact scope, in the order of the ledger: an index row ends with the position -----------------------

CREATE INDEX fact_said ON fact (space) WHERE evidence IS NOT NULL;
CREATE INDEX link_space ON link (space);

-- Evidence by its id, so that the words behind a memory are found without looking through all that was ever said ----------

CREATE INDEX evidence_name ON evidence (name);
