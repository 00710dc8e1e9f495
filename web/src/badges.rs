//! A badge: what may be said about a pair, small enough for a README. Made here, asked of nobody.

use longhaul_measure::summary::PairSummary;
use longhaul_report::charts::ratio_text;
use longhaul_report::charts::svg::readable;
use longhaul_report::words;
use maud::html;

/// How wide a character is at most, in pixels: the texts are short, and nothing may be cut.
const CHARACTER: usize = 7;
const ROOM: usize = 12;

/// The badge of a pair. Never a bare winner: who takes less time stands with the ratio, its interval and its days.
pub fn badge(pair: &PairSummary) -> String {
    let (left, right) = (format!("{} / {}", pair.b, pair.a), found(pair));
    let wide = |text: &str| text.chars().count() * CHARACTER + ROOM;
    let (first, second) = (wide(&left), wide(&right));
    let whole = format!("{left}: {right}");
    let drawn = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(first + second) height="20" role="img" aria-label=(whole) {
            title { (whole) }
            rect width=(first) height="20" fill="#373e46" {}
            rect x=(first) width=(second) height="20" fill="#00527f" {}
            g fill="#fff" font-family="system-ui,Verdana,sans-serif" font-size="11" text-anchor="middle" {
                text x=(first / 2) y="14" { (left) }
                text x=(first + second / 2) y="14" { (right) }
            }
        }
    };
    readable(&drawn.into_string())
}

fn found(pair: &PairSummary) -> String {
    let state = words::state_of_pair(pair);
    let ratio = pair.headline.as_ref().and_then(|headline| headline.ratio);
    ratio.map_or_else(
        || state.clone(),
        |ratio| format!("{} in {} days, {state}", ratio_text(ratio), ratio.days),
    )
}
