-- Use of the NAS during a run, read from the NAS just before and just after it. No row: no NAS is named, or the target
-- is not on it.
CREATE TABLE nas_use (
    run             INTEGER PRIMARY KEY REFERENCES run,
    problem         TEXT,    -- reason why nothing below is known; NULL: there were two readings
    seconds         REAL,    -- between the readings; everything below is NULL where the NAS does not tell it
    processor_share REAL,    -- of all processors, from 0 to 1
    disk            TEXT,    -- name of the busiest disk on the NAS; never exported or sent
    disk_busy_share REAL,    -- share of the seconds in which that disk had requests, from 0 to 1
    disk_request_ms REAL,    -- sum of the durations of its requests
    disk_requests   INTEGER,
    disk_bytes      INTEGER  -- read and written
) STRICT;
