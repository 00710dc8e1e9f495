//! The page as browsers, programs and enemies meet it: a real service's face on a real port, over made-up weeks.

#![allow(clippy::unwrap_used)]

mod browser;
mod client;
mod crowd;
mod hostile;
mod interface;
mod live;
mod pages;
mod status;
mod world;
