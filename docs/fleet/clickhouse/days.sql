-- The input of every verdict: for each machine, pair of shares and metric the ratio of each valid day, from all weeks up to one.
-- It follows docs/methodology.md: the newest epoch of each target, two days of warm-up, no void rounds, failures count as the
-- cap, the median of a day's rounds, and enough complete rounds on a day. `ratio` is the time on b divided by the time on a.
WITH epoch_runs AS MATERIALIZED (
    SELECT source, target, epoch, scale, argMax(site, run) AS site, min(protocol) AS protocol,
        argMin(day, run) AS first_day, max(run) AS last_run
    FROM runs
    WHERE week <= 'WEEK'
    GROUP BY source, target, epoch, scale
),
scales AS (
    SELECT source, argMax(scale, last_run) AS scale FROM epoch_runs GROUP BY source
),
-- The newest epoch of each target. The day of its first run and the next one are warm-up.
epochs AS MATERIALIZED (
    SELECT e.source AS source, e.site AS site, e.target AS target, e.protocol AS protocol, e.epoch AS epoch, e.scale AS scale,
        e.first_day + 2 AS first_counted_day
    FROM epoch_runs AS e
    JOIN (
        SELECT r.source AS source, r.target AS target, s.scale AS scale, max(r.epoch) AS epoch
        FROM epoch_runs AS r JOIN scales AS s ON r.source = s.source AND r.scale = s.scale
        GROUP BY r.source, r.target, s.scale
    ) AS n ON e.source = n.source AND e.target = n.target AND e.scale = n.scale AND e.epoch = n.epoch
),
-- A reading is a time, a failure (error or hung), or absent (unavailable, void, without this figure).
epoch_readings AS MATERIALIZED (
    SELECT c.source AS source, c.round AS round, c.day AS day, c.target AS target, c.target_number AS target_number,
        c.metric AS metric, e.first_counted_day AS first_counted_day,
        CASE WHEN c.role = 'share' THEN 1 ELSE 0 END AS is_share,
        CASE WHEN c.outcome = 'ok' THEN c.seconds END AS seconds,
        CASE WHEN c.outcome IN ('error', 'hung') THEN 1 ELSE 0 END AS is_failed
    FROM readings AS c
    JOIN epochs AS e ON c.source = e.source AND c.target = e.target AND c.epoch = e.epoch AND c.scale = e.scale
    WHERE c.week <= 'WEEK' AND coalesce(c.round_status, 'running') <> 'void'
),
-- The failure cap: 20 times the median of the fastest share on the first day with three times, from 60 to 900 s. The first day of
-- all epochs and with the warm-up, so that the cap never moves, but without times that are dated before their epoch began. The first
-- day is the one that began with the earliest round, whatever its date: a clock may have been wrong. A failure counts as the cap, or
-- as the time on the other share if that is longer.
share_times AS (
    SELECT c.source AS source, c.metric AS metric, c.target AS target, c.day AS day, c.round AS round, c.seconds AS seconds
    FROM readings AS c
    JOIN scales AS s ON c.source = s.source AND c.scale = s.scale
    JOIN epoch_runs AS e ON c.source = e.source AND c.target = e.target AND c.epoch = e.epoch AND c.scale = e.scale
    WHERE c.week <= 'WEEK' AND coalesce(c.round_status, 'running') <> 'void' AND c.role = 'share'
        AND c.outcome = 'ok' AND c.seconds IS NOT NULL AND c.day >= e.first_day
),
-- A date that comes back after another one, because the clock was wrong, is another day: only times that follow each other are one.
dated_times AS (
    SELECT source, metric, target, day, round, seconds,
        dense_rank() OVER (PARTITION BY source, metric, target ORDER BY round)
            - dense_rank() OVER (PARTITION BY source, metric, target, day ORDER BY round) AS rounds_of_other_days
    FROM share_times
),
daily_times AS (
    SELECT source, metric, target, day, min(round) AS first_round, quantileExactInclusive(0.5)(seconds) AS usual
    FROM dated_times
    GROUP BY source, metric, target, day, rounds_of_other_days
    HAVING count(*) >= 3
),
target_days AS MATERIALIZED (
    SELECT d.source AS source, d.metric AS metric, d.target AS target, min(d.first_round) AS began,
        argMin(d.day, d.first_round) AS first_day, argMin(d.usual, d.first_round) AS first_usual
    FROM daily_times AS d
    GROUP BY d.source, d.metric, d.target
),
first_days AS (
    SELECT t.source AS source, t.metric AS metric, argMin(t.first_day, t.began) AS day FROM target_days AS t GROUP BY t.source, t.metric
),
usual_times AS (
    SELECT t.source AS source, t.metric AS metric, min(t.first_usual) AS usual
    FROM target_days AS t
    JOIN first_days AS f ON t.source = f.source AND t.metric = f.metric AND t.first_day = f.day
    GROUP BY t.source, t.metric
),
caps AS (
    SELECT m.source AS source, m.metric AS metric,
        least(greatest(20e0 * coalesce(u.usual, 0e0), 60e0), 900e0) AS cap
    FROM (SELECT DISTINCT source, metric FROM epoch_readings) AS m
    LEFT JOIN usual_times AS u ON m.source = u.source AND m.metric = u.metric
),
round_ratios AS (
    SELECT a.source AS source, a.metric AS metric, a.target AS a, b.target AS b, a.day AS day,
        greatest(a.first_counted_day, b.first_counted_day) AS first_counted_day,
        CASE WHEN a.is_failed = 1 AND b.is_failed = 1 THEN 1 ELSE 0 END AS both_failed,
        CASE WHEN a.is_failed = 1 AND b.is_failed = 1 THEN NULL
            ELSE ln(
                (CASE WHEN b.is_failed = 1 THEN greatest(c.cap, a.seconds) ELSE b.seconds END)
                / (CASE WHEN a.is_failed = 1 THEN greatest(c.cap, b.seconds) ELSE a.seconds END)
            )
        END AS log_ratio
    FROM epoch_readings AS a
    JOIN epoch_readings AS b ON a.source = b.source AND a.round = b.round AND a.metric = b.metric
    JOIN caps AS c ON a.source = c.source AND a.metric = c.metric
    WHERE a.target_number < b.target_number AND a.is_share = 1 AND b.is_share = 1
        AND (a.seconds IS NOT NULL OR a.is_failed = 1) AND (b.seconds IS NOT NULL OR b.is_failed = 1)
),
-- A round that was planned for other targets alone is not one of a pair. The plan is not exported: a completed round has a run of each
-- planned target, and so has a void one in which no target could be used. Any other may have ended before the turn of the pair.
targets_of_rounds AS MATERIALIZED (
    SELECT source, round, target, max(CASE WHEN outcome = 'unavailable' THEN 0 ELSE 1 END) AS is_measured
    FROM runs
    WHERE week <= 'WEEK'
    GROUP BY source, round, target
),
rounds_with_runs AS (
    SELECT source, round, max(is_measured) AS is_measured FROM targets_of_rounds GROUP BY source, round
),
rounds_of_scale AS (
    SELECT r.source AS source, r.round AS round, r.day AS day,
        CASE WHEN w.is_measured IS NOT NULL AND (r.status = 'ok' OR (r.status = 'void' AND w.is_measured = 0)) THEN 1 ELSE 0
        END AS has_all_runs
    FROM rounds AS r
    JOIN scales AS s ON r.source = s.source AND r.scale = s.scale
    LEFT JOIN rounds_with_runs AS w ON r.source = w.source AND r.round = w.round
    WHERE r.week <= 'WEEK'
),
planned AS (
    SELECT a.source AS source, a.target AS a, b.target AS b, r.day AS day, count(DISTINCT r.round) AS rounds
    FROM epochs AS a
    JOIN epochs AS b ON a.source = b.source
    JOIN rounds_of_scale AS r ON a.source = r.source
    LEFT JOIN targets_of_rounds AS t ON r.source = t.source AND r.round = t.round
    WHERE a.target <> b.target AND (r.has_all_runs = 0 OR t.target = a.target OR t.target = b.target)
    GROUP BY a.source, a.target, b.target, r.day
),
day_ratios AS (
    SELECT source, metric, a, b, day,
        quantileExactInclusive(0.5)(log_ratio) AS log_ratio, count(log_ratio) AS rounds,
        sum(CASE WHEN log_ratio > 0 THEN 1 ELSE 0 END) AS won_by_a,
        sum(CASE WHEN log_ratio < 0 THEN 1 ELSE 0 END) AS won_by_b,
        sum(both_failed) AS both_failed
    FROM round_ratios
    WHERE day >= first_counted_day
    GROUP BY source, metric, a, b, day
),
-- A day is valid with six complete rounds, or with 60 % of the planned ones, and never with fewer than three.
days AS (
    SELECT d.source AS source, a.site AS site, d.metric AS metric, d.a AS a, d.b AS b, a.protocol AS protocol_a,
        b.protocol AS protocol_b, d.day AS day, d.log_ratio AS log_ratio, d.rounds AS rounds, d.won_by_a AS won_by_a,
        d.won_by_b AS won_by_b, d.both_failed AS both_failed,
        CASE WHEN d.rounds >= (
            CASE WHEN p.rounds >= 6 THEN 6e0 ELSE greatest(ceil(0.6e0 * p.rounds), 3e0) END
        ) THEN 1 ELSE 0 END AS is_valid
    FROM day_ratios AS d
    JOIN planned AS p ON d.source = p.source AND d.a = p.a AND d.b = p.b AND d.day = p.day
    JOIN epochs AS a ON d.source = a.source AND d.a = a.target
    JOIN epochs AS b ON d.source = b.source AND d.b = b.target
)
SELECT source, site, metric, a, b, protocol_a, protocol_b, day, exp(log_ratio) AS ratio, log_ratio, rounds
FROM days
WHERE is_valid = 1
ORDER BY source, metric, a, b, day;
