//! What the service says of itself, and what it is busy with, handed to the exporter while it wants them.

use std::sync::atomic::{AtomicU64, Ordering};

use longhaul_measure::platform;
use longhaul_telemetry::diagnostics::{Diagnostics, Line, Place, Work};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// A layer below the log's level.
pub struct Diagnosing {
    wanted: Diagnostics,
    seed: u64,
    spans: AtomicU64,
}

/// A piece of work that goes on.
struct Busy {
    work: Work,
    began_ns: u64,
}

impl Diagnosing {
    /// Hands everything to this.
    pub fn new(wanted: Diagnostics) -> Self {
        let seed = platform::wall_clock_us().cast_unsigned().rotate_left(20) ^ u64::from(std::process::id());
        Self { wanted, seed, spans: AtomicU64::new(0) }
    }

    /// What the exporter says of itself would be said again when it is sent.
    fn wants(&self, metadata: &Metadata<'_>) -> bool {
        let from = metadata.target();
        self.wanted.is_wanted() && from.starts_with("longhaul") && !from.starts_with("longhaul_telemetry")
    }
}

/// The place of the nearest piece of work around something that is told.
fn around<'a, S: Subscriber + LookupSpan<'a>>(
    mut scope: impl Iterator<Item = tracing_subscriber::registry::SpanRef<'a, S>>,
) -> Option<Place> {
    scope.find_map(|span| span.extensions().get::<Busy>().map(|busy| busy.work.place))
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Diagnosing {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let (true, Some(span)) = (self.wants(attributes.metadata()), context.span(id)) else { return };
        let parent = around(span.scope().skip(1));
        let number = self.spans.fetch_add(1, Ordering::Relaxed);
        let mut words = Words::default();
        attributes.record(&mut words);
        let work = Work {
            place: Place::new((self.seed, number), parent),
            parent,
            name: attributes.metadata().name(),
            from: attributes.metadata().target().to_owned(),
            began_us: platform::wall_clock_us(),
            seconds: 0.0,
            particulars: words.particulars,
        };
        span.extensions_mut().insert(Busy { work, began_ns: platform::monotonic_ns() });
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(Busy { work, began_ns }) = span.extensions_mut().remove::<Busy>() else { return };
        let seconds = platform::monotonic_ns().saturating_sub(began_ns) as f64 / 1e9;
        if self.wanted.is_wanted() {
            self.wanted.push_work(Work { seconds, ..work });
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if !self.wants(event.metadata()) {
            return;
        }
        let mut words = Words::default();
        event.record(&mut words);
        self.wanted.push(Line {
            at_us: platform::wall_clock_us(),
            level: *event.metadata().level(),
            message: words.message,
            from: event.metadata().target().to_owned(),
            particulars: words.particulars,
            within: context.event_scope(event).and_then(around),
        });
    }
}

/// What an event says.
#[derive(Default)]
struct Words {
    message: String,
    particulars: Vec<(String, String)>,
}

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => self.particulars.push((name.to_owned(), format!("{value:?}"))),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.particulars.push((field.name().to_owned(), value.to_owned()));
    }
}
