-- Data that a phase read back and compared with what was written, by its age. No row: nothing was compared, or the
-- phase is older than this table.
CREATE TABLE verified (
    phase      INTEGER NOT NULL REFERENCES phase,
    age        TEXT    NOT NULL, -- hours, days, weeks, months or unknown
    bytes      INTEGER NOT NULL,
    files      INTEGER NOT NULL, -- files compared up to their end
    wire_bytes INTEGER NOT NULL, -- bytes known to have come from the server or disk, not from a cache
    PRIMARY KEY (phase, age)
) STRICT, WITHOUT ROWID;

-- Sums of the rows above, so that a page need not read a year of phases.
CREATE TABLE verified_total (
    target     INTEGER NOT NULL REFERENCES target,
    protocol   TEXT,             -- JSON; NULL: unknown
    age        TEXT    NOT NULL,
    bytes      INTEGER NOT NULL,
    files      INTEGER NOT NULL,
    wire_bytes INTEGER NOT NULL,
    first_us   INTEGER NOT NULL, -- start of the first and the last run
    last_us    INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX verified_total_key ON verified_total (target, coalesce(protocol, ''), age);

-- Wrong ranges of files, each once: a range with the same wrong content is counted again, not stored again.
CREATE TABLE mismatch (
    number        INTEGER PRIMARY KEY AUTOINCREMENT,
    target        INTEGER NOT NULL REFERENCES target,
    run           INTEGER NOT NULL REFERENCES run, -- the run that found it first
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
    fingerprint   INTEGER NOT NULL, -- of the bytes that were found
    expected      BLOB    NOT NULL, -- at most 4096 bytes; never exported or sent
    found         BLOB    NOT NULL,
    UNIQUE (target, file, offset, length, fingerprint)
) STRICT;
CREATE INDEX mismatch_by_time ON mismatch (found_us);
