-- Values that were stored and never read.
ALTER TABLE round DROP COLUMN after;
ALTER TABLE request_times DROP COLUMN segments_received;
ALTER TABLE request_times DROP COLUMN busy_us;
ALTER TABLE request_times DROP COLUMN window_limited_us;
ALTER TABLE request_times DROP COLUMN buffer_limited_us;
ALTER TABLE request_times DROP COLUMN smoothed_rtt_us;
ALTER TABLE request_times DROP COLUMN receive_rtt_us;
