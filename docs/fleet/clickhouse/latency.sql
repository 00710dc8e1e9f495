-- Latency of each operation in one week: calls, errors and percentiles, per site and protocol ('unknown' if it could not be
-- determined).
-- Histograms are merged by adding the counts of equal buckets, so the percentiles are those of all calls together,
-- accurate to one bucket (1.09 %). Bucket i holds times above 2^(i/64) and up to 2^((i+1)/64) microseconds.
WITH calls_by_group AS MATERIALIZED (
    SELECT site, coalesce(protocol, 'unknown') AS protocol, workload, cache, operation,
        sum(calls) AS calls, sum(errors) AS errors, min(min_ns) AS min_ns, max(max_ns) AS max_ns
    FROM operations
    WHERE week = 'WEEK'
    GROUP BY site, coalesce(protocol, 'unknown'), workload, cache, operation
),
buckets AS (
    SELECT site, coalesce(protocol, 'unknown') AS protocol, workload, cache, operation, bucket, sum(bucket_calls) AS bucket_calls
    FROM (
        -- The names of a group are hashed once for each row and not once for each bucket.
        SELECT n.site AS site, n.protocol AS protocol, n.workload AS workload, n.cache AS cache, n.operation AS operation,
            m.bucket AS bucket, m.bucket_calls AS bucket_calls
        FROM (
            SELECT name_hash, bucket, sum(single_calls) AS bucket_calls
            FROM (
                SELECT cityHash64(site, coalesce(protocol, 'unknown'), workload, cache, operation) AS name_hash, bucket_index, bucket_count
                FROM operations WHERE week = 'WEEK'
            ) ARRAY JOIN bucket_index AS bucket, bucket_count AS single_calls
            GROUP BY name_hash, bucket
        ) AS m
        JOIN (
            SELECT site, protocol, workload, cache, operation,
                cityHash64(site, protocol, workload, cache, operation) AS name_hash
            FROM calls_by_group
        ) AS n ON m.name_hash = n.name_hash
    ) AS single
    GROUP BY site, coalesce(protocol, 'unknown'), workload, cache, operation, bucket
),
cumulative AS (
    SELECT site, protocol, workload, cache, operation, bucket,
        sum(bucket_calls) OVER (
            PARTITION BY site, protocol, workload, cache, operation ORDER BY bucket
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS calls_up_to
    FROM buckets
),
ranked AS (
    SELECT c.site AS site, c.protocol AS protocol, c.workload AS workload, c.cache AS cache, c.operation AS operation,
        min(CASE WHEN c.calls_up_to >= greatest(ceil(0.5e0 * g.calls), 1e0) THEN c.bucket END) AS p50_bucket,
        min(CASE WHEN c.calls_up_to >= greatest(ceil(0.95e0 * g.calls), 1e0) THEN c.bucket END) AS p95_bucket,
        min(CASE WHEN c.calls_up_to >= greatest(ceil(0.99e0 * g.calls), 1e0) THEN c.bucket END) AS p99_bucket
    FROM cumulative AS c
    JOIN calls_by_group AS g
        ON c.site = g.site AND c.protocol = g.protocol AND c.workload = g.workload AND c.cache = g.cache
        AND c.operation = g.operation
    GROUP BY c.site, c.protocol, c.workload, c.cache, c.operation
)
SELECT g.site AS site, g.protocol AS protocol, g.workload AS workload, g.cache AS cache, g.operation AS operation,
    g.calls AS calls, g.errors AS errors, r.p50_bucket AS p50_bucket, r.p95_bucket AS p95_bucket, r.p99_bucket AS p99_bucket,
    least(greatest(2000e0 * pow(2e0, (r.p50_bucket + 1) / 64e0) / (1e0 + pow(2e0, 1e0 / 64e0)), CAST(g.min_ns AS DOUBLE)), CAST(g.max_ns AS DOUBLE)) AS p50_ns,
    least(greatest(2000e0 * pow(2e0, (r.p95_bucket + 1) / 64e0) / (1e0 + pow(2e0, 1e0 / 64e0)), CAST(g.min_ns AS DOUBLE)), CAST(g.max_ns AS DOUBLE)) AS p95_ns,
    least(greatest(2000e0 * pow(2e0, (r.p99_bucket + 1) / 64e0) / (1e0 + pow(2e0, 1e0 / 64e0)), CAST(g.min_ns AS DOUBLE)), CAST(g.max_ns AS DOUBLE)) AS p99_ns
FROM ranked AS r
JOIN calls_by_group AS g
    ON r.site = g.site AND r.protocol = g.protocol AND r.workload = g.workload AND r.cache = g.cache
    AND r.operation = g.operation
ORDER BY site, protocol, workload, cache, operation;
