-- Results of reading a wrong range through other shares that lead to the same folder: a JSON list of target, protocol and
-- result. NULL: it was read through no other share.
ALTER TABLE mismatch ADD COLUMN elsewhere TEXT;
