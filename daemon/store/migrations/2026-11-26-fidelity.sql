-- Properties of files that a target keeps, changes, refuses or loses: one row for each property of each check.
CREATE TABLE fidelity (
    target    INTEGER NOT NULL REFERENCES target,
    at_us     INTEGER NOT NULL, -- start of the check
    property  TEXT NOT NULL,
    result    TEXT NOT NULL,
    detail    TEXT NOT NULL,
    read_back TEXT NOT NULL,    -- server, or client: possibly from this machine's memory
    epoch     INTEGER REFERENCES epoch, -- the target's epoch at that time; NULL: it had none yet
    protocol  TEXT,             -- protocol with its version; NULL: unknown
    PRIMARY KEY (target, at_us, property)
) STRICT, WITHOUT ROWID;
