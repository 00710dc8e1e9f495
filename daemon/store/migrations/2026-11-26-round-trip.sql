-- Round trip time of the network just before a run, in microseconds; NULL if it was not measured. Verdicts are adjusted for
-- it, so that the covering index of the history needs it, too.
ALTER TABLE run ADD COLUMN rtt_us INTEGER;
DROP INDEX run_history;
CREATE INDEX run_history ON run
    (number, round, epoch, target, workload, scale, outcome, started_us, seconds, metrics, rtt_us);
