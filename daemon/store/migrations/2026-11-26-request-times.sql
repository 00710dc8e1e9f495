-- Times of the requests of a phase, in microseconds, from which its duration is attributed to layers. No row: no source has
-- any, or the phase is older than this table. NULL: the source does not have the value.
CREATE TABLE request_times (
    phase             INTEGER PRIMARY KEY REFERENCES phase,
    answered          INTEGER, -- requests
    queue_us          INTEGER,
    answer_us         INTEGER,
    execute_us        INTEGER,
    segments_sent     INTEGER, -- with data
    segments_received INTEGER,
    busy_us           INTEGER,
    window_limited_us INTEGER,
    buffer_limited_us INTEGER,
    min_rtt_us        INTEGER, -- from here to delivery_rate: states at the end of the phase
    smoothed_rtt_us   INTEGER,
    receive_rtt_us    INTEGER,
    timeout_us        INTEGER,
    delivery_rate     INTEGER, -- bytes per second
    retransmits       INTEGER,
    processor_us      INTEGER,
    processor_wait_us INTEGER,
    kernel_us         INTEGER
) STRICT;
