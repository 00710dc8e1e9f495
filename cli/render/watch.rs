//! The live view of `status --watch`: targets, the round in progress, its operations and stalls, and the next
//! round.

use jiff::tz::TimeZone;
use longhaul_service::status::{LiveStatus, Status};
use longhaul_view::render::terminal;
use longhaul_view::screens::{live, status};
use longhaul_view::text::Style as Emphasis;
use longhaul_view::{Document, Tone, time};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Gauge, Paragraph, Wrap};

/// The state that is drawn.
pub struct WatchState {
    /// Status of the service, or the reason why it does not respond.
    pub status: Result<Status, String>,
    /// The round in progress; `None` if there is none.
    pub live: Option<LiveStatus>,
}

/// Draws the whole screen.
pub fn draw(frame: &mut Frame<'_>, state: &WatchState) {
    match &state.status {
        Ok(status) => draw_status(frame, status, state.live.as_ref()),
        Err(error) => {
            frame.render_widget(Paragraph::new(error.as_str()).wrap(Wrap { trim: true }), frame.area())
        }
    }
}

fn draw_status(frame: &mut Frame<'_>, status: &Status, live: Option<&LiveStatus>) {
    let problems = (status.problems.len() + status.stalls.len()) as u16;
    let rows = [
        Constraint::Length(1 + problems.min(4) * 2),
        Constraint::Length(status.targets.len().min(12) as u16 + 3),
        Constraint::Min(8),
        Constraint::Length(1),
    ];
    let [head, targets, round, foot] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(heading(status), head);
    frame.render_widget(target_table(status), targets);
    match live {
        Some(live) => round_panel(frame, live, round),
        None => frame.render_widget(idle_panel(status), round),
    }
    frame.render_widget(Line::from("q: quit").style(Style::new().add_modifier(Modifier::DIM)), foot);
}

fn heading(status: &Status) -> Paragraph<'static> {
    let zone = TimeZone::system();
    let mut lines: Vec<Line<'_>> = status::all_problems(status, &zone).iter().map(line).collect();
    lines.push(Line::from(format!(
        "longhauld {}; rounds: {}; {}",
        status.version,
        status::rounds(status),
        time::timestamp(status.now_us, &zone)
    )));
    Paragraph::new(lines).wrap(Wrap { trim: true })
}

fn target_table(status: &Status) -> Paragraph<'static> {
    let mut document = Document::new();
    document.table(status::targets(status, &TimeZone::system()));
    paragraph(&document).block(Block::bordered().title(" targets "))
}

fn idle_panel(status: &Status) -> Paragraph<'static> {
    paragraph(&live::idle(status, &TimeZone::system()))
        .wrap(Wrap { trim: true })
        .block(Block::bordered().title(" between rounds "))
}

fn round_panel(frame: &mut Frame<'_>, round: &LiveStatus, area: Rect) {
    let [bar, run] = Layout::vertical([Constraint::Length(3), Constraint::Min(5)]).areas(area);
    let (done, all) = round.runs;
    let gauge = Gauge::default()
        .block(Block::bordered())
        .ratio(f64::from(done) / f64::from(all.max(1)))
        .label(live::progress(round).content());
    frame.render_widget(gauge, bar);
    frame.render_widget(paragraph(&live::run(round)), run);
}

fn paragraph(document: &Document) -> Paragraph<'static> {
    Paragraph::new(terminal::lines(document).iter().map(line).collect::<Vec<_>>())
}

fn line(text: &longhaul_view::Text) -> Line<'static> {
    let span = |span: &longhaul_view::text::Span| {
        let text = terminal::visible(&span.text);
        match &span.style {
            Emphasis::Plain | Emphasis::Target | Emphasis::Link { .. } => Span::raw(text),
            Emphasis::Code => Span::raw(format!("`{text}`")),
            Emphasis::Strong => Span::styled(text, Modifier::BOLD),
            Emphasis::Toned(tone) => Span::styled(text, colour(*tone)),
        }
    };
    text.0.iter().map(span).collect()
}

const fn colour(tone: Tone) -> Color {
    match tone {
        Tone::Good => Color::Green,
        Tone::Neutral => Color::Cyan,
        Tone::Warning => Color::Yellow,
        Tone::Bad => Color::Red,
    }
}

#[cfg(test)]
mod tests {
    use longhaul_service::status::{
        DatabaseStatus, LiveOperation, LiveRunStatus, State, TargetState, TargetStatus,
    };
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use longhaul_model::{Role, Timestamp};

    /// Returns a status in which one target hangs.
    fn status() -> Status {
        Status {
            schema: 1,
            version: "1.2.3".into(),
            pid: 7,
            started_us: Timestamp::UNIX_EPOCH,
            now_us: Timestamp::from_us(60_000_000),
            state: State::Measuring,
            problems: vec![],
            stalls: vec![],
            targets: vec![TargetStatus {
                probe: Default::default(),
                name: "smb".parse().unwrap(),
                path: "/m".into(),
                role: Role::Share,
                protocol: Some("SMB 3.1.1".into()),
                state: TargetState::Hung { operation: Some("write".into()), since_us: Timestamp::UNIX_EPOCH },
                last_runs: None,
                failed_tasks: vec![],
                bytes_last_24h: 5_000_000,
                bytes_limit: None,
            }],
            rounds: Default::default(),
            last_round: None,
            next_round_us: Some(Timestamp::from_us(120_000_000)),
            slices: 4,
            design: None,
            database: DatabaseStatus { path: "/d".into(), bytes: Some(1) },
            config: None,
            log_level: "info".into(),
            telemetry: Default::default(),
            notify: Default::default(),
            fleet_export: None,
        }
    }

    fn drawn(state: &WatchState) -> String {
        let mut terminal = Terminal::new(TestBackend::new(110, 30)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        let buffer = terminal.backend().buffer();
        let lines = buffer.content().chunks(110);
        lines.map(|line| line.iter().map(|cell| cell.symbol()).collect::<String>() + "\n").collect()
    }

    #[test]
    fn round_in_progress_shows_operations_and_stalls() {
        let operation = LiveOperation {
            operation: "write".into(),
            count: 1234,
            errors: 1,
            per_second: Some(56.0),
            p50_us: Some(800.0),
            p99_us: None,
            max_us: Some(2_000_000.0),
        };
        let task = LiveRunStatus {
            target: "smb".parse().unwrap(),
            workload: Some("time-machine".into()),
            phase: Some("burst".into()),
            progress: None,
            seconds: 12.0,
            in_flight: Some(("write".into(), 12.0)),
            operations: vec![operation],
            bytes_read: 0,
            bytes_written: 3_000_000,
        };
        let text = drawn(&WatchState {
            status: Ok(status()),
            live: Some(LiveStatus { round: 9, runs: (2, 10), run: Some(task) }),
        });
        for part in [
            "Round 9: 2 of 10 runs done.",
            "time-machine, phase burst",
            "800 µs",
            "Waiting: `write` has not returned for 12 s.",
            "hung: `write`",
            "1234",
        ] {
            assert!(text.contains(part), "`{part}` is missing:\n{text}");
        }
    }

    #[test]
    fn idle_view_shows_next_round_or_missing_service() {
        assert!(drawn(&WatchState { status: Ok(status()), live: None }).contains("in 1 min"));
        assert!(
            drawn(&WatchState { status: Err("no longhaul service runs".into()), live: None })
                .contains("no longhaul")
        );
    }
}
