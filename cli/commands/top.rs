//! `longhaul top`: a live view of the service.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use longhaul_service::status::{Live, Status};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use super::control::client;
use crate::arguments::Shared;
use crate::client::Client;
use crate::render::top::draw;
use crate::{Usage, exit};

/// How often the service is asked.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// What is shown.
pub struct Scene {
    /// The service; an error says why it does not answer.
    pub status: Result<Status, String>,
    /// The round in progress.
    pub live: Option<Live>,
}

/// Shows it until `q`. However it ends, the terminal is as it was.
pub fn run(shared: &Shared) -> anyhow::Result<ExitCode> {
    let client = client(shared)?;
    client.status()?;
    if !std::io::stdout().is_terminal() {
        return Err(Usage("top needs a terminal; `longhaul status` prints the same once".to_owned()).into());
    }
    let mut terminal = ratatui::try_init()?;
    let shown = show(&mut terminal, &client);
    ratatui::restore();
    shown.map(|()| exit::OK)
}

fn show(terminal: &mut ratatui::DefaultTerminal, client: &Client) -> anyhow::Result<()> {
    loop {
        let scene = Scene {
            status: client.status().map_err(|error| error.to_string()),
            live: client.live().unwrap_or_default(),
        };
        terminal.draw(|frame| draw(frame, &scene))?;
        if event::poll(BETWEEN_LOOKS)? && is_end(&event::read()?) {
            return Ok(());
        }
    }
}

fn is_end(event: &Event) -> bool {
    let Event::Key(key) = event else { return false };
    let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind == KeyEventKind::Press && (is_interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc))
}
