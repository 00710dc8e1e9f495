//! Bandwidth of the network to a target, from what its phases show.

use longhaul_model::PhaseTimes;

/// Shortest phase whose rate counts, in seconds: a shorter one may be served by buffers.
const MIN_SECONDS: f64 = 0.05;

/// Bandwidth to a target, in bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Bandwidth {
    /// Best value: the largest rate at which TCP always had more to send, or that a phase reached. `None` if TCP never had,
    /// because then nothing shows that the network limited it.
    pub known: Option<f64>,
    /// Largest rate that a phase reached: the bandwidth is at least that. `None` if no phase transferred anything.
    pub reached: Option<f64>,
}

impl Bandwidth {
    /// Returns the bandwidth that phases of one target show.
    pub fn of(phases: &[&PhaseTimes]) -> Self {
        let reached = phases.iter().filter_map(|phase| rate(phase)).max_by(f64::total_cmp);
        let delivered = phases.iter().filter_map(|phase| phase.times.as_ref()?.tcp.delivery_rate);
        let delivered = delivered.max().map(|rate| rate as f64);
        Self { known: delivered.map(|rate| rate.max(reached.unwrap_or(0.0))), reached }
    }
}

/// Returns the larger rate of both directions of a phase.
fn rate(phase: &PhaseTimes) -> Option<f64> {
    let bytes = phase.wire_read.unwrap_or(0).max(phase.wire_written.unwrap_or(0));
    (bytes > 0 && phase.seconds >= MIN_SECONDS).then(|| bytes as f64 / phase.seconds)
}
