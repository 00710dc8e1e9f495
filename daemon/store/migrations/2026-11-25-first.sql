-- The database schema. This file is never edited after the first release; every change is a new migration file.
--
-- Times are microseconds since 1970 UTC and end in _us; durations of operations are nanoseconds and end in _ns.
-- NULL means "not known", as opposed to zero. An unsigned 64-bit count is stored as the signed integer with the
-- same bits. Enum values are stored by the names that longhaul shows.

CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A measured folder, with the path and role of its latest run.
CREATE TABLE target (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    name     TEXT NOT NULL UNIQUE,
    path     ANY  NOT NULL, -- text, or a blob if the path is not UTF-8
    role     TEXT NOT NULL,
    added_us INTEGER NOT NULL
) STRICT;

-- The period of a target under one path, protocol and set of negotiated options. Epochs are never pooled.
CREATE TABLE epoch (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    target     INTEGER NOT NULL REFERENCES target,
    opened_us  INTEGER NOT NULL,
    path       ANY  NOT NULL,
    protocol   TEXT,          -- JSON; NULL: could not be determined
    negotiated TEXT NOT NULL  -- JSON object
) STRICT;
CREATE INDEX epoch_by_target ON epoch (target, number);

-- One randomized complete block: every workload on every target once. A skipped round is a row with the status
-- `skipped`, a reason and no runs. The number of planned rounds is therefore the sum over all statuses.
CREATE TABLE round (
    number             INTEGER PRIMARY KEY AUTOINCREMENT,
    started_us         INTEGER NOT NULL,
    utc_offset_seconds INTEGER NOT NULL,
    seed               INTEGER NOT NULL,
    scale              TEXT NOT NULL,
    planned            TEXT NOT NULL, -- JSON array of {target, workload}, in the order drawn
    status             TEXT,          -- NULL: still running, or interrupted by a crash and not closed yet
    reason             TEXT,
    ended_us           INTEGER,
    scheduled_us       INTEGER,       -- the scheduled time, without jitter; NULL: started by the user
    before             TEXT,          -- JSON: state of the machine just before the round; NULL: not recorded
    after              TEXT           -- JSON: state of the machine just after the round; NULL: not recorded
) STRICT;
CREATE INDEX round_by_status ON round (status, scheduled_us, started_us, ended_us);

-- One workload on one target, once. The number is the ID that users type.
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
    conditions         TEXT NOT NULL, -- JSON object
    metrics            TEXT           -- JSON object from metric name to seconds; NULL: no metric, or the run failed
) STRICT;
-- Covering index with all columns that a history needs of a run, so that reading a year does not touch the wide
-- rows.
CREATE INDEX run_history ON run
    (number, round, epoch, target, workload, scale, outcome, started_us, seconds, metrics);
CREATE INDEX run_by_time ON run (started_us, number);
CREATE INDEX run_by_target ON run (target, started_us, number);
CREATE INDEX run_by_round ON run (round, slot);

CREATE TABLE phase (
    number        INTEGER PRIMARY KEY,
    run           INTEGER NOT NULL REFERENCES run,
    position      INTEGER NOT NULL, -- in the run, from 0
    name          TEXT NOT NULL,
    cache         TEXT NOT NULL,
    cold_by       TEXT,
    seconds       REAL NOT NULL,
    bytes_read    INTEGER NOT NULL,
    bytes_written INTEGER NOT NULL,
    complete      INTEGER NOT NULL,
    began_us      INTEGER, -- NULL: unknown, and the phase is left out of the trace
    calls         BLOB,    -- individual calls, encoded by model::encode_calls; NULL: none, or deleted after 7 days
    wire_source   TEXT,    -- source of the wire counters; NULL: no counter was read
    wire_scope    TEXT,
    wire_read     INTEGER, -- NULL: the source does not count it
    wire_written  INTEGER,
    wire_requests INTEGER
) STRICT;
CREATE INDEX phase_with_calls ON phase (began_us) WHERE calls IS NOT NULL;
-- Warm phases with wire counters, from which client caching is detected.
CREATE INDEX phase_reread ON phase (run) WHERE cache = 'warm' AND wire_source IS NOT NULL;
CREATE UNIQUE INDEX phase_by_run ON phase (run, position);

CREATE TABLE figure (
    phase    INTEGER NOT NULL REFERENCES phase,
    position INTEGER NOT NULL, -- in the phase, from 0
    name     TEXT NOT NULL,
    unit     TEXT NOT NULL,
    value    REAL NOT NULL,
    PRIMARY KEY (phase, position)
) STRICT, WITHOUT ROWID;

