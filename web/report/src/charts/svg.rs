//! The pieces of a picture. Across everything is in per cent, down everything is in lines (em): a picture is as wide as
//! its place, and its letters are as large as those around it, on a phone and on a wall.

use maud::{Markup, PreEscaped, html};

/// How wide one character is on the narrowest page that is provided for, 320 px, in per cent of the picture.
pub const CHARACTER: f64 = 2.3;

/// A number as pictures need it: two decimals, none that is zero at its end.
pub fn number(value: f64) -> String {
    let text = crate::units::plain(value, 2);
    if text == "-0" { "0".to_owned() } else { text }
}

/// Which end of a text lies at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// Its begin.
    Start,
    /// Its middle.
    Middle,
    /// Its end.
    End,
}

impl Anchor {
    /// The anchor that keeps a text of so many characters around `x` within the picture.
    pub fn around(x: f64, characters: usize) -> Self {
        let half = characters as f64 * CHARACTER / 2.0;
        match x {
            left if left < half => Self::Start,
            right if right > 100.0 - half => Self::End,
            _ => Self::Middle,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// A text on a line.
pub fn text((x, y): (f64, f64), anchor: Anchor, class: &str, words: &str) -> Markup {
    html! {
        text class=[(!class.is_empty()).then_some(class)] x={ (number(x)) "%" } y={ (number(y)) "em" }
            text-anchor=(anchor.name()) { (words) }
    }
}

/// A text beside something, with a little room between.
pub fn text_beside((x, y): (f64, f64), anchor: Anchor, class: &str, words: &str) -> Markup {
    let room = match anchor {
        Anchor::Start => "0.7em",
        Anchor::Middle => "0",
        Anchor::End => "-0.7em",
    };
    html! {
        text class=[(!class.is_empty()).then_some(class)] x={ (number(x)) "%" } y={ (number(y)) "em" } dx=(room)
            text-anchor=(anchor.name()) { (words) }
    }
}

/// A straight line.
pub fn line(class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> Markup {
    html! {
        line class=(class) x1={ (number(x1)) "%" } y1={ (number(y1)) "em" }
            x2={ (number(x2)) "%" } y2={ (number(y2)) "em" } {}
    }
}

/// A filled box between two corners.
pub fn area(class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> Markup {
    html! {
        rect class=(class) x={ (number(x1)) "%" } y={ (number(y1)) "em" }
            width={ (number((x2 - x1).max(0.0))) "%" } height={ (number((y2 - y1).max(0.0))) "em" } {}
    }
}

/// A small drawing at a place, `outline` being around the origin and about ten units across.
pub fn glyph((x, y): (f64, f64), class: &str, outline: &str) -> Markup {
    html! {
        svg class={ "mark " (class) } x={ (number(x)) "%" } y={ (number(y)) "em" }
            width="1em" height="1em" viewBox="0 0 12 12" overflow="visible" { path d=(outline) {} }
    }
}

/// The figures behind a picture, for whoever cannot see it or wants them exactly.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// What the columns hold.
    pub head: Vec<String>,
    /// The rows; the first cell of each names it.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns and no row yet.
    pub fn new<'t>(head: impl IntoIterator<Item = &'t str>) -> Self {
        Self { head: head.into_iter().map(str::to_owned).collect(), rows: vec![] }
    }

    /// The table as comma-separated values, RFC 4180. A cell that a spreadsheet would take for a formula is made a text.
    pub fn csv(&self) -> String {
        let line =
            |cells: &Vec<String>| cells.iter().map(|cell| csv_cell(cell)).collect::<Vec<_>>().join(",");
        std::iter::once(&self.head).chain(&self.rows).map(|cells| line(cells) + "\r\n").collect()
    }
}

fn csv_cell(cell: &str) -> String {
    let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if is_formula { format!("'{cell}") } else { cell.to_owned() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// A picture with its words and its figures. None of the three goes without the others.
#[derive(Debug, Clone)]
pub struct Chart {
    /// Unique on a page: lower-case letters, digits and hyphens.
    pub id: String,
    /// What it shows, in a few words.
    pub title: String,
    /// How to read it, and what it says, for whoever does not see it.
    pub description: String,
    /// How many lines high it is.
    pub height: f64,
    /// Its drawing.
    pub drawing: Markup,
    /// Its figures.
    pub table: Table,
}

/// The colours and strokes of all charts.
pub const STYLE: &str = include_str!("chart.css");

impl Chart {
    /// The picture, to be set into a page that has [`STYLE`].
    pub fn inline(&self) -> Markup {
        html! {
            svg class="chart" role="img" width="100%" height={ (number(self.height)) "em" }
                aria-labelledby={ (self.id) "-title " (self.id) "-description" } { (self.inside()) }
        }
    }

    /// The picture as a file of its own, so many pixels wide.
    pub fn standalone(&self, width: u32) -> String {
        let drawn = html! {
            svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" width=(width)
                height={ (number(self.height)) "em" }
                aria-labelledby={ (self.id) "-title " (self.id) "-description" } {
                style { (PreEscaped(STYLE)) }
                (self.inside())
            }
        };
        readable(&drawn.into_string())
    }

    fn inside(&self) -> Markup {
        html! {
            title id={ (self.id) "-title" } { (self.title) }
            desc id={ (self.id) "-description" } { (self.description) }
            (self.drawing)
        }
    }
}

/// A document without what no document may hold, or what makes a text read as another one: control characters, and marks
/// that turn the direction of writing. Their places stay visible.
pub fn readable(document: &str) -> String {
    let is_hidden = |c: char| match c {
        '\n' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => true,
        c => c.is_control(),
    };
    document.replace(is_hidden, "\u{fffd}")
}

/// A name with at most so many characters; of a longer one the begin.
pub fn shortened(name: &str, characters: usize) -> String {
    if name.chars().count() <= characters {
        return name.to_owned();
    }
    name.chars().take(characters.saturating_sub(1)).chain(['…']).collect()
}
