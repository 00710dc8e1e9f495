//! Tests of the parsers with published outputs of launchctl; each row of the index is one test case
//! (fixtures/launchctl/README.md).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_launchd::{
    CommandRunner, Manager, Output, RunState, RunnerError, Service, ServicePlan, ServiceStatus, Step,
    StepError, SystemRunner, execute,
};
use longhaul_model::Hint;

/// One row of the index: a published output and its expected interpretation.
struct Fixture {
    file: String,
    subcommand: String,
    code: i32,
    expected: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/launchctl")
}

fn index() -> Vec<Fixture> {
    let text = std::fs::read_to_string(folder().join("index.tsv")).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [file, subcommand, code, _macos, source, expected] = cells[..] else {
            panic!("six cells, not {}: {line}", cells.len())
        };
        assert!(!source.is_empty(), "{file} has no source");
        Fixture {
            file: file.to_owned(),
            subcommand: subcommand.to_owned(),
            code: code.parse().unwrap(),
            expected: expected.to_owned(),
        }
    };
    text.lines().skip(1).map(row).collect()
}

impl Fixture {
    fn output(&self) -> Output {
        let text = std::fs::read_to_string(folder().join(&self.file)).unwrap();
        let (out, err) = if self.code == 0 { (text, String::new()) } else { (String::new(), text) };
        Output { code: Some(self.code), stdout: out, stderr: err }
    }
}

/// Responds to one subcommand with a fixture. All other subcommands succeed, except that `print` finds no agent.
struct Answering<'a> {
    subcommand: &'a str,
    output: Output,
}

impl CommandRunner for Answering<'_> {
    fn run(&self, _: &str, arguments: &[OsString], _: Duration) -> Result<Output, RunnerError> {
        let silent = |code| Output { code: Some(code), stdout: String::new(), stderr: String::new() };
        Ok(match arguments[0].to_str().unwrap() {
            subcommand if subcommand == self.subcommand => self.output.clone(),
            "print" => silent(113),
            _ => silent(0),
        })
    }

    fn sleep(&self, _: Duration) {}
}

/// Returns steps that run the subcommand.
fn steps(subcommand: &str, folder: &Path) -> Vec<Step> {
    let service = Service { definition_path: folder.join("org.longhaul.agent.plist"), user: 501 };
    let plan = ServicePlan {
        service: service.clone(),
        program: "/opt/homebrew/bin/longhauld".into(),
        config: folder.join("config.toml"),
        database: folder.join("longhaul.sqlite"),
        log_folder: folder.join("logs"),
        environment: Default::default(),
    };
    let stopped = ServiceStatus { is_defined: true, run_state: RunState::Stopped { reason: None } };
    match subcommand {
        "bootstrap" => Manager::Launchd.install(&plan).unwrap(),
        "bootout" => Manager::Launchd.stop(&service),
        "kickstart" => Manager::Launchd.start(&service, &stopped),
        other => panic!("no steps run `launchctl {other}`"),
    }
}

/// Returns the result as the index has it: the run state, `fine`, or the advice for a refusal.
fn result(fixture: &Fixture) -> String {
    let folder = tempfile::tempdir().unwrap();
    let runner = Answering { subcommand: &fixture.subcommand, output: fixture.output() };
    let refused = |error: StepError| match error {
        StepError::Failed { meaning, .. } => format!("refused: {meaning}"),
        other => panic!("{}: {other}", fixture.file),
    };
    if fixture.subcommand == "print" {
        let service = Service { definition_path: folder.path().join("org.longhaul.agent.plist"), user: 501 };
        let status = Manager::Launchd.status(&service, &runner);
        return status.map_or_else(refused, |status| status.run_state.to_string());
    }
    let done = execute(&steps(&fixture.subcommand, folder.path()), &runner, &mut |_| ());
    done.map_or_else(refused, |()| "fine".to_owned())
}

#[test]
fn published_outputs_are_interpreted_as_expected() {
    let mut wrong = vec![];
    for fixture in index() {
        let result = result(&fixture);
        let is_right = match fixture.expected.strip_prefix("refused: ") {
            Some(_) => result.starts_with(&fixture.expected),
            None => result == fixture.expected,
        };
        if !is_right {
            wrong.push(format!("{}:\n  expected {}\n  found    {result}", fixture.file, fixture.expected));
        }
    }
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), index().len(), wrong.join("\n"));
}

