-- What crossed the wire during a phase: bytes and requests, from which source, and what that source counts.
-- wire_source is NULL where nothing counted; the others where the source does not count them.

ALTER TABLE phase ADD COLUMN wire_source TEXT;
ALTER TABLE phase ADD COLUMN wire_covers TEXT;
ALTER TABLE phase ADD COLUMN wire_read INTEGER;
ALTER TABLE phase ADD COLUMN wire_written INTEGER;
ALTER TABLE phase ADD COLUMN wire_requests INTEGER;

-- Second readings, of which "is it cached by the client" is made.
CREATE INDEX phase_reread ON phase (run) WHERE cache = 'warm' AND wire_source IS NOT NULL;
