-- What became of each round, and of each five minutes of samples, on its way to an OpenTelemetry collector. What is over and
-- has no row here waits: so nothing has to be written when it is stored, and what is measured while nobody exports waits by
-- itself.

CREATE TABLE outbox (
    signal TEXT    NOT NULL, -- traces, metrics or samples
    item   INTEGER NOT NULL, -- a round's number; of samples the begin of the five minutes
    fate   TEXT    NOT NULL, -- sent, rejected or expired
    at_us  INTEGER NOT NULL,
    reason TEXT,             -- NULL unless rejected
    PRIMARY KEY (signal, item)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_by_fate ON outbox (signal, fate, at_us);

-- When a phase began, in microseconds since 1970 UTC; NULL: it was not kept. Without it a phase has no place in a trace.
ALTER TABLE phase ADD COLUMN began_us INTEGER;

-- Some calls of the phase one by one, as model::encode_calls writes them; NULL: none were kept, or they were given up after a
-- week, for they are many.
ALTER TABLE phase ADD COLUMN calls BLOB;
CREATE INDEX phase_with_calls ON phase (began_us) WHERE calls IS NOT NULL;
