//! The SQL under docs/fleet is rendered from one text for all engines: the templates in daemon/fleet/sql.
//! `LONGHAUL_WRITE_SQL=1 cargo test -p longhaul-fleet --test fleet shipped_sql::` writes it again.

use std::fs;
use std::path::{Path, PathBuf};

use longhaul_export::fleet::FleetTable;

/// Questions that every engine answers, each a file.
const FILES: [&str; 9] =
    ["sources", "days", "ratio", "latency", "outcomes", "freshness", "integrity", "refused", "grafana"];

/// Differences between engines: the text for a name in braces.
struct Dialect {
    folder: &'static str,
    settings: &'static str,
    /// Keyword by which a subquery that is used several times is computed once.
    materialized: &'static str,
    view: &'static str,
    or_bucket: &'static str,
    source: fn(&str) -> String,
    tomorrow_us: &'static str,
    is_nan: &'static str,
    /// Median of a column, the mean of the two values in the middle.
    median: fn(&str) -> String,
    /// Value of a column in the row with the smallest or largest number.
    at_smallest: &'static str,
    at_largest: &'static str,
    stddev: &'static str,
    week_start: &'static str,
    operation_buckets: &'static str,
}

const DUCKDB: Dialect = Dialect {
    folder: "duckdb",
    settings: "",
    materialized: "MATERIALIZED ",
    view: "OR REPLACE VIEW",
    or_bucket: " or bucket (s3://...)",
    source: |table| {
        format!(
            "CREATE OR REPLACE VIEW all_{table} AS SELECT * FROM read_parquet(\n    'FLEET/schema=1/table={table}/week=*/machine=*/data.parquet', hive_partitioning = true, hive_types_autocast = false\n);\n"
        )
    },
    tomorrow_us: "(epoch_us(now()) + 86400000000)",
    is_nan: "isnan",
    median: |column| format!("median({column})"),
    at_smallest: "arg_min",
    at_largest: "arg_max",
    stddev: "stddev_samp",
    week_start: "strptime(week || '-1', '%G-W%V-%u')",
    operation_buckets: "
        SELECT site, protocol, workload, cache, operation, unnest(bucket_index) AS bucket, unnest(bucket_count) AS bucket_calls
        FROM operations WHERE week = 'WEEK'
    ",
};

const CLICKHOUSE: Dialect = Dialect {
    folder: "clickhouse",
    // Small files are read faster whole than in two steps.
    settings: "SET use_hive_partitioning = 1, join_use_nulls = 1, prefer_column_name_to_alias = 1, enable_materialized_cte = 1,\n    optimize_move_to_prewhere = 0;\n",
    materialized: "MATERIALIZED ",
    view: "OR REPLACE VIEW",
    or_bucket: "; for a bucket write s3('https://...') instead of file(...)",
    source: |table| {
        format!(
            "CREATE OR REPLACE VIEW all_{table} AS SELECT *, _file FROM file(\n    'FLEET/schema=1/table={table}/week=*/machine=*/data.parquet', Parquet\n);\n"
        )
    },
    tomorrow_us: "(toInt64(toUnixTimestamp(now())) * 1000000 + 86400000000)",
    is_nan: "isNaN",
    median: |column| format!("quantileExactInclusive(0.5)({column})"),
    at_smallest: "argMin",
    at_largest: "argMax",
    stddev: "stddevSamp",
    week_start: "parseDateTimeOrNull(concat(week, '-1'), '%G-W%V-%u')",
    operation_buckets: "
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
    ",
};

