//! What longhaul makes of published answers of launchctl: one row of the index for each (fixtures/launchctl/README.md).

#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_launchd::{
    Activity, Manager, Output, Runner, RunnerError, Service, ServicePlan, Standing, Step, StepError, System,
    perform,
};

/// One row of the index.
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
        Output { code: Some(self.code), out, err }
    }
}

/// Answers one subcommand with a fixture. Every other one succeeds, and `print` finds no agent.
struct Answering<'a> {
    subcommand: &'a str,
    output: Output,
}

impl Runner for Answering<'_> {
    fn run(&self, _: &str, arguments: &[OsString], _: Duration) -> Result<Output, RunnerError> {
        let silent = |code| Output { code: Some(code), out: String::new(), err: String::new() };
        Ok(match arguments[0].to_str().unwrap() {
            asked if asked == self.subcommand => self.output.clone(),
            "print" => silent(113),
            _ => silent(0),
        })
    }

    fn pause(&self, _: Duration) {}
}

/// The steps in which the subcommand is run.
fn steps(subcommand: &str, folder: &Path) -> Vec<Step> {
    let service = Service { definition: folder.join("org.longhaul.agent.plist"), user: 501 };
    let plan = ServicePlan {
        service: service.clone(),
        program: "/opt/homebrew/bin/longhauld".into(),
        config: folder.join("config.toml"),
        database: folder.join("longhaul.sqlite"),
        logs: folder.join("logs"),
        environment: Default::default(),
    };
    let stopped = Standing { defined: true, activity: Activity::Stopped { how: None } };
    match subcommand {
        "bootstrap" => Manager::Launchd.install(&plan).unwrap(),
        "bootout" => Manager::Launchd.stop(&service),
        "kickstart" => Manager::Launchd.start(&service, &stopped),
        other => panic!("no steps run `launchctl {other}`"),
    }
}

/// The line that stands in the index: the activity, `fine`, or what a refusal is said to mean.
fn result(fixture: &Fixture) -> String {
    let folder = tempfile::tempdir().unwrap();
    let runner = Answering { subcommand: &fixture.subcommand, output: fixture.output() };
    let refused = |error: StepError| match error {
        StepError::Failed { meaning, .. } => format!("refused: {meaning}"),
        other => panic!("{}: {other}", fixture.file),
    };
    if fixture.subcommand == "print" {
        let service = Service { definition: folder.path().join("org.longhaul.agent.plist"), user: 501 };
        let standing = Manager::Launchd.standing(&service, &runner);
        return standing.map_or_else(refused, |standing| standing.activity.to_string());
    }
    let done = perform(&steps(&fixture.subcommand, folder.path()), &runner, &mut |_| ());
    done.map_or_else(refused, |()| "fine".to_owned())
}

#[test]
fn each_published_answer_means_what_the_index_says() {
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
fn the_index_names_every_file_once() {
    let mut named: Vec<String> = index().into_iter().map(|fixture| fixture.file).collect();
    let files =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<String> = files.filter(|name| name.ends_with(".txt")).collect();
    named.sort();
    files.sort();
    assert_eq!(named, files);
}

/// The real runner, with programs that are found below a folder of scripts.
struct Below(tempfile::TempDir);

impl Below {
    /// Puts a script in the place of launchctl. It is written by another process: as long as this one had it open for
    /// writing, a child that another test starts would have too, and then it cannot be run (execve(2), ETXTBSY).
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

    fn standing(&self) -> Result<Standing, StepError> {
        let service = Service { definition: self.0.path().join("org.longhaul.agent.plist"), user: 501 };
        Manager::Launchd.standing(&service, self)
    }
}

impl Runner for Below {
    fn run(&self, program: &str, arguments: &[OsString], limit: Duration) -> Result<Output, RunnerError> {
        let program = self.0.path().join(program.trim_start_matches('/'));
        System.run(program.to_str().unwrap(), arguments, limit.min(Duration::from_secs(20)))
    }

    fn pause(&self, _: Duration) {}
}

#[test]
fn a_launchctl_that_exits_112_says_that_nobody_is_logged_in() {
    let tool = Below::launchctl(
        "echo 'Bad request.' >&2\necho 'Could not find domain for user gui: 501' >&2\nexit 112",
    );
    let said = tool.standing().unwrap_err().to_string();
    assert!(said.contains("(exit code 112)") && said.contains("nobody is logged in at the screen"), "{said}");
}

#[test]
fn a_launchctl_that_writes_garbage_is_a_state_with_its_first_line() {
    let tool = Below::launchctl(r"printf '\377\376 what is this\nmore\n'");
    let activity = tool.standing().unwrap().activity.to_string();
    assert!(
        activity.starts_with("not known: launchctl printed") && activity.contains("what is this"),
        "{activity}"
    );
}

#[test]
fn a_launchctl_that_writes_without_end_is_cut_off() {
    let said = Below::launchctl("exec yes 'state = running'").standing().unwrap_err();
    let StepError::Failed { how, .. } = said else { panic!("{said}") };
    assert_eq!(how, "ended by a signal", "for nobody reads on");
}
