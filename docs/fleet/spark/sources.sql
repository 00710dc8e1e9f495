-- Views of a collection that `longhaul export fleet` wrote. FLEET is its folder or bucket (s3a://...); replace it before running this.
-- The views leave out rows that cannot be right; refused.sql counts them by reason.
SET spark.sql.sources.partitionColumnTypeInference.enabled = false;

CREATE OR REPLACE TEMPORARY VIEW all_rounds USING parquet OPTIONS (
    path 'FLEET/schema=1/table=rounds', pathGlobFilter 'data.parquet'
);
CREATE OR REPLACE TEMPORARY VIEW all_runs USING parquet OPTIONS (
    path 'FLEET/schema=1/table=runs', pathGlobFilter 'data.parquet'
);
CREATE OR REPLACE TEMPORARY VIEW all_readings USING parquet OPTIONS (
    path 'FLEET/schema=1/table=readings', pathGlobFilter 'data.parquet'
);
CREATE OR REPLACE TEMPORARY VIEW all_operations USING parquet OPTIONS (
    path 'FLEET/schema=1/table=operations', pathGlobFilter 'data.parquet'
);
CREATE OR REPLACE TEMPORARY VIEW all_samples USING parquet OPTIONS (
    path 'FLEET/schema=1/table=samples', pathGlobFilter 'data.parquet'
);
CREATE OR REPLACE TEMPORARY VIEW all_events USING parquet OPTIONS (
    path 'FLEET/schema=1/table=events', pathGlobFilter 'data.parquet'
);
CREATE OR REPLACE TEMPORARY VIEW all_freshness USING parquet OPTIONS (
    path 'FLEET/schema=1/table=freshness', pathGlobFilter 'data.parquet'
);
CREATE OR REPLACE TEMPORARY VIEW all_integrity USING parquet OPTIONS (
    path 'FLEET/schema=1/table=integrity', pathGlobFilter 'data.parquet'
);

CREATE OR REPLACE TEMPORARY VIEW rounds AS SELECT * FROM all_rounds
WHERE source = machine AND started_us >= 1577836800000000 AND started_us <= (unix_micros(current_timestamp()) + 86400000000);

CREATE OR REPLACE TEMPORARY VIEW runs AS SELECT * FROM all_runs
WHERE source = machine AND started_us >= 1577836800000000 AND started_us <= (unix_micros(current_timestamp()) + 86400000000)
    AND seconds >= 0 AND NOT isnan(seconds);

CREATE OR REPLACE TEMPORARY VIEW readings AS SELECT * FROM all_readings
WHERE source = machine AND day >= 18262 AND day <= (unix_micros(current_timestamp()) + 86400000000) / 86400000000
    AND (seconds IS NULL OR (seconds > 0 AND NOT isnan(seconds)));

CREATE OR REPLACE TEMPORARY VIEW operations AS SELECT * FROM all_operations
WHERE source = machine AND started_us >= 1577836800000000 AND started_us <= (unix_micros(current_timestamp()) + 86400000000);

CREATE OR REPLACE TEMPORARY VIEW samples AS SELECT * FROM all_samples
WHERE source = machine AND at_us >= 1577836800000000 AND at_us <= (unix_micros(current_timestamp()) + 86400000000);

CREATE OR REPLACE TEMPORARY VIEW events AS SELECT * FROM all_events
WHERE source = machine AND at_us >= 1577836800000000 AND at_us <= (unix_micros(current_timestamp()) + 86400000000);

CREATE OR REPLACE TEMPORARY VIEW freshness AS SELECT * FROM all_freshness
WHERE source = machine AND at_us >= 1577836800000000 AND at_us <= (unix_micros(current_timestamp()) + 86400000000);

CREATE OR REPLACE TEMPORARY VIEW integrity AS SELECT * FROM all_integrity WHERE source = machine AND bytes >= 0;