-- Statistics of all calls of one operation in one phase. Percentiles are computed from the histogram, never
-- stored.
CREATE TABLE operation (
    phase     INTEGER NOT NULL REFERENCES phase,
    position  INTEGER NOT NULL,
    operation TEXT NOT NULL,
    errors    INTEGER NOT NULL,
    count     INTEGER NOT NULL,
    sum_ns    INTEGER NOT NULL,
    min_ns    INTEGER,
    max_ns    INTEGER,
    latency   BLOB NOT NULL,
    PRIMARY KEY (phase, position)
) STRICT, WITHOUT ROWID;

-- Something that may change results, such as a remount. Charts mark events on their time axis.
CREATE TABLE event (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at_us  INTEGER NOT NULL,
    target TEXT, -- target name, not number, because an event can precede the first run; NULL: the machine
    kind   TEXT NOT NULL,
    detail TEXT NOT NULL -- JSON
) STRICT;
CREATE INDEX event_by_time ON event (at_us, number);

-- Samples are merged into three time steps when they are stored: 5min is kept for 100 days, hour for 400 days,
-- 12h for 1200 days. A histogram contains its exact count, sum, minimum and maximum.

CREATE TABLE probe (
    target   INTEGER NOT NULL REFERENCES target,
    step     TEXT NOT NULL,
    at_us    INTEGER NOT NULL, -- start of the step
    kind     TEXT NOT NULL,
    during   TEXT NOT NULL,
    errors   INTEGER NOT NULL,
    timeouts INTEGER NOT NULL,
    latency  BLOB NOT NULL,
    PRIMARY KEY (target, step, at_us, kind, during)
) STRICT, WITHOUT ROWID;

CREATE TABLE traffic (
    target                INTEGER NOT NULL, -- 0: the machine
    step                  TEXT NOT NULL,
    at_us                 INTEGER NOT NULL,
    source                TEXT NOT NULL,
    scope                 TEXT NOT NULL,
    seconds               REAL NOT NULL,
    user_read             INTEGER, -- NULL: the source does not count it
    user_written          INTEGER,
    longhaul_read         INTEGER,
    longhaul_written      INTEGER,
    requests              INTEGER,
    retransmits           INTEGER,
    errors                INTEGER,
    reconnects            INTEGER,
    round_trips           INTEGER,
    round_trip_us_sum     INTEGER,
    tcp_rtt_us            INTEGER, -- largest smoothed TCP round-trip time reported by the kernel
    busy_seconds          REAL NOT NULL,
    peak_bytes_per_second REAL,
    PRIMARY KEY (target, step, at_us, source, scope)
) STRICT, WITHOUT ROWID;

CREATE TABLE machine (
    step                 TEXT NOT NULL,
    at_us                INTEGER NOT NULL,
    observations         INTEGER NOT NULL,
    processor_share      REAL,
    processor_share_max  REAL,
    memory_available_min INTEGER,
    load_average_max     REAL,
    signal_dbm_min       REAL,
    probe_cpu_ns         INTEGER NOT NULL,
    PRIMARY KEY (step, at_us)
) STRICT, WITHOUT ROWID;

-- Stalls. A row is inserted when a stall is detected and updated when more is known. ended_us is NULL during
-- the stall.
CREATE TABLE stall (
    target       TEXT NOT NULL, -- target name, as in the table event
    opened_us    INTEGER NOT NULL, -- start as first detected; identifies the stall
    started_us   INTEGER NOT NULL,
    ended_us     INTEGER,
    is_truncated INTEGER NOT NULL, -- longhaul stopped before the stall ended
    operation    TEXT NOT NULL,
    calls        INTEGER NOT NULL,
    longest_ns   INTEGER NOT NULL,
    errors       TEXT NOT NULL, -- JSON object from error to its count
    sources      TEXT NOT NULL, -- JSON array: what waited, such as the probe or a workload
    during       TEXT,
    PRIMARY KEY (target, opened_us)
) STRICT, WITHOUT ROWID;
CREATE INDEX stall_by_time ON stall (started_us);

-- Last known facts about each target and about the machine, so that a change during a restart is detected.
CREATE TABLE snapshot (
    subject     TEXT NOT NULL PRIMARY KEY, -- target name; empty: the machine
    observed_us INTEGER NOT NULL,
    facts       TEXT NOT NULL -- JSON object
) STRICT, WITHOUT ROWID;

-- Delivery of each round, and of each five-minute step of samples, to an OpenTelemetry collector. A complete
-- item without a row here is pending, so storing a round or a sample writes nothing here.
CREATE TABLE outbox (
    signal TEXT    NOT NULL, -- traces, metrics or samples
    item   INTEGER NOT NULL, -- round number; for samples the start of the five-minute step
    status TEXT    NOT NULL, -- sent, rejected or expired
    at_us  INTEGER NOT NULL,
    reason TEXT,             -- NULL unless rejected
    PRIMARY KEY (signal, item)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_by_status ON outbox (signal, status, at_us);
