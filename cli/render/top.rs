//! The live view: targets, the round in progress, what its calls take, what stalls, when the next round is.

use longhaul_service::status::{Live, OperationNow, Status, Task};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Gauge, Paragraph, Row, Table, Wrap};

use longhaul_service::words::{moment, time};

use super::status::target_state;
use super::units;
use crate::commands::top::Scene;

/// A call in flight for so many seconds is a stall.
const STALL_SECONDS: f64 = 1.0;

/// Draws everything anew.
pub fn draw(frame: &mut Frame<'_>, scene: &Scene) {
    match &scene.status {
        Ok(status) => all(frame, status, scene.live.as_ref()),
        Err(error) => {
            frame.render_widget(Paragraph::new(error.as_str()).wrap(Wrap { trim: true }), frame.area())
        }
    }
}

fn all(frame: &mut Frame<'_>, status: &Status, live: Option<&Live>) {
    let problems = status.problems.len() as u16;
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
        Some(live) => in_progress(frame, live, round),
        None => frame.render_widget(between(status), round),
    }
    frame.render_widget(Line::from("q leaves").style(Style::new().add_modifier(Modifier::DIM)), foot);
}

fn heading(status: &Status) -> Paragraph<'_> {
    let mut lines: Vec<Line<'_>> = status
        .problems
        .iter()
        .map(|problem| Line::from(format!("{}: {}", problem.word, problem.text)).style(Color::Red))
        .collect();
    let rounds = &status.rounds;
    lines.push(Line::from(format!(
        "longhauld {}   rounds {} of {}, {} void, {} cut short, {} skipped   {}",
        status.version,
        rounds.ok,
        rounds.planned(),
        rounds.void,
        rounds.cut_short,
        rounds.skipped,
        time(status.now_us)
    )));
    Paragraph::new(lines).wrap(Wrap { trim: true })
}

fn target_table(status: &Status) -> Table<'_> {
    let rows = status.targets.iter().map(|target| {
        let (style, text) = target_state(target, status.now_us);
        let colour = match style.get_fg_color() {
            Some(anstyle::Color::Ansi(anstyle::AnsiColor::Green)) => Color::Green,
            Some(anstyle::Color::Ansi(anstyle::AnsiColor::Red)) => Color::Red,
            Some(anstyle::Color::Ansi(anstyle::AnsiColor::Yellow)) => Color::Yellow,
            _ => Color::Reset,
        };
        let cells = [
            target.name.to_string(),
            target.protocol.clone().unwrap_or_default(),
            text,
            units::bytes(target.bytes_per_day as f64),
        ];
        Row::new(cells).style(colour)
    });
    let widths =
        [Constraint::Length(16), Constraint::Length(12), Constraint::Fill(1), Constraint::Length(10)];
    let head = Row::new(["target", "reached by", "state", "24 hours"]).style(Modifier::BOLD);
    Table::new(rows, widths).header(head).block(Block::bordered().title(" targets "))
}

fn between(status: &Status) -> Paragraph<'_> {
    let next = status
        .next_us
        .map_or("no round is planned".to_owned(), |us| format!("next round {}", moment(us, status.now_us)));
    let last = status.last.as_ref().map_or(String::new(), |last| {
        let reason = last.reason.as_deref().unwrap_or_default();
        format!("last round {} ended {}: {} {reason}", last.number, time(last.ended_us), last.status.name())
    });
    Paragraph::new(Text::from(vec![Line::from(next), Line::from(last)]))
        .wrap(Wrap { trim: true })
        .block(Block::bordered().title(" between rounds "))
}

fn in_progress(frame: &mut Frame<'_>, live: &Live, area: Rect) {
    let [bar, task, operations] =
        Layout::vertical([Constraint::Length(3), Constraint::Length(2), Constraint::Min(3)]).areas(area);
    let (done, all) = live.runs;
    let gauge = Gauge::default()
        .block(Block::bordered().title(format!(" round {} ", live.round)))
        .ratio(f64::from(done) / f64::from(all.max(1)))
        .label(format!("{done} of {all} runs"));
    frame.render_widget(gauge, bar);
    let Some(current) = &live.task else { return };
    frame.render_widget(Paragraph::new(task_text(current)).wrap(Wrap { trim: true }), task);
    frame.render_widget(operation_table(&current.operations), operations);
}

