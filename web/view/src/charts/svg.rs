//! Building blocks of charts. Horizontal positions are in percent, vertical positions in lines (em): a chart is as wide
//! as its container and has the same font size as the surrounding text, on any screen.

use maud::{Markup, PreEscaped, html};

use super::scale::Extent;
use crate::table::Table;

/// Width of one character on the narrowest supported page (320 px), in percent of the chart's width.
pub const CHARACTER_WIDTH: f64 = 2.3;

/// Formats a number for SVG attributes: at most two decimals, without trailing zeros.
pub fn number(value: f64) -> String {
    let text = crate::units::decimal(value, 2);
    if text == "-0" { "0".to_owned() } else { text }
}

/// Horizontal alignment of a text: the part of the text that lies at its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// The start of the text.
    Start,
    /// The middle of the text.
    Middle,
    /// The end of the text.
    End,
    /// The start of the text, with a small gap after the position, for a label next to a mark.
    After,
    /// The end of the text, with a small gap before the position.
    Before,
}

impl Anchor {
    /// Returns the anchor that keeps a text of `characters` characters near `x` within the chart.
    pub fn around(x: f64, characters: usize) -> Self {
        let half = characters as f64 * CHARACTER_WIDTH / 2.0;
        match x {
            left if left < half => Self::Start,
            right if right > 100.0 - half => Self::End,
            _ => Self::Middle,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Start | Self::After => "start",
            Self::Middle => "middle",
            Self::End | Self::Before => "end",
        }
    }

    /// Returns the shift of the text from its position; `None` if there is no gap.
    const fn gap(self) -> Option<&'static str> {
        match self {
            Self::After => Some("0.7em"),
            Self::Before => Some("-0.7em"),
            Self::Start | Self::Middle | Self::End => None,
        }
    }
}

/// A position in a chart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Horizontal position in percent of the width.
    pub x: f64,
    /// Vertical position in lines (em), from the top.
    pub y: f64,
}

/// Returns the point at a horizontal position in percent and a vertical position in lines (em).
pub const fn point(x: f64, y: f64) -> Point {
    Point { x, y }
}

/// Draws a text at a position.
pub fn text(Point { x, y }: Point, anchor: Anchor, class: &str, words: &str) -> Markup {
    html! {
        text class=[(!class.is_empty()).then_some(class)] x={ (number(x)) "%" } y={ (number(y)) "em" } dx=[anchor.gap()]
            text-anchor=(anchor.name()) { (words) }
    }
}

/// Draws a straight line.
pub fn line(class: &str, from: Point, to: Point) -> Markup {
    html! {
        line class=(class) x1={ (number(from.x)) "%" } y1={ (number(from.y)) "em" }
            x2={ (number(to.x)) "%" } y2={ (number(to.y)) "em" } {}
    }
}

/// Draws a filled rectangle between its top left and bottom right corners.
pub fn area(class: &str, from: Point, to: Point) -> Markup {
    html! {
        rect class=(class) x={ (number(from.x)) "%" } y={ (number(from.y)) "em" }
            width={ (number((to.x - from.x).max(0.0))) "%" } height={ (number((to.y - from.y).max(0.0))) "em" } {}
    }
}

/// Rows of a chart that have the lines of an axis; between them stand labels, which no line crosses.
#[derive(Debug, Clone, Default)]
pub struct AxisRows(Vec<Extent>);

impl AxisRows {
    /// Adds a row from a top to a bottom, in lines (em).
    pub fn add(&mut self, row: Extent) {
        self.0.push(row);
    }

    /// Draws vertical lines at horizontal positions, in all rows.
    pub fn lines(&self, class: &str, positions: &[f64]) -> Markup {
        let lines = positions.iter().flat_map(|x| self.0.iter().map(move |row| (x * 10.0, row)));
        self.path(
            class,
            lines.map(|(x, row)| format!("M{x:.0} {}V{}", units(row.from), units(row.to))).collect(),
        )
    }

    /// Draws an area between two horizontal positions, in all rows.
    pub fn area(&self, class: &str, across: Extent) -> Markup {
        let (from, to) = (across.from * 10.0, across.to * 10.0);
        let row =
            |row: &Extent| format!("M{from:.0} {}H{to:.0}V{}H{from:.0}Z", units(row.from), units(row.to));
        self.path(class, self.0.iter().map(row).collect())
    }

