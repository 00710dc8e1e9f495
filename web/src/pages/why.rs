//! The page that says where the time of each task goes, and what another network or disk would change.

use axum::response::Response;
use longhaul_analysis::prediction::{AssumedChange, parse_bandwidth, parse_disk, parse_round_trip, what_if};
use longhaul_view::charts::SeriesStyles;
use longhaul_view::render::html::render;
use longhaul_view::screens;
use maud::{Markup, html};
use serde::Deserialize;

use super::shell::{RangeLink, range_picker};
use super::{NavItem, PageError, render_page};
use crate::app_state::AppState;
use crate::params::Params;

/// A network or disk that the page offers.
struct Setting {
    label: &'static str,
    query: &'static str,
}

/// The settings, in the order of the page.
const SETTINGS: [Setting; 4] = [
    Setting { label: "over a VPN", query: "rtt=20ms&bandwidth=50mbit" },
    Setting { label: "on Wi-Fi", query: "rtt=4ms&bandwidth=300mbit" },
    Setting { label: "with 10 GbE", query: "bandwidth=10gbit" },
    Setting { label: "with an SSD in the NAS", query: "disk=ssd" },
];

/// Raw parameters of a question about another network or disk.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WhatIfParams {
    /// Round-trip time, such as `20ms`.
    rtt: Option<String>,
    /// Bandwidth, such as `10gbit`.
    bandwidth: Option<String>,
    /// Disk, such as `ssd`.
    disk: Option<String>,
}

/// Serves the page.
pub async fn why(app: AppState, Params(params): Params<WhatIfParams>) -> Response {
    render_page(app, NavItem::Why, move |cache| {
        let params = params.filled();
        let change = params.change()?;
        let newest = cache.newest_week()?;
        let styles = SeriesStyles::for_targets(&cache.weekly(newest)?.targets);
        let attributed = screens::why::why(&cache.attributions()?);
        let predicted = if change == AssumedChange::default() {
            screens::what_if::without_question()
        } else {
            screens::what_if::what_if(change, &what_if(cache.timed_runs()?.as_ref(), change))
        };
        Ok(html! {
            h1 { "Why" }
            (render(&attributed.into_section("why"), &styles))
            div id="what-if" class="controls" { (range_picker(params.links())) (form(&params)) }
            (render(&predicted.into_section("prediction"), &styles))
        })
    })
    .await
}

impl WhatIfParams {
    /// Returns the parameters without the empty fields of a form.
    fn filled(self) -> Self {
        let filled = |value: Option<String>| value.filter(|text| !text.trim().is_empty());
        Self { rtt: filled(self.rtt), bandwidth: filled(self.bandwidth), disk: filled(self.disk) }
    }

    /// Returns the network and disk that are asked about.
    ///
    /// # Errors
    ///
    /// If a value is not valid.
    pub fn change(&self) -> Result<AssumedChange, PageError> {
        fn parse<T>(
            value: &Option<String>,
            with: fn(&str) -> Result<T, String>,
        ) -> Result<Option<T>, PageError> {
            let given = value.as_deref().map(str::trim);
            given
                .map(|text| with(text).map_err(|error| PageError::BadRequest(format!("{text:?}: {error}."))))
                .transpose()
        }
        Ok(AssumedChange {
            round_trip: parse(&self.rtt, parse_round_trip)?,
            bits_per_second: parse(&self.bandwidth, parse_bandwidth)?,
            disk: parse(&self.disk, parse_disk)?,
        })
    }

    /// Returns the links to the settings.
    fn links(&self) -> impl Iterator<Item = RangeLink> {
        let given = [("rtt", &self.rtt), ("bandwidth", &self.bandwidth), ("disk", &self.disk)];
        let given = given.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
        let current = given.collect::<Vec<_>>().join("&");
        SETTINGS.into_iter().map(move |setting| RangeLink {
            label: setting.label,
            address: format!("/why?{}#what-if", setting.query),
            is_current: setting.query == current,
        })
    }
}

fn form(params: &WhatIfParams) -> Markup {
    let field = |name: &str, label: &str, example: &str, value: &Option<String>| {
        html! { label { (label) " " input name=(name) size="8" placeholder=(example) value=[value.as_ref()]; } }
    };
    html! {
        form class="search" action="/why#what-if" {
            (field("rtt", "Round trip", "20ms", &params.rtt))
            (field("bandwidth", "Bandwidth", "100mbit", &params.bandwidth))
            (field("disk", "Disk", "ssd", &params.disk))
            button { "Predict" }
        }
    }
}
