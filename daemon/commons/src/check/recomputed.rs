//! Computes all figures again.

use crate::figures::figures;
use crate::share::{SharedFigure, SharedResults};

/// Largest relative difference between equal figures of two machines. Their mathematical functions differ in the last digits.
const TOLERANCE: f64 = 1e-6;

/// Finds figures that do not follow from the rounds, or are missing.
pub(super) fn check(share: &SharedResults) -> Vec<String> {
    let computed = figures(share);
    if computed.len() != share.figures.len() {
        return vec![format!(
            "it has {} figures, but its rounds give {}",
            share.figures.len(),
            computed.len()
        )];
    }
    let differs = |(stated, computed): &(&SharedFigure, &SharedFigure)| !agree(stated, computed);
    match share.figures.iter().zip(&computed).find(differs) {
        Some((stated, computed)) => vec![format!(
            "the ratio of {} is given as {:.3}, but its rounds give {:.3}, or its interval, days or verdict differ",
            stated.key,
            stated.ln_ratio.exp(),
            computed.ln_ratio.exp()
        )],
        None => vec![],
    }
}

fn agree(stated: &SharedFigure, computed: &SharedFigure) -> bool {
    let close = |a: f64, b: f64| (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()).max(1e-3);
    let words = |figure: &SharedFigure| {
        (figure.a, figure.b, figure.key.clone(), figure.days, figure.rounds, figure.verdict)
    };
    words(stated) == words(computed)
        && close(stated.ln_ratio, computed.ln_ratio)
        && close(stated.standard_error, computed.standard_error)
        && close(stated.ln_e, computed.ln_e)
        && stated.half_width.is_some() == computed.half_width.is_some()
        && close(stated.half_width.unwrap_or(0.0), computed.half_width.unwrap_or(0.0))
}