fn task_text(task: &Task) -> Text<'static> {
    let workload = task.workload.as_deref().unwrap_or("preparation");
    let phase = task.phase.as_deref().map_or(String::new(), |phase| format!(", {phase}"));
    let progress = task.progress.as_ref().map_or(String::new(), |progress| {
        format!(", {} {} of {} files", progress.what, progress.files, progress.files_total)
    });
    let moved = format!(
        "read {}, written {}",
        units::bytes(task.bytes_read as f64),
        units::bytes(task.bytes_written as f64)
    );
    let first =
        format!("{}: {workload}{phase}{progress}, {}, {moved}", task.target, units::seconds(task.seconds));
    let stall =
        task.in_flight.as_ref().filter(|(_, seconds)| *seconds >= STALL_SECONDS).map(|(name, seconds)| {
            Line::from(format!("stalls: `{name}` has not returned for {}", units::seconds(*seconds)))
                .style(Color::Red)
        });
    let mut lines = vec![Line::from(first)];
    lines.extend(stall);
    Text::from(lines)
}

fn operation_table(operations: &[OperationNow]) -> Table<'_> {
    let time = |us: Option<f64>| us.map_or("–".to_owned(), |us| units::seconds(us / 1e6));
    let rows = operations.iter().map(|operation| {
        Row::new([
            operation.operation.clone(),
            operation.count.to_string(),
            operation.per_second.map_or("–".to_owned(), |rate| format!("{}/s", units::thousands(rate))),
            time(operation.p50_us),
            time(operation.p99_us),
            time(operation.max_us),
            operation.errors.to_string(),
        ])
    });
    let widths = [
        Constraint::Length(14),
        Constraint::Length(9),
        Constraint::Length(11),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Length(7),
    ];
    let head = Row::new(["operation", "count", "rate", "p50", "p99", "max", "errors"]).style(Modifier::BOLD);
    Table::new(rows, widths).header(head).block(Block::bordered().title(" this phase "))
}

#[cfg(test)]
pub(super) mod tests {
    use longhaul_service::status::{DatabaseStatus, State, TargetState, TargetStatus};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use longhaul_measure::model::Role;

    /// A status in which one target hangs.
    pub fn status() -> Status {
        Status {
            schema: 1,
            version: "1.2.3".into(),
            pid: 7,
            started_us: 0,
            now_us: 60_000_000,
            state: State::Measuring,
            problems: vec![],
            stalls: vec![],
            targets: vec![TargetStatus {
                probe: Default::default(),
                name: "smb".parse().unwrap(),
                path: "/m".into(),
                role: Role::Share,
                protocol: Some("SMB 3.1.1".into()),
                state: TargetState::Hung { operation: Some("write".into()), since_us: 0 },
                last_runs: None,
                bytes_per_day: 5_000_000,
                bytes_allowed: None,
            }],
            rounds: Default::default(),
            last: None,
            next_us: Some(120_000_000),
            slices: 4,
            design: None,
            database: DatabaseStatus { path: "/d".into(), bytes: Some(1) },
            config: None,
            log_level: "info".into(),
            telemetry: Default::default(),
        }
    }

    fn drawn(scene: &Scene) -> String {
        let mut terminal = Terminal::new(TestBackend::new(110, 30)).unwrap();
        terminal.draw(|frame| draw(frame, scene)).unwrap();
        let buffer = terminal.backend().buffer();
        let lines = buffer.content().chunks(110);
        lines.map(|line| line.iter().map(|cell| cell.symbol()).collect::<String>() + "\n").collect()
    }

    #[test]
    fn a_round_in_progress_shows_its_calls_and_what_stalls() {
        let operation = OperationNow {
            operation: "write".into(),
            count: 1234,
            errors: 1,
            per_second: Some(56.0),
            p50_us: Some(800.0),
            p99_us: None,
            max_us: Some(2_000_000.0),
        };
        let task = Task {
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
        let text = drawn(&Scene {
            status: Ok(status()),
            live: Some(Live { round: 9, runs: (2, 10), task: Some(task) }),
        });
        for part in [
            "round 9",
            "2 of 10 runs",
            "time-machine, burst",
            "800 µs",
            "stalls: `write`",
            "hung: `write`",
            "1234",
        ] {
            assert!(text.contains(part), "`{part}` is missing:\n{text}");
        }
    }

    #[test]
    fn between_rounds_the_next_one_is_named_and_a_service_that_is_gone_too() {
        assert!(drawn(&Scene { status: Ok(status()), live: None }).contains("in 60 s"));
        assert!(
            drawn(&Scene { status: Err("no longhaul service runs".into()), live: None })
                .contains("no longhaul")
        );
    }
}
