-- Freshness: one row for each change that was made elsewhere and looked for through a target. Kept for 400 days.
CREATE TABLE freshness (
    number          INTEGER PRIMARY KEY,
    target          TEXT NOT NULL,               -- name of the target through which the change was looked for
    protocol        TEXT,                        -- JSON; NULL: unknown
    epoch           INTEGER REFERENCES epoch,    -- NULL: the target has no run yet
    changed_through TEXT,                        -- name of the target through which it was made; NULL: on the NAS
    shares_client   INTEGER NOT NULL,            -- 1: both targets use one client of this machine
    round           INTEGER REFERENCES round,    -- NULL: not made in a round
    kind            TEXT NOT NULL,
    at_us           INTEGER NOT NULL,            -- when the change was made
    earliest_us     INTEGER,                     -- time until the change was visible, at least and at most
    latest_us       INTEGER,
    limit_us        INTEGER,                     -- time within which it was not visible
    reason          TEXT                         -- why nothing is known
) STRICT;
CREATE INDEX freshness_time ON freshness (at_us);
