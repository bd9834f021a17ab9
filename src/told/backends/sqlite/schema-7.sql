-- Schema 7: only vectors are ordered by hash, so that a commit to a large file writes fewer pages
-- A passage with a vector is `ready`. A late vector looks for passages whose `ready` is NULL; these
-- include the rows that a process of an older version still writes, whether or not they have a vector.

DROP INDEX passage_hash;
ALTER TABLE passage ADD COLUMN ready INTEGER;
UPDATE passage SET ready = 1 WHERE EXISTS (
    SELECT 1 FROM embedding e WHERE e.model = (SELECT id FROM model WHERE current) AND e.hash = passage.hash);
CREATE INDEX passage_waiting ON passage (hash) WHERE ready IS NULL;
