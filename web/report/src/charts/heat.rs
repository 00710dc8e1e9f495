//! When it is slow: hours of the day across, days of the week down, the median of each as a shade. A field that nothing is
//! known of stays empty.

use maud::{Markup, html};

use super::look::{Fill, Look, mark};
use super::scale::LogScale;
use super::svg::{Anchor, Chart, Table, area, shortened, text};
use crate::units;

/// Where the fields are drawn, in per cent; in lines.
const ACROSS: (f64, f64) = (10.0, 99.5);
const TOP: f64 = 1.8;
const ROW: f64 = 1.3;
/// Names are cut to so many characters.
const NAME: usize = 24;
/// How many shades there are.
const SHADES: usize = 6;
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// One target by weekday and hour.
#[derive(Debug, Clone)]
pub struct Heat {
    /// Unique on a page.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// The target's name.
    pub name: String,
    /// Its look.
    pub look: Look,
    /// By weekday, Monday first, and hour: the median in seconds and how many values it rests on.
    pub fields: [[Option<(f64, u64)>; 24]; 7],
}

impl Heat {
    /// The shades that serve several: equal shades mean equal times in all of them.
    pub fn shared_scale<'h>(all: impl IntoIterator<Item = &'h Heat>) -> LogScale {
        let fields = all.into_iter().flat_map(|heat| heat.fields.iter().flatten());
        LogScale::over(fields.filter_map(|field| field.map(|(seconds, _)| seconds)), (0.0, SHADES as f64))
    }

    /// Draws it with these shades.
    pub fn draw(&self, scale: LogScale) -> Chart {
        let bottom = TOP + 7.0 * ROW;
        let count: u64 = self.fields.iter().flatten().filter_map(|field| field.map(|(_, count)| count)).sum();
        Chart {
            id: self.id.clone(),
            title: self.title.clone(),
            description: self.description(count),
            height: bottom + 4.4,
            drawing: html! {
                (mark((ACROSS.0 + 1.6, 0.7), self.look, Fill::Solid))
                (text((ACROSS.0 + 4.5, 1.05), Anchor::Start, "strong", &shortened(&self.name, NAME)))
                (text((100.0, 1.05), Anchor::End, "quiet", &format!("n {count}")))
                g class=(self.look.class()) { (self.drawn(scale)) }
                (axes(bottom))
                g class=(self.look.class()) { (legend(scale, bottom + 2.4)) }
            },
            table: self.table(),
        }
    }

    fn drawn(&self, scale: LogScale) -> Markup {
        html! {
            @for (day, hours) in self.fields.iter().enumerate() {
                @for (hour, field) in hours.iter().enumerate() {
                    @let (x, y) = (across(hour), TOP + day as f64 * ROW);
                    @let class = field.map_or("unknown".to_owned(), |(seconds, _)| format!("h{}", shade(scale, seconds)));
                    (area(&class, (x, y + 0.06), (across(hour + 1) - 0.25, y + ROW - 0.06)))
                }
            }
        }
    }

    fn description(&self, count: u64) -> String {
        let known = self.fields.iter().enumerate().flat_map(|(day, hours)| {
            hours
                .iter()
                .enumerate()
                .filter_map(move |(hour, field)| field.map(|(seconds, _)| (seconds, day, hour)))
        });
        let slowest = known.max_by(|a, b| a.0.total_cmp(&b.0));
        let slowest = slowest.map_or(String::new(), |(seconds, day, hour)| {
            format!(
                " The slowest hour is {} from {hour}:00, with a median of {}.",
                WEEKDAYS[day],
                units::seconds(seconds)
            )
        });
        format!(
            "Each field is the median of an hour of a weekday in local time; the darker, the longer, in {SHADES} logarithmic \
             shades that all pictures of this kind on the page share. A framed field has no value. {}: {count} values.{slowest}",
            self.name
        )
    }

    fn table(&self) -> Table {
        let mut table = Table::new(["weekday", "hour", "median", "n"]);
        for (day, hours) in self.fields.iter().enumerate() {
            for (hour, field) in hours.iter().enumerate() {
                if let Some((seconds, count)) = field {
                    table.rows.push(vec![
                        WEEKDAYS[day].to_owned(),
                        format!("{hour:02}:00"),
                        units::seconds(*seconds),
                        count.to_string(),
                    ]);
                }
            }
        }
        table
    }
}

fn across(hour: usize) -> f64 {
    ACROSS.0 + hour as f64 / 24.0 * (ACROSS.1 - ACROSS.0)
}

fn shade(scale: LogScale, seconds: f64) -> usize {
    (scale.at(seconds) as usize).min(SHADES - 1)
}

fn axes(bottom: f64) -> Markup {
    html! {
        @for (day, name) in WEEKDAYS.iter().enumerate() {
            (text((ACROSS.0 - 1.0, TOP + (day as f64 + 0.75) * ROW), Anchor::End, "quiet", name))
        }
        @for hour in [0, 6, 12, 18] {
            (text((across(hour), bottom + 1.1), Anchor::Start, "quiet", &format!("{hour:02}:00")))
        }
    }
}

/// The shades with where they begin, in two lines: on a phone one is too short.
fn legend(scale: LogScale, y: f64) -> Markup {
    let across = SHADES / 2;
    let width = (ACROSS.1 - ACROSS.0) / across as f64;
    html! {
        @for shade in 0..SHADES {
            @let (x, y) = (ACROSS.0 + (shade % across) as f64 * width, y + (shade / across) as f64 * 1.3);
            (area(&format!("h{shade}"), (x, y - 0.6), (x + 3.0, y + 0.3)))
            (text((x + 3.8, y + 0.25), Anchor::Start, "quiet", &format!("from {}", units::duration(two_digits(scale.value(shade as f64))))))
        }
    }
}

/// Rounded to two digits: a shade is no finer than that.
fn two_digits(value: f64) -> f64 {
    let unit = 10f64.powf(value.log10().floor() - 1.0);
    (value / unit).round() * unit
}
