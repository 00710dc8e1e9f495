-- What became of each round on its way to an OpenTelemetry collector. A round that has ended and has no row here waits: so
-- nothing has to be written when a round is stored, and what is measured while nobody exports waits by itself.

CREATE TABLE outbox (
    signal TEXT    NOT NULL, -- traces or metrics
    round  INTEGER NOT NULL REFERENCES round,
    fate   TEXT    NOT NULL, -- sent, rejected or expired
    at_us  INTEGER NOT NULL,
    reason TEXT,             -- NULL unless rejected
    PRIMARY KEY (signal, round)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_by_fate ON outbox (signal, fate, at_us);

-- When a phase began, in microseconds since 1970 UTC; NULL: it was not kept. Without it a phase has no place in a trace.
ALTER TABLE phase ADD COLUMN began_us INTEGER;
