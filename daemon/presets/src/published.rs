//! Figures that others published, with their sources.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// One published figure.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedFigure {
    /// Name of the preset that reproduces the tool that was used.
    pub preset: String,
    /// Name of the figure, as the original tool prints it. The value is in the unit of that figure in the preset.
    pub figure: String,
    /// Conditions of the measurement: a protocol or a file system.
    pub setup: String,
    /// Published value.
    pub value: f64,
    /// Key of the source in the list of sources.
    pub source: String,
    /// Note about the value, if any.
    pub note: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    citation: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedCollection {
    sources: BTreeMap<String, Source>,
    published: Vec<PublishedFigure>,
}

static PUBLISHED: LazyLock<PublishedCollection> = LazyLock::new(|| {
    let text = include_str!("../profiles/published.toml");
    toml::from_str(text).expect("a test parses the bundled figures")
});

/// Returns all published figures for a preset.
pub fn published_figures(preset: &str) -> impl Iterator<Item = &'static PublishedFigure> {
    PUBLISHED.published.iter().filter(move |figure| figure.preset == preset)
}

impl PublishedFigure {
    /// Returns the citation of the source: author, title, date, and the measured hardware.
    pub fn citation(&self) -> &'static str {
        PUBLISHED.sources.get(&self.source).map_or("", |source| &source.citation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::preset;

    #[test]
    fn published_figures_have_a_source_and_a_counterpart() {
        assert!(PUBLISHED.published.len() > 50);
        for figure in &PUBLISHED.published {
            assert!(figure.citation().len() > 20, "{figure:?}");
            let ours = preset(&figure.preset).unwrap_or_else(|| panic!("{figure:?}"));
            assert!(ours.profile.figures.iter().any(|print| print.name == figure.figure), "{figure:?}");
        }
    }
}
