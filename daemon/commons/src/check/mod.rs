//! Checks whether a file is what a machine measured: figures, order of the runs, times and traffic, histograms.
//!
//! A file that was made up as a whole, with the program that makes the files of the tests, passes. The checks find files that
//! were changed after they were measured.

mod completeness;
mod finding;
mod histograms;
mod order;
mod physics;
mod recomputed;

use crate::share::Share;
pub use finding::{Contradiction, ContradictionKind};

/// Returns the contradictions in a file; none for a file as it was exported. The file must have been read by
/// [`read`](crate::read), or made by a [`ShareBuilder`](crate::ShareBuilder).
pub fn check(share: &Share) -> Vec<Contradiction> {
    let checks = [
        completeness::check as fn(&Share) -> Vec<Contradiction>,
        order::check,
        physics::times,
        physics::traffic,
        histograms::check,
        recomputed::check,
    ];
    checks.iter().flat_map(|check| check(share)).collect()
}
