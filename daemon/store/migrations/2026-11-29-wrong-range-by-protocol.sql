-- Wrong ranges, each once for each protocol: a range that is found over another protocol as well counts there, too. A range with the
-- same wrong content is counted again, not stored again.
CREATE TABLE mismatch_by_protocol (
    number        INTEGER PRIMARY KEY AUTOINCREMENT,
    target        INTEGER NOT NULL REFERENCES target,
    protocol      TEXT,             -- JSON, as the run found it; NULL: unknown
    run           INTEGER NOT NULL REFERENCES run, -- the run that found it first over this protocol
    epoch         INTEGER NOT NULL REFERENCES epoch, -- the epoch in which it was found last; found in a new one, it is an event again
    file          TEXT    NOT NULL, -- path in the sandbox
    offset        INTEGER NOT NULL,
    length        INTEGER NOT NULL,
    pattern       TEXT    NOT NULL,
    found_us      INTEGER NOT NULL,
    last_found_us INTEGER NOT NULL,
    times_found   INTEGER NOT NULL,
    written_us    INTEGER,          -- NULL: not recorded
    last_good_us  INTEGER,          -- NULL: the file was never read whole and found correct
    phase         TEXT,             -- NULL: not found by reading
    cache         TEXT,
    reread        TEXT    NOT NULL,
    elsewhere     TEXT,             -- JSON list of readings through other shares; NULL: none
    fingerprint   INTEGER NOT NULL, -- of the bytes that were found
    expected      BLOB    NOT NULL, -- at most 4096 bytes; never exported or sent
    found         BLOB    NOT NULL
) STRICT;
INSERT INTO mismatch_by_protocol (number, target, protocol, run, epoch, file, offset, length, pattern, found_us, last_found_us,
        times_found, written_us, last_good_us, phase, cache, reread, elsewhere, fingerprint, expected, found)
    SELECT mismatch.number, mismatch.target, run.protocol, mismatch.run, run.epoch, file, offset, length, pattern, found_us, last_found_us,
        times_found, written_us, last_good_us, phase, cache, reread, elsewhere, fingerprint, expected, found
    FROM mismatch JOIN run ON run.number = mismatch.run;
DROP TABLE mismatch;
ALTER TABLE mismatch_by_protocol RENAME TO mismatch;
CREATE UNIQUE INDEX mismatch_key ON mismatch (target, coalesce(protocol, ''), file, offset, length, fingerprint);
