-- The first schema. Never edited: a change is a new file.
--
-- Times are microseconds since 1970 UTC and end in _us; durations of operations are nanoseconds and end in _ns.
-- NULL is "not known"; zero is zero. Counts that may use all 64 bits are stored as the signed number of the same bits.
-- Names of enum values are those that longhaul shows.

CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One place that is measured, as it was last configured.
CREATE TABLE target (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    name     TEXT NOT NULL UNIQUE,
    path     ANY  NOT NULL, -- text, or a blob where the path is not UTF-8
    role     TEXT NOT NULL,
    added_us INTEGER NOT NULL
) STRICT;

-- A target's life under one fingerprint; epochs are never pooled.
CREATE TABLE epoch (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    target     INTEGER NOT NULL REFERENCES target,
    opened_us  INTEGER NOT NULL,
    path       ANY  NOT NULL,
    protocol   TEXT,          -- JSON; NULL where it could not be told
    negotiated TEXT NOT NULL  -- JSON object
) STRICT;
CREATE INDEX epoch_by_target ON epoch (target, number);

-- One randomised complete block.
CREATE TABLE round (
    number             INTEGER PRIMARY KEY AUTOINCREMENT,
    started_us         INTEGER NOT NULL,
    utc_offset_seconds INTEGER NOT NULL,
    seed               INTEGER NOT NULL,
    scale              TEXT NOT NULL,
    planned            TEXT NOT NULL, -- JSON array of {target, workload}, in the order drawn
    status             TEXT,          -- NULL while it goes on, and after a crash until it is closed
    reason             TEXT,
    ended_us           INTEGER
) STRICT;

-- One workload on one target, once. The number is what people type.
CREATE TABLE run (
    number             INTEGER PRIMARY KEY AUTOINCREMENT,
    trace_id           TEXT NOT NULL UNIQUE,
    round              INTEGER NOT NULL REFERENCES round,
    slot               INTEGER NOT NULL,
    target             INTEGER NOT NULL REFERENCES target,
    epoch              INTEGER NOT NULL REFERENCES epoch,
    protocol           TEXT,
    workload           TEXT NOT NULL,
    scale              TEXT NOT NULL,
    outcome            TEXT NOT NULL,
    started_us         INTEGER NOT NULL,
    utc_offset_seconds INTEGER NOT NULL,
    seconds            REAL NOT NULL,
    failure_message    TEXT, -- NULL: no failure
    failure_operation  TEXT,
    failure_path       TEXT,
    failure_error      TEXT,
    facts              TEXT NOT NULL, -- JSON object
    conditions         TEXT NOT NULL  -- JSON object
) STRICT;
CREATE INDEX run_by_time ON run (started_us, number);
CREATE INDEX run_by_target ON run (target, started_us, number);
CREATE INDEX run_by_round ON run (round, slot);

CREATE TABLE phase (
    number        INTEGER PRIMARY KEY,
    run           INTEGER NOT NULL REFERENCES run,
    place         INTEGER NOT NULL, -- in the run, from 0
    name          TEXT NOT NULL,
    cache         TEXT NOT NULL,
    cold_by       TEXT,
    seconds       REAL NOT NULL,
    bytes_read    INTEGER NOT NULL,
    bytes_written INTEGER NOT NULL,
    complete      INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX phase_by_run ON phase (run, place);

CREATE TABLE figure (
    phase INTEGER NOT NULL REFERENCES phase,
    place INTEGER NOT NULL, -- in the phase, from 0
    name  TEXT NOT NULL,
    unit  TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (phase, place)
) STRICT, WITHOUT ROWID;

-- All calls of one kind in one phase. Quantiles are computed from the histogram, never stored.
CREATE TABLE operation (
    phase     INTEGER NOT NULL REFERENCES phase,
    place     INTEGER NOT NULL,
    operation TEXT NOT NULL,
    errors    INTEGER NOT NULL,
    count     INTEGER NOT NULL,
    sum_ns    INTEGER NOT NULL,
    min_ns    INTEGER,
    max_ns    INTEGER,
    latency   BLOB NOT NULL,
    PRIMARY KEY (phase, place)
) STRICT, WITHOUT ROWID;

-- Something that may change numbers: a tick on every time axis.
CREATE TABLE event (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at_us  INTEGER NOT NULL,
    target TEXT, -- its name, for an event may come before the target's first run; NULL: the machine
    kind   TEXT NOT NULL,
    detail TEXT NOT NULL -- JSON
) STRICT;
CREATE INDEX event_by_time ON event (at_us, number);
