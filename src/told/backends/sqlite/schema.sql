-- The ledger --------------------------------------------------------------------------------------
-- Ids of entries, facts, links and evidence are account << 40 | seq, so an account is one id range.

CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;

CREATE TABLE account (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    hash BLOB NOT NULL
);

CREATE TABLE entry (
    id INTEGER PRIMARY KEY,
    tx INTEGER NOT NULL,
    at INTEGER NOT NULL,
    sort TEXT NOT NULL,
    thread TEXT,
    digest BLOB NOT NULL,
    hash BLOB NOT NULL,
    salt BLOB,
    envelope BLOB
);
CREATE INDEX entry_thread ON entry (thread) WHERE thread IS NOT NULL;

CREATE TRIGGER entry_append_only BEFORE UPDATE ON entry
WHEN NEW.envelope IS NOT NULL OR NEW.salt IS NOT NULL OR (NEW.id, NEW.tx, NEW.at, NEW.sort, NEW.digest, NEW.hash)
    IS NOT (OLD.id, OLD.tx, OLD.at, OLD.sort, OLD.digest, OLD.hash) OR NEW.thread IS NOT OLD.thread
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

CREATE TRIGGER entry_no_delete BEFORE DELETE ON entry
WHEN NOT EXISTS (SELECT 1 FROM meta WHERE key = 'resetting')
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

CREATE TABLE tombstone (digest BLOB PRIMARY KEY) WITHOUT ROWID;

CREATE TABLE ticket (
    account INTEGER NOT NULL,
    key TEXT NOT NULL,
    digest BLOB NOT NULL,
    outcome TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (account, key)
) WITHOUT ROWID;

-- Scopes: a space is one exact scope, a part is the partition that its passages are indexed in ----

CREATE TABLE part (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account INTEGER NOT NULL,
    home TEXT NOT NULL,
    rows INTEGER NOT NULL DEFAULT 0,
    folded INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL DEFAULT 0,
    epoch INTEGER NOT NULL DEFAULT 0,
    UNIQUE (account, home)
);

CREATE TABLE space (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account INTEGER NOT NULL,
    part INTEGER NOT NULL,
    user_id TEXT,
    agent_id TEXT,
    run_id TEXT
);
CREATE UNIQUE INDEX space_user ON space (account, user_id, ifnull(agent_id, ''), ifnull(run_id, ''));
CREATE INDEX space_part ON space (part);
CREATE INDEX space_agent ON space (account, agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX space_run ON space (account, run_id) WHERE run_id IS NOT NULL;

-- Views -------------------------------------------------------------------------------------------

CREATE TABLE evidence (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    space INTEGER NOT NULL,
    digest BLOB NOT NULL,
    source TEXT
);
CREATE INDEX evidence_digest ON evidence (space, digest);
CREATE INDEX evidence_source ON evidence (source) WHERE source IS NOT NULL;

CREATE TABLE fact (
    id INTEGER PRIMARY KEY,
    thread TEXT NOT NULL,
    tx INTEGER NOT NULL,
    space INTEGER NOT NULL,
    until INTEGER NOT NULL,
    gone INTEGER NOT NULL,
    text TEXT NOT NULL,
    md5 TEXT NOT NULL,
    kind TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    valid_from INTEGER NOT NULL,
    valid_to INTEGER NOT NULL,
    precision TEXT NOT NULL,
    expires INTEGER NOT NULL,
    said_at INTEGER,
    role TEXT,
    actor TEXT,
    author TEXT NOT NULL,
    evidence TEXT,
    source TEXT,
    subject TEXT,
    predicate TEXT,
    object TEXT,
    polarity TEXT NOT NULL,
    modality TEXT NOT NULL,
    confidence REAL NOT NULL,
    after TEXT,
    meta TEXT NOT NULL
);
CREATE INDEX fact_thread ON fact (thread);
CREATE INDEX fact_space ON fact (space, md5, until);
CREATE INDEX fact_kind ON fact (space, kind) WHERE kind <> 'memory';

CREATE TABLE link (
    id INTEGER PRIMARY KEY,
    src TEXT NOT NULL,
    rel TEXT NOT NULL,
    dst TEXT NOT NULL,
    space INTEGER NOT NULL,
    weight REAL NOT NULL,
    until INTEGER NOT NULL,
    meta TEXT NOT NULL
);
CREATE INDEX link_src ON link (src);
CREATE INDEX link_dst ON link (dst);

-- A passage's id is part << 32 | ordinal. Its text is stored only if it differs from that of the view
-- `spoken`, and its terms only until a full block of passages is folded into postings. `before` is the
-- ordinal of the previous turn; `hash` is the hash of the embedded text, which joins both turns.

CREATE TABLE passage (
    id INTEGER PRIMARY KEY,
    fact INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    space INTEGER NOT NULL,
    until INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    before INTEGER,
    length INTEGER NOT NULL,
    hash BLOB NOT NULL,
    text TEXT,
    terms TEXT
);
CREATE INDEX passage_fact ON passage (fact);
CREATE INDEX passage_hash ON passage (hash);
CREATE INDEX passage_closed ON passage (id >> 32, until) WHERE until < 4611686018427387904;

CREATE VIEW spoken AS
SELECT id, ifnull(ifnull(nullif(actor, ''), nullif(role, '')) || ': ', '') || text AS text FROM fact;

CREATE VIEW wording AS
SELECT p.id, p.fact, p.slot, p.before, p.hash, ifnull(p.text, f.text) AS text, ifnull(q.text, g.text) AS earlier
FROM passage p JOIN spoken f ON f.id = p.fact
    LEFT JOIN passage q ON q.id = (p.id >> 32 << 32) + p.before LEFT JOIN spoken g ON g.id = q.fact;

-- The index ---------------------------------------------------------------------------------------
-- docs is a run of little-endian u32: ordinal << 4 | term frequency.

CREATE TABLE posting (
    part INTEGER NOT NULL,
    term TEXT NOT NULL,
    chunk INTEGER NOT NULL,
    docs BLOB NOT NULL,
    PRIMARY KEY (part, term, chunk)
) WITHOUT ROWID;

CREATE TABLE model (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    dim INTEGER NOT NULL,
    current INTEGER NOT NULL
);

CREATE TABLE embedding (
    model INTEGER NOT NULL,
    hash BLOB NOT NULL,
    code BLOB NOT NULL,
    PRIMARY KEY (model, hash)
) WITHOUT ROWID;

CREATE TABLE block (
    model INTEGER NOT NULL,
    part INTEGER NOT NULL,
    number INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    builder INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    codes BLOB NOT NULL,
    PRIMARY KEY (part, model, number)
);

-- Access counts: kept beside the ledger, neither folded from it nor exported with it --------------

CREATE TABLE access (
    account INTEGER NOT NULL,
    thread TEXT NOT NULL,
    count INTEGER NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (account, thread)
) WITHOUT ROWID;

-- Consumers ---------------------------------------------------------------------------------------

CREATE TABLE cursor (
    account INTEGER NOT NULL,
    consumer TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (account, consumer)
) WITHOUT ROWID;

CREATE TABLE fault (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account INTEGER NOT NULL,
    consumer TEXT NOT NULL,
    seq INTEGER NOT NULL,
    error TEXT NOT NULL,
    at INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    UNIQUE (account, consumer, seq)
);
