-- Usage of each target by programs other than longhaul, by hour and source, from the client's counters. Kept for 400
-- days. NULL: the source does not count this.
CREATE TABLE usage (
    target           INTEGER NOT NULL REFERENCES target,
    at_us            INTEGER NOT NULL, -- start of the hour
    source           TEXT NOT NULL,
    counted_seconds  REAL NOT NULL,    -- time in which requests were counted
    left_out_seconds REAL NOT NULL,    -- time in which longhaul itself measured
    list             INTEGER,          -- requests by kind
    open             INTEGER,
    read             INTEGER,
    write            INTEGER,
    change           INTEGER,
    attributes       INTEGER,
    files_read       INTEGER,          -- about how many files were opened and read
    read_bytes       INTEGER,
    written_bytes    INTEGER,
    PRIMARY KEY (target, at_us, source)
) STRICT, WITHOUT ROWID;

-- Requests of a phase that read a batch of a folder's names. NULL: not counted, or none.
ALTER TABLE phase ADD COLUMN wire_listings INTEGER;
-- Phases that show how many of these requests the opening of a large folder takes.
CREATE INDEX phase_listing ON phase (run)
    WHERE name = 'open-folder' AND cache = 'cold' AND complete AND wire_listings > 0;