    fn path(&self, class: &str, outline: String) -> Markup {
        let height = self.0.last().map_or(0.0, |row| row.to);
        html! {
            svg class="rows" width="100%" height={ (number(height)) "em" } viewBox={ "0 0 1000 " (units(height)) }
                preserveAspectRatio="none" { path class=(class) d=(outline) {} }
        }
    }
}

/// Converts lines (em) to the units of a path in [`AxisRows`].
fn units(em: f64) -> f64 {
    (em * 10.0).round()
}

/// Draws a small symbol at a position. `outline` is an SVG path, centred on the origin and about ten units wide.
pub fn glyph(Point { x, y }: Point, class: &str, outline: &str) -> Markup {
    html! {
        svg class={ "mark " (class) } x={ (number(x)) "%" } y={ (number(y)) "em" }
            width="1em" height="1em" viewBox="0 0 12 12" overflow="visible" { path d=(outline) {} }
    }
}

/// Draws the cross that marks a failure.
pub fn failure_cross(at: Point) -> Markup {
    glyph(at, "failed", "M-3.5 -3.5L3.5 3.5M-3.5 3.5L3.5 -3.5")
}

/// A chart with its description and its data. The three are always shown together.
#[derive(Debug, Clone)]
pub struct Chart {
    /// HTML id, unique on a page: lower-case letters, digits and hyphens.
    pub id: String,
    /// Title of a few words.
    pub title: String,
    /// Description of the content, for readers who cannot see the chart.
    pub description: String,
    /// Height in lines (em).
    pub height: f64,
    /// SVG elements of the chart.
    pub drawing: Markup,
    /// Remarks on the marks in the chart, such as the events that they stand for.
    pub notes: Vec<String>,
    /// Data of the chart.
    pub table: Table,
}

/// CSS of all charts.
pub const STYLE: &str = include_str!("chart.css");

impl Chart {
    /// Returns a chart that has nothing to draw: a sentence with a title.
    pub fn sentence(id: &str, title: &str, sentence: String) -> Self {
        Self {
            id: id.to_owned(),
            title: title.to_owned(),
            description: sentence,
            height: 0.0,
            drawing: Markup::default(),
            notes: vec![],
            table: Table::default(),
        }
    }

    /// Returns true if the chart is only a sentence.
    pub fn is_sentence(&self) -> bool {
        self.height == 0.0
    }

    /// Renders the chart for a page that includes [`STYLE`].
    pub fn inline(&self) -> Markup {
        html! {
            svg class="chart" role="img" tabindex="0" width="100%" height={ (number(self.height)) "em" }
                aria-labelledby={ (self.id) "-title " (self.id) "-description" } { (self.svg_content()) }
        }
    }

    /// Renders the chart as a standalone SVG file of `width` pixels.
    pub fn standalone(&self, width: u32) -> String {
        let drawn = html! {
            svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" width=(width)
                height={ (number(self.height)) "em" }
                aria-labelledby={ (self.id) "-title " (self.id) "-description" } {
                style { (PreEscaped(STYLE)) }
                (self.svg_content())
            }
        };
        strip_control_characters(&drawn.into_string())
    }

    fn svg_content(&self) -> Markup {
        html! {
            title id={ (self.id) "-title" } { (self.title) }
            desc id={ (self.id) "-description" } { (self.description) }
            (self.drawing)
        }
    }
}

/// Replaces control characters and bidirectional control characters in a document by U+FFFD. The former are not allowed
/// in documents, the latter can make a text look like a different one.
pub fn strip_control_characters(document: &str) -> String {
    let is_hidden = |c: char| match c {
        '\n' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => true,
        c => c.is_control(),
    };
    document.replace(is_hidden, "\u{fffd}")
}

/// Returns a name with at most `characters` characters; a longer name is cut and ends in `…`.
pub fn truncated(name: &str, characters: usize) -> String {
    if name.chars().count() <= characters {
        return name.to_owned();
    }
    name.chars().take(characters.saturating_sub(1)).chain(['…']).collect()
}
