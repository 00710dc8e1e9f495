//! `longhaul status --watch`: a live view of the service.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::terminal::{self, Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::terminal::{BeginSynchronizedUpdate, EndSynchronizedUpdate};
use crossterm::{execute, queue};
use jiff::tz::TimeZone;
use longhaul_view::Document;
use longhaul_view::render::terminal::first_rows;
use longhaul_view::screens::live;

use crate::arguments::GlobalArgs;
use crate::client::{Client, connect};
use crate::errors::UsageError;
use crate::exit;

/// Interval at which the status of the service is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Shows the live view until `q` is pressed, then restores the terminal.
pub fn run(shared: &GlobalArgs) -> anyhow::Result<ExitCode> {
    let client = connect(shared)?;
    client.status()?;
    if !io::stdout().is_terminal() {
        return Err(UsageError(
            "--watch needs a terminal; `longhaul status` prints the same once".to_owned(),
        )
        .into());
    }
    let screens = poll_service(client, shared.clone());
    let mut shown = screens.recv()?;
    let _screen = FullScreen::enter()?;
    loop {
        shown = screens.try_recv().unwrap_or(shown);
        draw(&shown)?;
        if event::poll(POLL_INTERVAL)? && is_quit(&event::read()?) {
            return Ok(exit::OK);
        }
    }
}

/// Asks the service in a thread, because keys must be heard while it does not respond. Each screen waits until it is taken.
fn poll_service(mut client: Client, shared: GlobalArgs) -> Receiver<Document> {
    let (sender, screens) = sync_channel(0);
    thread::spawn(move || {
        while sender.send(screen(&mut client, &shared)).is_ok() {
            thread::sleep(POLL_INTERVAL);
        }
    });
    screens
}

/// The terminal without its history and cursor, and with each key as it is pressed, until the value is dropped.
struct FullScreen;

impl FullScreen {
    fn enter() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let screen = Self;
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(screen)
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        // Ignored: a terminal that is gone cannot be restored.
        let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
        let _ = terminal::disable_raw_mode();
    }
}

/// Returns what the service does, or the reason why it does not respond. After a failure, the next call asks the service that runs
/// then: a restarted service has another port and token.
fn screen(client: &mut Client, shared: &GlobalArgs) -> Document {
    let status = match client.status() {
        Ok(status) => status,
        Err(error) => {
            if let Ok(restarted) = connect(shared) {
                *client = restarted;
            }
            let mut document = Document::new();
            document.warning(error.to_string());
            return document;
        }
    };
    live::watch(&status, client.live().unwrap_or_default().as_ref(), &TimeZone::system())
}

fn draw(document: &Document) -> io::Result<()> {
    let (columns, rows) = terminal::size()?;
    let shown = first_rows(document, columns.into(), usize::from(rows).saturating_sub(1));
    // Shown at once, so that it does not flicker.
    queue!(io::stdout(), BeginSynchronizedUpdate, MoveTo(0, 0), Clear(ClearType::FromCursorDown))?;
    // In this mode a line end does not return to the first column.
    crate::output::print!("{}q: quit", shown.replace('\n', "\r\n"));
    execute!(io::stdout(), EndSynchronizedUpdate)
}

fn is_quit(event: &Event) -> bool {
    let Event::Key(key) = event else { return false };
    let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind == KeyEventKind::Press && (is_interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc))
}
