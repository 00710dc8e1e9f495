-- Views for Grafana, over all weeks: run sources.sql first. Each has a column `week_start`, the Monday of the week, as time.
CREATE OR REPLACE VIEW weekly_outcomes AS
SELECT parseDateTimeOrNull(concat(week, '-1'), '%G-W%V-%u') AS week_start, week, site, protocol, count(*) AS run_count,
    sum(CASE WHEN outcome = 'hung' THEN 1 ELSE 0 END) AS hung,
    sum(CASE WHEN outcome = 'error' THEN 1 ELSE 0 END) AS failed
FROM runs GROUP BY week, site, protocol;

CREATE OR REPLACE VIEW weekly_times AS
SELECT parseDateTimeOrNull(concat(week, '-1'), '%G-W%V-%u') AS week_start, week, site, protocol, metric, count(seconds) AS times, quantileExactInclusive(0.5)(seconds) AS median_seconds
FROM readings WHERE outcome = 'ok' GROUP BY week, site, protocol, metric;

CREATE OR REPLACE VIEW weekly_integrity AS
SELECT parseDateTimeOrNull(concat(week, '-1'), '%G-W%V-%u') AS week_start, week, site, protocol, sum(bytes) AS verified_bytes, sum(mismatches) AS wrong_ranges
FROM integrity GROUP BY week, site, protocol;

CREATE OR REPLACE VIEW weekly_machines AS
SELECT parseDateTimeOrNull(concat(week, '-1'), '%G-W%V-%u') AS week_start, week, site, count(DISTINCT substr(source, 1, 16)) AS machines, count(*) AS round_count,
    sum(CASE WHEN status = 'ok' THEN 1 ELSE 0 END) AS complete_rounds
FROM rounds GROUP BY week, site;
