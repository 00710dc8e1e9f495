-- What sampling found, merged into three steps of time as it comes: 5min is kept for 100 days, hour for 400, 12h for 1200.
-- A histogram holds its exact count, sum, minimum and maximum.

CREATE TABLE probe (
    target  INTEGER NOT NULL REFERENCES target,
    step    TEXT NOT NULL,
    at_us   INTEGER NOT NULL, -- the begin of the step
    kind    TEXT NOT NULL,
    beside  TEXT NOT NULL,
    errors  INTEGER NOT NULL,
    lost    INTEGER NOT NULL,
    latency BLOB NOT NULL,
    PRIMARY KEY (target, step, at_us, kind, beside)
) STRICT, WITHOUT ROWID;

CREATE TABLE traffic (
    target          INTEGER NOT NULL, -- 0: the machine
    step            TEXT NOT NULL,
    at_us           INTEGER NOT NULL,
    source          TEXT NOT NULL,
    covers          TEXT NOT NULL,
    seconds         REAL NOT NULL,
    user_read       INTEGER, -- NULL: the source does not count it
    user_written    INTEGER,
    own_read        INTEGER,
    own_written     INTEGER,
    requests        INTEGER,
    retransmissions INTEGER,
    errors          INTEGER,
    reconnects      INTEGER,
    answered        INTEGER,
    answered_us     INTEGER,
    packet_us       INTEGER, -- the longest round trip of a packet, as the kernel smooths it
    busy_seconds    REAL NOT NULL,
    peak            REAL,
    PRIMARY KEY (target, step, at_us, source, covers)
) STRICT, WITHOUT ROWID;

CREATE TABLE machine (
    step            TEXT NOT NULL,
    at_us           INTEGER NOT NULL,
    looks           INTEGER NOT NULL,
    processor_share REAL,
    processor_peak  REAL,
    memory_least    INTEGER,
    load_most       REAL,
    signal_least    REAL,
    probe_ns        INTEGER NOT NULL,
    PRIMARY KEY (step, at_us)
) STRICT, WITHOUT ROWID;

-- The ledger: each time in which a target kept somebody waiting. A row is written when it is first known and again when
-- more is; ended_us is NULL while it goes on.
CREATE TABLE stall (
    target     TEXT NOT NULL, -- its name, as for events
    opened_us  INTEGER NOT NULL, -- its first begin: what it is known by
    started_us INTEGER NOT NULL,
    ended_us   INTEGER,
    is_cut     INTEGER NOT NULL, -- longhaul ended before it did
    operation  TEXT NOT NULL,
    calls      INTEGER NOT NULL,
    longest_ns INTEGER NOT NULL,
    errors     TEXT NOT NULL, -- JSON: how often which
    who        TEXT NOT NULL, -- JSON: the probe, workloads
    beside     TEXT,
    PRIMARY KEY (target, opened_us)
) STRICT, WITHOUT ROWID;
CREATE INDEX stall_by_time ON stall (started_us);

-- What the targets and the machine were like when they were last looked at, so that a change over a restart is noticed.
CREATE TABLE surroundings (
    subject  TEXT NOT NULL PRIMARY KEY, -- a target's name; empty: the machine
    taken_us INTEGER NOT NULL,
    facts    TEXT NOT NULL -- JSON object
) STRICT, WITHOUT ROWID;
