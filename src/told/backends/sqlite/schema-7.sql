-- Schema 7: nothing stands in the order of hashes but vectors, so that a commit to a large file writes fewer pages ---------
-- Late vectors look for the passages that wait for them; most come with their passage, which then says that it is ready.
-- One that says nothing may be waiting: so it is with whatever a process of an older told goes on to write.

DROP INDEX passage_hash;
ALTER TABLE passage ADD COLUMN ready INTEGER;
UPDATE passage SET ready = 1 WHERE EXISTS (
    SELECT 1 FROM embedding e WHERE e.model = (SELECT id FROM model WHERE current) AND e.hash = passage.hash);
CREATE INDEX passage_waiting ON passage (hash) WHERE ready IS NULL;
