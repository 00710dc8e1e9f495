//! SVG badges with the verdict on a pair, small enough for a README. They are drawn locally, without an external
//! service.

use longhaul_analysis::summary::PairSummary;
use longhaul_view::charts::ratio_text;
use longhaul_view::charts::svg::strip_control_characters;
use longhaul_view::words;
use maud::html;

/// Upper bound for the width of a character, in pixels. A real measurement is not needed: the texts are short, and
/// must not be clipped.
const CHARACTER_WIDTH: usize = 7;
const PADDING: usize = 12;

/// Returns the badge of a pair as SVG. It never shows a bare winner, but the ratio with its interval and number of
/// days.
pub fn badge(pair: &PairSummary) -> String {
    let (left, right) = (format!("{} / {}", pair.b, pair.a), badge_text(pair));
    let wide = |text: &str| text.chars().count() * CHARACTER_WIDTH + PADDING;
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
    strip_control_characters(&drawn.into_string())
}

fn badge_text(pair: &PairSummary) -> String {
    let state = words::pair_verdict_label(pair);
    let ratio = pair.headline.as_ref().and_then(|headline| headline.ratio);
    ratio.map_or_else(
        || state.clone(),
        |ratio| format!("{} in {} days, {state}", ratio_text(ratio), ratio.days),
    )
}