const SPARK: Dialect = Dialect {
    folder: "spark",
    settings: "SET spark.sql.sources.partitionColumnTypeInference.enabled = false;\n",
    materialized: "",
    view: "OR REPLACE TEMPORARY VIEW",
    or_bucket: " or bucket (s3a://...)",
    source: |table| {
        format!(
            "CREATE OR REPLACE TEMPORARY VIEW all_{table} USING parquet OPTIONS (\n    path 'FLEET/schema=1/table={table}', pathGlobFilter 'data.parquet'\n);\n"
        )
    },
    tomorrow_us: "(unix_micros(current_timestamp()) + 86400000000)",
    is_nan: "isnan",
    median: |column| format!("percentile({column}, 0.5)"),
    at_smallest: "min_by",
    at_largest: "max_by",
    stddev: "stddev_samp",
    week_start: "CAST(date_trunc('WEEK', date_add(make_date(CAST(substring(week, 1, 4) AS INT), 1, 4), 7 * (CAST(substring(week, 7, 2) AS INT) - 1))) AS TIMESTAMP)",
    operation_buckets: "
        SELECT site, protocol, workload, cache, operation, bucket, bucket_calls
        FROM operations LATERAL VIEW inline(arrays_zip(bucket_index, bucket_count)) AS bucket, bucket_calls
        WHERE week = 'WEEK'
    ",
};

impl Dialect {
    fn render(&self, template: &str) -> String {
        let days = template_of("days_with");
        let sources: String = FleetTable::ALL.iter().map(|table| (self.source)(table.name())).collect();
        let middle = |quantile: &str| {
            format!("2000e0 * pow(2e0, (r.{quantile}_bucket + 1) / 64e0) / (1e0 + pow(2e0, 1e0 / 64e0))")
        };
        let values = [
            ("days", days.trim_end().to_owned()),
            ("materialized", self.materialized.to_owned()),
            ("settings", self.settings.to_owned()),
            ("sources", sources),
            ("or_bucket", self.or_bucket.to_owned()),
            ("view", self.view.to_owned()),
            ("tomorrow_us", self.tomorrow_us.to_owned()),
            ("seconds_is_nan", format!("{}(seconds)", self.is_nan)),
            ("median_seconds", (self.median)("seconds")),
            ("median_latest", (self.median)("latest_seconds")),
            ("scale_of_last_run", format!("{}(scale, last_run)", self.at_largest)),
            ("site_of_last_run", format!("{}(site, run)", self.at_largest)),
            // The id of a machine has 16 digits.
            ("machine", "substr(source, 1, 16)".to_owned()),
            ("known_protocol", "coalesce(protocol, 'unknown')".to_owned()),
            ("day_of_first_run", format!("{}(day, run)", self.at_smallest)),
            ("day_of_first_round", format!("{}(d.day, d.first_round)", self.at_smallest)),
            ("usual_of_first_round", format!("{}(d.usual, d.first_round)", self.at_smallest)),
            ("first_day_of_targets", format!("{}(t.first_day, t.began)", self.at_smallest)),
            ("median_log_ratio", (self.median)("log_ratio")),
            ("stddev_log_ratio", format!("{}(log_ratio)", self.stddev)),
            ("week_start", self.week_start.to_owned()),
            ("operation_buckets", self.operation_buckets.to_owned()),
            ("p50_middle", middle("p50")),
            ("p95_middle", middle("p95")),
            ("p99_middle", middle("p99")),
        ];
        values
            .iter()
            .fold(template.to_owned(), |text, (name, value)| text.replace(&format!("{{{{{name}}}}}"), value))
    }
}

fn template_of(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql").join(format!("{name}.sql"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("read {}: {error}", path.display()))
}

fn shipped(dialect: &Dialect, name: &str) -> PathBuf {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fleet");
    docs.join(dialect.folder).join(format!("{name}.sql"))
}

#[test]
fn shipped_sql_is_rendered_from_the_templates() {
    for dialect in [&DUCKDB, &CLICKHOUSE, &SPARK] {
        for name in FILES {
            let (path, rendered) = (shipped(dialect, name), dialect.render(&template_of(name)));
            if std::env::var_os("LONGHAUL_WRITE_SQL").is_some() {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, &rendered).unwrap();
            }
            let found = fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(found, rendered, "{} is not current: set LONGHAUL_WRITE_SQL=1", path.display());
        }
    }
}

#[test]
fn rendered_sql_has_no_name_left() {
    for dialect in [&DUCKDB, &CLICKHOUSE, &SPARK] {
        for name in FILES {
            let rendered = dialect.render(&template_of(name));
            assert!(!rendered.contains("{{"), "{}: {name}", dialect.folder);
        }
    }
}
