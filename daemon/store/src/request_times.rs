//! Stores the times of the requests of phases, and reads those of many runs in the few columns that attribution needs.

use longhaul_model::{
    CacheState, CallTotals, MetricSeconds, Phase, PhaseTimes, Protocol, RequestTimes, RequestTotals, Scale,
    TcpCounters, YOUR_DAY,
};
use rusqlite::{Connection, Row, params_from_iter};

use crate::error::{Fault, Result};
use crate::reader::Reader;
use crate::rows::{TableRow, query_all};

/// Names of the columns, in the order of [`values`].
const COLUMNS: [&str; 14] = [
    "answered",
    "queue_us",
    "answer_us",
    "execute_us",
    "segments_sent",
    "min_rtt_us",
    "timeout_us",
    "delivery_rate",
    "retransmits",
    "processor_us",
    "processor_wait_us",
    "kernel_us",
    "sent_bytes",
    "received_bytes",
];

impl Reader {
    /// Returns the phases of the complete runs that have metrics, at a scale, in the order of the runs: those of the last `rounds`
    /// rounds with a run at this scale that are not void. `None` selects the scale of most runs of the last rounds.
    pub fn phase_times(&self, rounds: u32, scale: Option<Scale>) -> Result<Vec<PhaseTimes>> {
        let values = (rounds, scale.map(|scale| scale.name()));
        self.in_snapshot("read the times of requests", |cx| {
            query_all(cx, &phase_times_query(), values, phase_times)
        })
    }
}

/// Stores the times of the requests of a phase, if it has any.
pub(crate) fn insert(cx: &Connection, phase: &Phase, number: i64) -> Result<(), Fault> {
    let Some(times) = &phase.request_times else { return Ok(()) };
    let places: Vec<String> = (1..=COLUMNS.len() + 1).map(|place| format!("?{place}")).collect();
    let insert =
        format!("INSERT INTO request_times (phase, {}) VALUES ({})", COLUMNS.join(", "), places.join(", "));
    let values = values(times).map(|value| value.map(u64::cast_signed));
    cx.prepare_cached(&insert)?.execute(params_from_iter([Some(number)].into_iter().chain(values)))?;
    Ok(())
}

/// Reads the times of the requests of a phase.
pub(crate) fn of_phase(cx: &Connection, phase: i64) -> Result<Option<RequestTimes>, Fault> {
    let query = format!("SELECT {} FROM request_times WHERE phase = ?1", COLUMNS.join(", "));
    let found = query_all(cx, &query, [phase], |row| from_row(TableRow::new(row, "request_times", phase)))?;
    Ok(found.into_iter().next())
}

fn values(times: &RequestTimes) -> [Option<u64>; COLUMNS.len()] {
    let RequestTimes {
        requests,
        tcp,
        retransmits,
        processor_us,
        processor_wait_us,
        kernel_us,
        sent_bytes,
        received_bytes,
    } = times;
    [
        requests.answered,
        requests.queue_us,
        requests.answer_us,
        requests.execute_us,
        tcp.segments_sent,
        tcp.min_rtt_us,
        tcp.timeout_us,
        tcp.delivery_rate,
        *retransmits,
        *processor_us,
        *processor_wait_us,
        *kernel_us,
        *sent_bytes,
        *received_bytes,
    ]
}

/// Reads the last columns of a row, which are [`COLUMNS`].
fn from_row(row: TableRow<'_>) -> Result<RequestTimes, Fault> {
    let first = row.columns().saturating_sub(COLUMNS.len());
    let mut values = [None; COLUMNS.len()];
    for (index, value) in values.iter_mut().enumerate() {
        *value = row.optional_unsigned(first + index)?;
    }
    Ok(from_values(values))
}

/// The reverse of [`values`].
pub(crate) fn from_values(values: [Option<u64>; COLUMNS.len()]) -> RequestTimes {
    let [answered, queue_us, answer_us, execute_us, values @ ..] = values;
    let [segments_sent, min_rtt_us, timeout_us, delivery_rate, values @ ..] = values;
    let [retransmits, processor_us, processor_wait_us, kernel_us, sent_bytes, received_bytes] = values;
    RequestTimes {
        requests: RequestTotals { answered, queue_us, answer_us, execute_us },
        tcp: TcpCounters { segments_sent, min_rtt_us, timeout_us, delivery_rate },
        retransmits,
        processor_us,
        processor_wait_us,
        kernel_us,
        sent_bytes,
        received_bytes,
    }
}

