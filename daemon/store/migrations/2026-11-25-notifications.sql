-- Notifications that were made, each once: the key says what it is about.
CREATE TABLE notification (
    number INTEGER PRIMARY KEY,
    key    TEXT    NOT NULL UNIQUE, -- such as digest:2026-W47 or target-down:smb:1764061200000000
    kind   TEXT    NOT NULL,
    at_us  INTEGER NOT NULL,
    title  TEXT    NOT NULL,
    text   TEXT    NOT NULL,
    week   TEXT                     -- week of the report; NULL unless a digest
) STRICT;

-- Delivery of each notification to each channel that was configured when it was made.
CREATE TABLE notification_delivery (
    channel      TEXT    NOT NULL,
    notification INTEGER NOT NULL REFERENCES notification (number),
    status       TEXT    NOT NULL, -- pending, sending, sent, unanswered, rejected or expired
    at_us        INTEGER NOT NULL, -- of the last change; what was sent as one message has one time
    PRIMARY KEY (channel, notification)
) STRICT, WITHOUT ROWID;
CREATE INDEX notification_delivery_by_status ON notification_delivery (channel, status, at_us);

-- What was told last, so that a restart neither repeats nor forgets anything.
CREATE TABLE notification_state (
    key   TEXT NOT NULL PRIMARY KEY, -- such as down:smb or verdict:nfs:smb
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
