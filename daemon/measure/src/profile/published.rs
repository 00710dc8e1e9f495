//! Figures that were published, with where they stand.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// One published figure.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The classic that it was made with.
    pub classic: String,
    /// The figure, under the name that the original prints, in its unit.
    pub figure: String,
    /// What was measured: a protocol, a file system.
    pub under: String,
    /// The number.
    pub value: f64,
    /// The key of its source.
    pub source: String,
    /// What has to be said of it.
    pub note: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    citation: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Collection {
    sources: BTreeMap<String, Source>,
    published: Vec<Published>,
}

static COLLECTION: LazyLock<Collection> = LazyLock::new(|| {
    let text = include_str!("../../profiles/published.toml");
    toml::from_str(text).expect("the figures that come with longhaul are tested")
});

/// Every published figure of a classic.
pub fn published(classic: &str) -> impl Iterator<Item = &'static Published> {
    COLLECTION.published.iter().filter(move |figure| figure.classic == classic)
}

impl Published {
    /// Where it stands: author, title, date, and what was measured.
    pub fn citation(&self) -> &'static str {
        COLLECTION.sources.get(&self.source).map_or("", |source| &source.citation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::classic::classic;

    #[test]
    fn every_published_figure_has_a_source_and_one_of_ours_beside_it() {
        assert!(COLLECTION.published.len() > 50);
        for figure in &COLLECTION.published {
            assert!(figure.citation().len() > 20, "{figure:?}");
            let ours = classic(&figure.classic).unwrap_or_else(|| panic!("{figure:?}"));
            assert!(ours.profile.figures.iter().any(|print| print.name == figure.figure), "{figure:?}");
        }
    }
}
