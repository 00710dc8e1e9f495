//! `longhaul status --watch`: a live view of the service.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use crate::arguments::GlobalArgs;
use crate::client::{Client, connect};
use crate::errors::UsageError;
use crate::exit;
use crate::render::watch::{WatchState, draw};

/// Interval at which the status of the service is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Shows the live view until `q` is pressed, then restores the terminal.
pub fn run(shared: &GlobalArgs) -> anyhow::Result<ExitCode> {
    let client = connect(shared)?;
    client.status()?;
    if !std::io::stdout().is_terminal() {
        return Err(UsageError(
            "--watch needs a terminal; `longhaul status` prints the same once".to_owned(),
        )
        .into());
    }
    let mut terminal = ratatui::try_init()?;
    let shown = run_event_loop(&mut terminal, &client);
    ratatui::restore();
    shown.map(|()| exit::OK)
}

fn run_event_loop(terminal: &mut ratatui::DefaultTerminal, client: &Client) -> anyhow::Result<()> {
    loop {
        let state = WatchState {
            status: client.status().map_err(|error| error.to_string()),
            live: client.live().unwrap_or_default(),
        };
        terminal.draw(|frame| draw(frame, &state))?;
        if event::poll(POLL_INTERVAL)? && is_quit(&event::read()?) {
            return Ok(());
        }
    }
}

fn is_quit(event: &Event) -> bool {
    let Event::Key(key) = event else { return false };
    let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind == KeyEventKind::Press && (is_interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc))
}
