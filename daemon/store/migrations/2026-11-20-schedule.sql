-- Rounds of a schedule: when each was meant to be, what was true around it, and those that were skipped.
--
-- A skipped round is a row like any other, with the status `skipped`, its reason, and no runs: so planned rounds are
-- the sum of those that were made, void, cut short and skipped.

ALTER TABLE round ADD COLUMN scheduled_us INTEGER; -- the instant the schedule meant, without jitter; NULL: a person began it
ALTER TABLE round ADD COLUMN before TEXT;          -- JSON: the machine just before; NULL: not asked
ALTER TABLE round ADD COLUMN after TEXT;           -- JSON: the machine just after

CREATE INDEX round_by_status ON round (status, scheduled_us, started_us, ended_us);