/// Returns the query for phases with metrics, at one scale; of the replays, those of the newest recording. Calls are added up in
/// SQL, so that no histogram is read.
fn phase_times_query() -> String {
    format!(
        "WITH counted AS (
            SELECT number FROM round WHERE status IS NOT 'skipped' AND status IS NOT 'void'
                AND (?2 IS NULL OR EXISTS (SELECT 1 FROM run WHERE run.round = round.number AND run.scale = ?2))
            ORDER BY number DESC LIMIT ?1),
        newest AS (
            SELECT number, scale, CASE workload WHEN '{your_day}' THEN json_extract(facts, '$.recording') END AS recording
            FROM run WHERE round IN (SELECT number FROM counted) AND outcome = 'ok' AND metrics IS NOT NULL
                AND epoch = (SELECT max(number) FROM epoch WHERE epoch.target = run.target)),
        scaled AS (SELECT * FROM newest WHERE scale = coalesce(?2,
            (SELECT scale FROM newest GROUP BY scale ORDER BY count(*) DESC, max(number) DESC LIMIT 1)))
        SELECT run.number AS run, run.round, target.name AS target, run.protocol, run.workload, run.metrics,
            json_extract(run.conditions, '$.round_trip_us') AS round_trip_us,
            json_extract(run.conditions, '$.send_rate') AS send_rate,
            phase.number, phase.name AS phase, phase.cache, phase.seconds, phase.wire_read, phase.wire_written,
            phase.wire_requests, request_times.phase AS timed,
            (SELECT coalesce(sum(count), 0) FROM operation WHERE operation.phase = phase.number
                AND operation <> 'decode') AS calls,
            (SELECT coalesce(sum(count), 0) FROM operation WHERE operation.phase = phase.number
                AND operation IN ('read', 'write', 'sync')) AS data_calls,
            (SELECT coalesce(sum(sum_ns), 0) FROM operation WHERE operation.phase = phase.number
                AND operation <> 'decode') AS call_ns,
            (SELECT coalesce(sum(sum_ns), 0) FROM operation WHERE operation.phase = phase.number
                AND operation = 'decode') AS decode_ns,
            {times}
        FROM scaled JOIN run ON run.number = scaled.number JOIN target ON target.number = run.target
        CROSS JOIN phase ON phase.run = run.number
        LEFT JOIN request_times ON request_times.phase = phase.number
        WHERE phase.complete
            AND scaled.recording IS (CASE run.workload WHEN '{your_day}' THEN
                (SELECT recording FROM scaled WHERE recording IS NOT NULL ORDER BY number DESC LIMIT 1) END)
        ORDER BY run.number, phase.position",
        your_day = YOUR_DAY.name(),
        times = COLUMNS.map(|name| format!("request_times.{name}")).join(", ")
    )
}

fn phase_times(row: &Row<'_>) -> Result<PhaseTimes, Fault> {
    let row = TableRow::numbered(row, "phase")?;
    let protocol: Option<Protocol> = row.optional_json("protocol")?;
    let is_timed = row.get::<Option<i64>>("timed")?.is_some();
    let seconds = |column| Ok::<_, Fault>(row.unsigned(column)? as f64 / 1e9);
    Ok(PhaseTimes {
        run: row.get("run")?,
        round: row.get("round")?,
        target: row.parsed("target", |name| name.parse().ok())?,
        protocol,
        workload: row.get("workload")?,
        metrics: metrics(row)?,
        round_trip_us: row.optional_unsigned("round_trip_us")?,
        send_rate: row.optional_unsigned("send_rate")?,
        phase: row.get("phase")?,
        cache: row.parsed("cache", CacheState::from_name)?,
        seconds: row.get("seconds")?,
        calls: CallTotals {
            calls: row.unsigned("calls")?,
            data_calls: row.unsigned("data_calls")?,
            seconds: seconds("call_ns")?,
            decode_seconds: seconds("decode_ns")?,
        },
        wire_read: row.optional_unsigned("wire_read")?,
        wire_written: row.optional_unsigned("wire_written")?,
        wire_requests: row.optional_unsigned("wire_requests")?,
        times: is_timed.then(|| from_row(row)).transpose()?,
    })
}

fn metrics(row: TableRow<'_>) -> Result<Vec<MetricSeconds>, Fault> {
    let found: std::collections::BTreeMap<String, f64> = row.json("metrics")?;
    Ok(found.into_iter().map(|(metric, seconds)| MetricSeconds { metric, seconds }).collect())
}
