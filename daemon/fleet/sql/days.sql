-- The input of every verdict: for each machine, pair of shares and metric the ratio of each valid day, from all weeks up to one.
-- It follows docs/methodology.md: the newest epoch of each target, two days of warm-up, no void rounds, failures count as the
-- cap, the median of a day's rounds, and enough complete rounds on a day. `ratio` is the time on b divided by the time on a.
{{days}}
SELECT source, site, metric, a, b, protocol_a, protocol_b, day, exp(log_ratio) AS ratio, log_ratio, rounds
FROM days
WHERE is_valid = 1
ORDER BY source, metric, a, b, day;