#[test]
fn index_lists_every_fixture_once() {
    let mut named: Vec<String> = index().into_iter().map(|fixture| fixture.file).collect();
    let files =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<String> = files.filter(|name| name.ends_with(".txt")).collect();
    named.sort();
    files.sort();
    assert_eq!(named, files);
}

fn status_of(print: Output) -> ServiceStatus {
    let service = Service { definition_path: "/nonexistent/org.longhaul.agent.plist".into(), user: 501 };
    Manager::Launchd.status(&service, &Answering { subcommand: "print", output: print }).unwrap()
}

#[test]
fn agent_that_launchd_cannot_start_has_advice() {
    let advice = |file: &str| {
        let fixture = index().into_iter().find(|fixture| fixture.file == file).unwrap();
        status_of(fixture.output()).run_state.advice()
    };
    for file in ["print-ex-config.txt", "print-codesigning.txt"] {
        assert!(advice(file).unwrap().contains("`longhaul service install`"), "{file}");
    }
    for file in ["print-crash-loop.txt", "print-never-exited.txt", "print-ventura.txt"] {
        assert_eq!(advice(file), None, "{file}");
    }
}

#[test]
fn failed_start_is_shown_with_any_exit_code() {
    for (code, expected) in [
        ("1", "starting again, after last exit code 1 (spawn failed)"),
        ("(never exited)", "starting again, after a failed start (spawn failed)"),
    ] {
        let exit = format!("\tlast exit code = {code}");
        let lines = ["agent = {", "\tstate = spawn scheduled", &exit, "\tjob state = spawn failed", "}"];
        let print = Output { code: Some(0), stdout: lines.join("\n"), stderr: String::new() };
        let run_state = status_of(print).run_state;
        assert_eq!(run_state.to_string(), expected);
        assert!(run_state.advice().is_some(), "{code}");
    }
}

/// Runs programs from a folder of scripts instead of the system's folders.
struct Below(tempfile::TempDir);

impl Below {
    /// Creates a script in place of launchctl. Another process writes it: if this process had the file open for
    /// writing, a child that a concurrent test starts would inherit the descriptor, and executing the script would
    /// fail with ETXTBSY (execve(2)).
    fn launchctl(lines: &str) -> Self {
        use std::io::Write;
        use std::process::{Command, Stdio};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bin/launchctl");
        let mut writer = Command::new("/bin/sh")
            .args(["-c", "mkdir -p \"$(dirname \"$1\")\" && cat >\"$1\" && chmod 755 \"$1\"", "sh"])
            .arg(path)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        write!(writer.stdin.take().unwrap(), "#!/bin/sh\n{lines}\n").unwrap();
        assert!(writer.wait().unwrap().success());
        Self(folder)
    }

    fn status(&self) -> Result<ServiceStatus, StepError> {
        let service = Service { definition_path: self.0.path().join("org.longhaul.agent.plist"), user: 501 };
        Manager::Launchd.status(&service, self)
    }
}

impl CommandRunner for Below {
    fn run(&self, program: &str, arguments: &[OsString], limit: Duration) -> Result<Output, RunnerError> {
        let program = self.0.path().join(program.trim_start_matches('/'));
        SystemRunner.run(program.to_str().unwrap(), arguments, limit.min(Duration::from_secs(20)))
    }

    fn sleep(&self, _: Duration) {}
}

#[test]
fn exit_code_112_means_no_gui_session() {
    let tool = Below::launchctl(
        "echo 'Bad request.' >&2\necho 'Could not find domain for user gui: 501' >&2\nexit 112",
    );
    let message = tool.status().unwrap_err().one_line();
    assert!(
        message.contains("(exit code 112)") && message.contains("no one is logged in at the screen"),
        "{message}"
    );
}

#[test]
fn garbage_output_is_an_unknown_state() {
    let tool = Below::launchctl(r"printf '\377\376 what is this\nmore\n'");
    let activity = tool.status().unwrap().run_state.to_string();
    assert!(
        activity.starts_with("not known: launchctl printed") && activity.contains("what is this"),
        "{activity}"
    );
}

#[test]
fn endless_output_is_cut_off() {
    let message = Below::launchctl("exec yes 'state = running'").status().unwrap_err();
    let StepError::Failed { how, .. } = message else { panic!("{message}") };
    assert_eq!(how, "ended by a signal", "the pipe is closed after the limit");
}
