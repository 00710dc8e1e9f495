//! Contradictions that the checks find.

/// Kind of a contradiction in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::Display)]
#[strum(serialize_all = "kebab-case")]
pub enum ContradictionKind {
    /// A figure does not follow from the rounds.
    Figures,
    /// The runs were not made in the order that was drawn.
    Order,
    /// Runs are missing, repeated or overlap.
    Completeness,
    /// A time is shorter than what was counted in it allows, or does not agree with its phases.
    Times,
    /// Fewer bytes crossed the wire than were read without a cache.
    Traffic,
    /// A histogram does not agree with the runs, or with itself.
    Histograms,
}

/// A contradiction in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// Kind of the contradiction.
    pub kind: ContradictionKind,
    /// The contradiction in one sentence without its end.
    pub text: String,
}

impl Contradiction {
    pub(super) fn new(kind: ContradictionKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}
