//! Styles of targets: a colour and a shape, so that targets are distinguishable without colour.

use longhaul_analysis::summary::TargetLine;
use longhaul_model::{Role, TargetName};
use maud::{Markup, html};

/// Number of colours. They are Okabe and Ito's colours, darkened or lightened for contrast with the background.
const COLOUR_COUNT: usize = 6;

/// Shape of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A filled circle.
    Circle,
    /// A square.
    Square,
    /// A triangle that points up.
    Triangle,
    /// A square rotated by 45°.
    Diamond,
    /// A triangle that points down.
    Wedge,
}

/// Shapes in the order in which shares use them.
const SHAPES: [Shape; 5] = [Shape::Circle, Shape::Square, Shape::Triangle, Shape::Diamond, Shape::Wedge];

impl Shape {
    /// Returns the SVG path of the outline, centred on the origin and about ten units wide.
    const fn outline(self) -> &'static str {
        match self {
            Self::Circle => "M-4.5 0A4.5 4.5 0 1 0 4.5 0A4.5 4.5 0 1 0 -4.5 0Z",
            Self::Square => "M-4 -4H4V4H-4Z",
            Self::Triangle => "M0 -5L5 4H-5Z",
            Self::Diamond => "M0 -5.5L5.5 0L0 5.5L-5.5 0Z",
            Self::Wedge => "M0 5L5 -4H-5Z",
        }
    }
}

/// Style of a target in all charts of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesStyle {
    /// Number of the colour, used in the CSS classes `c0` to `c5`; `None` for the neutral colour.
    colour: Option<usize>,
    /// Shape of the marks.
    pub shape: Shape,
}

impl SeriesStyle {
    /// Neutral style, for marks that belong to no target.
    pub const NEUTRAL: SeriesStyle = SeriesStyle { colour: None, shape: Shape::Circle };

    /// Returns the style of the n-th share. Six colours and five shapes repeat at different periods, so that 30 shares
    /// have different styles.
    pub const fn for_share(place: usize) -> Self {
        Self { colour: Some(place % COLOUR_COUNT), shape: SHAPES[place % SHAPES.len()] }
    }

    /// Returns the CSS class of the colour.
    pub fn class(self) -> String {
        self.colour.map_or("cn".to_owned(), |colour| format!("c{colour}"))
    }
}

/// Styles of all targets of a page. Shares get styles in their order; baselines, which are not compared, are neutral.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SeriesStyles(Vec<(TargetName, SeriesStyle)>);

impl SeriesStyles {
    /// Assigns styles to targets.
    pub fn for_targets(targets: &[TargetLine]) -> Self {
        let shares = targets.iter().filter(|target| target.role == Role::Share);
        let baselines = targets.iter().filter(|target| target.role == Role::Baseline);
        let of_share =
            |(place, target): (usize, &TargetLine)| (target.name.clone(), SeriesStyle::for_share(place));
        let of_baseline =
            |target: &TargetLine| (target.name.clone(), SeriesStyle { colour: None, shape: Shape::Diamond });
        Self(shares.enumerate().map(of_share).chain(baselines.map(of_baseline)).collect())
    }

    /// Returns the style of a target; neutral for an unknown target.
    pub fn style(&self, name: &TargetName) -> SeriesStyle {
        self.0.iter().find(|(known, _)| known == name).map_or(SeriesStyle::NEUTRAL, |(_, style)| *style)
    }

    /// Returns the position of a target among all targets; unknown targets are last.
    pub fn place(&self, name: &TargetName) -> usize {
        self.0.iter().position(|(known, _)| known == name).unwrap_or(self.0.len())
    }

    /// Renders a target's mark for use within a line of text; nothing for an unknown target.
    pub fn legend_mark(&self, name: &TargetName) -> Markup {
        let Some((_, style)) = self.0.iter().find(|(known, _)| known == name) else {
            return Markup::default();
        };
        html! {
            svg class={ "key " (style.class()) } viewBox="-6 -6 12 12" width="12" height="12" aria-hidden="true" {
                path class="solid" d=(style.shape.outline()) {}
            }
        }
    }
}

/// Fill of a mark, which shows if the verdict is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkFill {
    /// Filled: decided.
    Solid,
    /// Outline only: not decided.
    Hollow,
}

impl MarkFill {
    /// Returns the CSS class of the fill.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Solid => "solid",
            Self::Hollow => "hollow",
        }
    }
}

/// Draws a mark at a position.
pub fn mark(super::svg::Point { x, y }: super::svg::Point, style: SeriesStyle, fill: MarkFill) -> Markup {
    html! {
        svg class={ "mark " (style.class()) } x={ (super::svg::number(x)) "%" } y={ (super::svg::number(y)) "em" }
            width="1em" height="1em" viewBox="0 0 12 12" overflow="visible" {
            path class=(fill.class()) d=(style.shape.outline()) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_shares_have_different_styles() {
        let styles: Vec<SeriesStyle> = (0..30).map(SeriesStyle::for_share).collect();
        assert!(styles.iter().enumerate().all(|(index, style)| !styles[..index].contains(style)));
    }
}
