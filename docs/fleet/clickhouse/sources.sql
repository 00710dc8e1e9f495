-- Views of a collection that `longhaul export fleet` wrote. FLEET is its folder; for a bucket write s3('https://...') instead of file(...); replace it before running this.
-- The views leave out rows that cannot be right; refused.sql counts them by reason.
SET use_hive_partitioning = 1, join_use_nulls = 1, prefer_column_name_to_alias = 1, enable_materialized_cte = 1,
    optimize_move_to_prewhere = 0;

CREATE OR REPLACE VIEW all_rounds AS SELECT *, _file FROM file(
    'FLEET/schema=1/table=rounds/week=*/machine=*/data.parquet', Parquet
);
CREATE OR REPLACE VIEW all_runs AS SELECT *, _file FROM file(
    'FLEET/schema=1/table=runs/week=*/machine=*/data.parquet', Parquet
);
CREATE OR REPLACE VIEW all_readings AS SELECT *, _file FROM file(
    'FLEET/schema=1/table=readings/week=*/machine=*/data.parquet', Parquet
);
CREATE OR REPLACE VIEW all_operations AS SELECT *, _file FROM file(
    'FLEET/schema=1/table=operations/week=*/machine=*/data.parquet', Parquet
);
CREATE OR REPLACE VIEW all_samples AS SELECT *, _file FROM file(
    'FLEET/schema=1/table=samples/week=*/machine=*/data.parquet', Parquet
);
CREATE OR REPLACE VIEW all_events AS SELECT *, _file FROM file(
    'FLEET/schema=1/table=events/week=*/machine=*/data.parquet', Parquet
);
CREATE OR REPLACE VIEW all_freshness AS SELECT *, _file FROM file(
    'FLEET/schema=1/table=freshness/week=*/machine=*/data.parquet', Parquet
);
CREATE OR REPLACE VIEW all_integrity AS SELECT *, _file FROM file(
    'FLEET/schema=1/table=integrity/week=*/machine=*/data.parquet', Parquet
);

CREATE OR REPLACE VIEW rounds AS SELECT * FROM all_rounds
WHERE source = machine AND started_us >= 1577836800000000 AND started_us <= (toInt64(toUnixTimestamp(now())) * 1000000 + 86400000000);

CREATE OR REPLACE VIEW runs AS SELECT * FROM all_runs
WHERE source = machine AND started_us >= 1577836800000000 AND started_us <= (toInt64(toUnixTimestamp(now())) * 1000000 + 86400000000)
    AND seconds >= 0 AND NOT isNaN(seconds);

CREATE OR REPLACE VIEW readings AS SELECT * FROM all_readings
WHERE source = machine AND day >= 18262 AND day <= (toInt64(toUnixTimestamp(now())) * 1000000 + 86400000000) / 86400000000
    AND (seconds IS NULL OR (seconds > 0 AND NOT isNaN(seconds)));

CREATE OR REPLACE VIEW operations AS SELECT * FROM all_operations
WHERE source = machine AND started_us >= 1577836800000000 AND started_us <= (toInt64(toUnixTimestamp(now())) * 1000000 + 86400000000);

CREATE OR REPLACE VIEW samples AS SELECT * FROM all_samples
WHERE source = machine AND at_us >= 1577836800000000 AND at_us <= (toInt64(toUnixTimestamp(now())) * 1000000 + 86400000000);

CREATE OR REPLACE VIEW events AS SELECT * FROM all_events
WHERE source = machine AND at_us >= 1577836800000000 AND at_us <= (toInt64(toUnixTimestamp(now())) * 1000000 + 86400000000);

CREATE OR REPLACE VIEW freshness AS SELECT * FROM all_freshness
WHERE source = machine AND at_us >= 1577836800000000 AND at_us <= (toInt64(toUnixTimestamp(now())) * 1000000 + 86400000000);

CREATE OR REPLACE VIEW integrity AS SELECT * FROM all_integrity WHERE source = machine AND bytes >= 0;
