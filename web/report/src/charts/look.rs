//! How a target is told from the others: a colour and a shape, so that neither is needed alone.

use longhaul_measure::model::{Role, TargetName};
use longhaul_measure::summary::TargetLine;
use maud::{Markup, html};

/// How many colours there are: Okabe and Ito's, darkened or lightened until they stand out on their ground.
const COLOURS: usize = 6;

/// The shape of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A disc.
    Circle,
    /// A square.
    Square,
    /// A triangle that points up.
    Triangle,
    /// A square on its corner.
    Diamond,
    /// A triangle that points down.
    Wedge,
}

const SHAPES: [Shape; 5] = [Shape::Circle, Shape::Square, Shape::Triangle, Shape::Diamond, Shape::Wedge];

impl Shape {
    /// Its outline around the origin, about ten units across.
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

/// How a target looks in every chart of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Which colour: the class `c0` to `c5`; `None` for what belongs to no target.
    colour: Option<usize>,
    /// Which shape.
    pub shape: Shape,
}

impl Look {
    /// What belongs to no target.
    pub const NEUTRAL: Look = Look { colour: None, shape: Shape::Circle };

    /// The look of the n-th share; colours and shapes run on at different lengths, so that thirty differ.
    pub const fn of_share(place: usize) -> Self {
        Self { colour: Some(place % COLOURS), shape: SHAPES[place % SHAPES.len()] }
    }

    /// The class that gives a drawing this colour.
    pub fn class(self) -> String {
        self.colour.map_or("cn".to_owned(), |colour| format!("c{colour}"))
    }
}

/// The looks of all targets of a page: shares by their order; baselines, which are not compared, neutral.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Looks(Vec<(TargetName, Look)>);

impl Looks {
    /// For these targets.
    pub fn of(targets: &[TargetLine]) -> Self {
        let shares = targets.iter().filter(|target| target.role == Role::Share);
        let baselines = targets.iter().filter(|target| target.role == Role::Baseline);
        let of_share = |(place, target): (usize, &TargetLine)| (target.name.clone(), Look::of_share(place));
        let of_baseline =
            |target: &TargetLine| (target.name.clone(), Look { colour: None, shape: Shape::Diamond });
        Self(shares.enumerate().map(of_share).chain(baselines.map(of_baseline)).collect())
    }

    /// The look of a target.
    pub fn look(&self, name: &TargetName) -> Look {
        self.0.iter().find(|(known, _)| known == name).map_or(Look::NEUTRAL, |(_, look)| *look)
    }

    /// A target's mark, to be set into a line of text.
    pub fn key(&self, name: &TargetName) -> Markup {
        let look = self.look(name);
        html! {
            svg class={ "key " (look.class()) } viewBox="-6 -6 12 12" width="12" height="12" aria-hidden="true" {
                path class="solid" d=(look.shape.outline()) {}
            }
        }
    }
}

/// How sure a mark is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// Decided.
    Solid,
    /// Not decided: nothing is inside it.
    Hollow,
}

impl Fill {
    /// The class of such a mark.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Solid => "solid",
            Self::Hollow => "hollow",
        }
    }
}

/// A mark at a place: across in per cent, down in lines.
pub fn mark((x, y): (f64, f64), look: Look, fill: Fill) -> Markup {
    html! {
        svg class={ "mark " (look.class()) } x={ (super::svg::number(x)) "%" } y={ (super::svg::number(y)) "em" }
            width="1em" height="1em" viewBox="0 0 12 12" overflow="visible" {
            path class=(fill.class()) d=(look.shape.outline()) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_shares_look_different() {
        let looks: Vec<Look> = (0..30).map(Look::of_share).collect();
        assert!(looks.iter().enumerate().all(|(place, look)| !looks[..place].contains(look)));
    }
}
