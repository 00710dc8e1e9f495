//! Charts as SVG. Each chart has a description and a table of its data. All functions are pure.
//!
//! A chart is as wide as its container and uses the font size of the page (see [`svg`]), so the same drawing works on a
//! phone, on a large screen and on paper. Charts that are compared share their axes, intervals are always drawn, and
//! gaps in the data remain gaps.

pub mod bands;
pub mod calendar;
pub mod daily_ratios;
pub mod ecdf;
pub mod forest;
pub mod heat_map;
pub mod ratio_text;
pub mod scale;
pub mod style;
pub mod svg;
pub mod ticks;
pub mod time_scale;
pub mod times;

pub use bands::{BandChart, QuantileStep};
pub use calendar::{Availability, Calendar};
pub use daily_ratios::{DailyRatios, EventTick, RatioLevel};
pub use ecdf::{Curve, Ecdf};
pub use forest::{Forest, ForestGroup, ForestRow};
pub use heat_map::HeatMap;
pub use ratio_text::ratio_text;
pub use scale::{DayScale, LogScale};
pub use style::{MarkFill, SeriesStyle, SeriesStyles, Shape};
pub use svg::{Chart, STYLE};
pub(crate) use svg::{strip_control_characters, truncated};
pub use time_scale::TimeScale;
pub use times::{TimeRow, TimeRows, TimesChart};
