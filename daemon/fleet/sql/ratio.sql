-- The weekly answer: per site, pair of protocols and metric the ratio over all machines, from all weeks up to one.
-- Machines are compared with themselves only: each machine is one value, the mean of its days' log ratios, also if it has several
-- databases (`source` begins with its id). Pairs of one protocol have no direction over machines and are left out. `ratio` is the time
-- over protocol b divided by the time over protocol a, so above 1 protocol a is faster. The interval over n machines is
-- ratio * exp(+- t * standard_error), with Student's t at n - 1 degrees. `verdict_days` are the days of all machines.
{{days}},
machines AS (
    SELECT {{machine}} AS machine, site, metric,
        CASE WHEN protocol_a <= protocol_b THEN protocol_a ELSE protocol_b END AS protocol_a,
        CASE WHEN protocol_a <= protocol_b THEN protocol_b ELSE protocol_a END AS protocol_b,
        avg(CASE WHEN protocol_a <= protocol_b THEN log_ratio ELSE -log_ratio END) AS log_ratio,
        count(*) AS days, sum(rounds) AS rounds
    FROM days
    WHERE is_valid = 1 AND protocol_a <> protocol_b
    GROUP BY {{machine}}, site, metric,
        CASE WHEN protocol_a <= protocol_b THEN protocol_a ELSE protocol_b END,
        CASE WHEN protocol_a <= protocol_b THEN protocol_b ELSE protocol_a END
)
SELECT site, protocol_a, protocol_b, metric,
    count(*) AS machines, sum(days) AS verdict_days, sum(rounds) AS rounds,
    exp(avg(log_ratio)) AS ratio, avg(log_ratio) AS mean_log_ratio,
    {{stddev_log_ratio}} AS between_machines, {{stddev_log_ratio}} / sqrt(count(*)) AS standard_error,
    sum(CASE WHEN log_ratio > 0 THEN 1 ELSE 0 END) AS machines_faster_on_a,
    sum(CASE WHEN log_ratio < 0 THEN 1 ELSE 0 END) AS machines_faster_on_b
FROM machines
GROUP BY site, protocol_a, protocol_b, metric
ORDER BY site, protocol_a, protocol_b, metric;
