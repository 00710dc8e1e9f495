-- Bytes on the connections of a phase, with requests, answers and names; NULL if they were not counted.
ALTER TABLE request_times ADD COLUMN sent_bytes INTEGER;
ALTER TABLE request_times ADD COLUMN received_bytes INTEGER;
