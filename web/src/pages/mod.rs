//! The pages: the same figures as in the terminal, drawn. Everything but what is live is readable without a script.

mod events;
mod frame;
mod happened;
mod journal;
mod latency;
mod live;
mod meant;
mod method;
mod overview;
mod runs;
mod slowest;
mod smoke;
mod targets;
mod task;
mod week;

pub use events::{Frames, stream};
pub use frame::{Place, Trouble, framed, nowhere, read, week_of};
pub use journal::journal;
pub use latency::{latency, latency_chart};
pub use live::Now;
pub use meant::{Asked as SmokeAsked, Meant};
pub use method::method;
pub use overview::overview;
pub use runs::{run, runs};
pub use smoke::{SmokeShown, numbers};
pub use targets::{order, targets};
pub use task::{task, task_chart, tasks};
pub use week::{badge, download, newest_week, week, week_chart};
