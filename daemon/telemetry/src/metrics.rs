//! Converts data points to OTLP metrics.

use longhaul_model::Histogram;
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Metric,
    NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::transform::common::tonic::Attributes;

use crate::attributes;
use crate::instruments::{INSTRUMENTS, Instrument, Kind};
use crate::values::{Point, Value};

/// Scale of the histograms in the store.
const SCALE: i32 = 6;

/// Temporality of counts and histograms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Temporality {
    /// Each point has the total of the UTC day so far.
    #[default]
    Cumulative,
    /// Each point has only the values of its run, round or five-minute step.
    Delta,
}

/// Converts data points, each with the index of its instrument in [`INSTRUMENTS`], to an OTLP message.
pub fn resource_metrics(
    machine: &str,
    added: &crate::ResourceAttributes,
    points: Vec<(usize, Point)>,
    temporality: Temporality,
) -> ResourceMetrics {
    let mut by_instrument: Vec<Vec<Point>> = INSTRUMENTS.iter().map(|_| vec![]).collect();
    points.into_iter().for_each(|(index, point)| by_instrument[index].push(point));
    let non_empty = INSTRUMENTS.iter().zip(by_instrument).filter(|(_, points)| !points.is_empty());
    ResourceMetrics {
        resource: Some(Resource {
            attributes: attributes::resource(machine, added).attributes.0,
            ..Resource::default()
        }),
        scope_metrics: vec![ScopeMetrics {
            scope: Some((attributes::scope(), None).into()),
            metrics: non_empty.map(|(instrument, points)| metric(instrument, points, temporality)).collect(),
            schema_url: attributes::SCHEMA_URL.to_owned(),
        }],
        schema_url: attributes::SCHEMA_URL.to_owned(),
    }
}

fn metric(instrument: &Instrument, points: Vec<Point>, temporality: Temporality) -> Metric {
    let aggregation_temporality = match temporality {
        Temporality::Cumulative => AggregationTemporality::Cumulative.into(),
        Temporality::Delta => AggregationTemporality::Delta.into(),
    };
    let data = match instrument.kind {
        Kind::Gauge => metric::Data::Gauge(Gauge { data_points: numbers(points) }),
        Kind::Counter => {
            let data_points = numbers(points);
            metric::Data::Sum(Sum { data_points, aggregation_temporality, is_monotonic: true })
        }
        Kind::Histogram => {
            let data_points = points.into_iter().filter_map(histogram).collect();
            metric::Data::ExponentialHistogram(ExponentialHistogram { data_points, aggregation_temporality })
        }
    };
    Metric {
        name: instrument.name.to_owned(),
        description: instrument.help.to_owned(),
        unit: instrument.unit.to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

fn numbers(points: Vec<Point>) -> Vec<NumberDataPoint> {
    let number = |point: Point| {
        let value = match point.value {
            Value::Number(number) => number_data_point::Value::AsDouble(number),
            Value::Count(count) => number_data_point::Value::AsInt(i64::try_from(count).unwrap_or(i64::MAX)),
            Value::Histogram(_) => return None,
        };
        Some(NumberDataPoint {
            attributes: Attributes::from(attributes::from_labels(&point.labels)).0,
            start_time_unix_nano: point.began_ns,
            time_unix_nano: point.at_ns,
            value: Some(value),
            ..NumberDataPoint::default()
        })
    };
    points.into_iter().filter_map(number).collect()
}

/// Converts a histogram point. The buckets are copied unchanged, because the store and OTLP use the same ones:
/// bucket `i` covers `(γ^i, γ^(i+1)]` microseconds with `γ = 2^(1/64)`.
fn histogram(point: Point) -> Option<ExponentialHistogramDataPoint> {
    let Value::Histogram(latency) = &point.value else { return None };
    let microseconds = |ns: u64| ns as f64 / 1e3;
    Some(ExponentialHistogramDataPoint {
        attributes: Attributes::from(attributes::from_labels(&point.labels)).0,
        start_time_unix_nano: point.began_ns,
        time_unix_nano: point.at_ns,
        count: latency.count(),
        sum: Some(microseconds(latency.sum_ns())),
        scale: SCALE,
        positive: Some(buckets(latency)),
        min: latency.min_ns().map(microseconds),
        max: latency.max_ns().map(microseconds),
        ..ExponentialHistogramDataPoint::default()
    })
}

fn buckets(latency: &Histogram) -> Buckets {
    let (offset, counts) = latency.buckets();
    Buckets { offset, bucket_counts: counts.to_vec() }
}
