//! Tests of the procedures against the outputs of real tools. Those of systemctl were recorded with systemd 252;
//! those of launchctl are constructed from launchctl(1) and from outputs that users have published, because no Mac
//! was available.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use longhaul_launchd::{
    CommandRunner, Manager, Output, RunState, RunnerError, Service, ServicePlan, ServiceStatus, StepError,
    execute,
};
use longhaul_model::Hint;

/// The system's tools, with recorded outputs in order. The last output of a command is repeated.
struct Recorded {
    answers: RefCell<BTreeMap<String, VecDeque<Output>>>,
    commands: RefCell<Vec<String>>,
    paused: RefCell<Duration>,
}

impl Recorded {
    fn new(answers: &[(&str, &[Output])]) -> Self {
        let answers =
            answers.iter().map(|(command, message)| ((*command).to_owned(), message.to_vec().into()));
        Self {
            answers: RefCell::new(answers.collect()),
            commands: RefCell::default(),
            paused: RefCell::default(),
        }
    }
}

impl CommandRunner for Recorded {
    fn run(&self, program: &str, arguments: &[OsString], _: Duration) -> Result<Output, RunnerError> {
        let words = arguments.iter().map(|word| word.to_str().unwrap());
        let words: Vec<&str> = [program.rsplit('/').next().unwrap()].into_iter().chain(words).collect();
        let command = words.join(" ");
        self.commands.borrow_mut().push(command.clone());
        let mut answers = self.answers.borrow_mut();
        let answers =
            answers.get_mut(&command).unwrap_or_else(|| panic!("there is no recorded output of `{command}`"));
        let next = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        Ok(next.unwrap())
    }

    fn sleep(&self, time: Duration) {
        *self.paused.borrow_mut() += time;
    }
}

fn ok(out: &str) -> Output {
    Output { code: Some(0), stdout: out.to_owned(), stderr: String::new() }
}

fn fails(code: i32, err: &str) -> Output {
    Output { code: Some(code), stdout: String::new(), stderr: err.to_owned() }
}

/// A temporary folder for the files that are written.
struct Disk {
    folder: tempfile::TempDir,
}

impl Disk {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn service(&self, manager: Manager) -> Service {
        Service { definition_path: self.path("agents").join(manager.file_name()), user: 501 }
    }

    fn plan(&self, manager: Manager) -> ServicePlan {
        ServicePlan {
            service: self.service(manager),
            program: "/opt/homebrew/bin/longhauld".into(),
            config: self.path("config.toml"),
            database: self.path("longhaul.sqlite"),
            log_folder: self.path("logs"),
            environment: BTreeMap::new(),
        }
    }
}

mod launchd {
    use super::*;

    /// Output as in boxen/puppet-boxen#104, with the label, state and paths of longhaul.
    const RUNNING: &str = "gui/501/org.longhaul.agent = {
\tactive count = 1
\tpath = /Users/ada/Library/LaunchAgents/org.longhaul.agent.plist
\ttype = LaunchAgent
\tstate = running

\tprogram = /opt/homebrew/bin/longhauld
\targuments = {
\t\t/opt/homebrew/bin/longhauld
\t\tstate = spoof
\t\tpid = 1
\t}

\tdomain = gui/501 [100005]
\tminimum runtime = 30
\texit timeout = 30
\truns = 2
\tpid = 24784
\timmediate reason = inefficient
\tforks = 51
\tlast exit code = 1

\tendpoints = {
\t\t\"x\" = {
\t\t\tstate = not running
\t\t}
\t}
}
";
    const FAILED: &str = "gui/501/org.longhaul.agent = {
\tactive count = 0
\tstate = not running

\tlast exit code = 78: EX_CONFIG
}
";
    const NOT_FOUND: &str = "Could not find service \"org.longhaul.agent\" in domain for user gui: 501\n";

    const PRINT: &str = "launchctl print gui/501/org.longhaul.agent";
    const BOOTOUT: &str = "launchctl bootout gui/501/org.longhaul.agent";
    const ENABLE: &str = "launchctl enable gui/501/org.longhaul.agent";

    fn bootstrap(disk: &Disk) -> String {
        format!("launchctl bootstrap gui/501 {}", disk.service(Manager::Launchd).definition_path.display())
    }

    fn install(disk: &Disk, tools: &Recorded) -> Result<(), StepError> {
        let steps = Manager::Launchd.install(&disk.plan(Manager::Launchd)).unwrap();
        execute(&steps, tools, &mut |_| ())
    }

    #[test]
    fn update_waits_until_the_old_agent_is_unloaded() {
        let disk = Disk::new();
        let bootstrap = bootstrap(&disk);
        let prints = [ok(RUNNING), ok(RUNNING), fails(113, NOT_FOUND), ok(FAILED), ok(RUNNING)];
        let still = [fails(36, "Boot-out failed: 36: Operation now in progress\n")];
        let tools = Recorded::new(&[
            (BOOTOUT, &still),
            (PRINT, &prints),
            (ENABLE, &[ok("")]),
            (&bootstrap, &[ok("")]),
        ]);
        install(&disk, &tools).unwrap();
        let expected = [BOOTOUT, PRINT, PRINT, PRINT, ENABLE, &bootstrap, PRINT, PRINT];
        assert_eq!(*tools.commands.borrow(), expected);
        assert!(disk.path("logs").is_dir(), "launchd fails with code 5 if the log folder does not exist");
        assert!(disk.service(Manager::Launchd).definition_path.is_file());
    }

    #[test]
    fn plist_of_a_hanging_agent_is_not_replaced() {
        let disk = Disk::new();
        let tools = Recorded::new(&[(BOOTOUT, &[ok("")]), (PRINT, &[ok(RUNNING)])]);
        let message = install(&disk, &tools).unwrap_err().one_line();
        assert!(
            message.contains("still there (running, process 24784) after 40 s") && message.contains("server"),
            "{message}"
        );
        assert!(!disk.service(Manager::Launchd).definition_path.exists());
        assert!(*tools.paused.borrow() >= Duration::from_secs(40));
    }

    #[test]
    fn exit_codes_are_explained_with_advice() {
        for (code, message, part) in [
            (5, "Bootstrap failed: 5: Input/output error", "Login Items"),
            (37, "Bootstrap failed: 37: Operation already in progress", "ten seconds"),
            (119, "Bootstrap failed: 119: Service is disabled", "Switch longhaul on"),
            (
                125,
                "Bootstrap failed: 125: Domain does not support specified action",
                "logged in at the screen",
            ),
            (133, "Bootstrap failed: 133: Something new", "launchctl error 133"),
        ] {
            let disk = Disk::new();
            let gone = [fails(113, NOT_FOUND)];
            let tools = Recorded::new(&[
                (BOOTOUT, &[fails(3, "Boot-out failed: 3: No such process\n")]),
                (PRINT, &gone),
                (ENABLE, &[ok("")]),
                (&bootstrap(&disk), &[fails(code, message)]),
            ]);
            let error = install(&disk, &tools).unwrap_err().one_line();
            for part in [part, message, "/bin/launchctl bootstrap gui/501"] {
                assert!(error.contains(part), "`{part}` is not in: {error}");
            }
        }
    }

    #[test]
    fn exit_code_of_a_failing_agent_is_reported() {
        let disk = Disk::new();
        let prints = [fails(113, NOT_FOUND), ok(FAILED)];
        let tools = Recorded::new(&[
            (BOOTOUT, &[ok("")]),
            (PRINT, &prints),
            (ENABLE, &[ok("")]),
            (&bootstrap(&disk), &[ok("")]),
        ]);
        let message = install(&disk, &tools).unwrap_err().one_line();
        assert!(
            message.contains("last exit code 78: EX_CONFIG") && message.contains("open its log files"),
            "{message}"
        );
    }

    fn status(print: Output) -> Result<ServiceStatus, StepError> {
        let disk = Disk::new();
        Manager::Launchd.status(&disk.service(Manager::Launchd), &Recorded::new(&[(PRINT, &[print])]))
    }

    #[test]
    fn state_is_read_from_the_lines_of_the_agent_only() {
        let run_state = |print| status(print).unwrap().run_state;
        assert_eq!(run_state(ok(RUNNING)), RunState::Running { pid: Some(24784) });
        assert_eq!(run_state(ok(&RUNNING.replace('\t', "    "))), RunState::Running { pid: Some(24784) });
        let how = Some("last exit code 78: EX_CONFIG".to_owned());
        assert_eq!(run_state(ok(FAILED)), RunState::Stopped { reason: how });
        assert_eq!(run_state(fails(113, NOT_FOUND)), RunState::NotLoaded);
        let first_line = "nothing that is known".to_owned();
        assert_eq!(run_state(ok("nothing that is known\nor more\n")), RunState::Unknown { first_line });
    }

    #[test]
    fn missing_gui_session_is_explained() {
        let message = status(fails(125, "Domain does not support specified action")).unwrap_err().one_line();
        assert!(message.contains("over ssh alone"), "{message}");
    }

    #[test]
    fn start_stop_and_restart_run_the_needed_commands() {
        let service = Disk::new().service(Manager::Launchd);
        let commands = |steps: Vec<longhaul_launchd::Step>| steps.first().map(ToString::to_string);
        let stands = |activity| ServiceStatus { is_defined: true, run_state: activity };
        let (running, absent) = (stands(RunState::Running { pid: None }), stands(RunState::NotLoaded));
        let stopped = stands(RunState::Stopped { reason: None });
        let start = |status| commands(Manager::Launchd.start(&service, status));
        assert_eq!(start(&running), None);
        assert_eq!(start(&stopped).unwrap(), "run /bin/launchctl kickstart gui/501/org.longhaul.agent");
        assert_eq!(start(&absent).unwrap(), "run /bin/launchctl enable gui/501/org.longhaul.agent");
        let restart = commands(Manager::Launchd.restart(&service, &running)).unwrap();
        assert_eq!(restart, "run /bin/launchctl kickstart -k gui/501/org.longhaul.agent");
        let stop = commands(Manager::Launchd.stop(&service)).unwrap();
        assert_eq!(stop, "run /bin/launchctl bootout gui/501/org.longhaul.agent");
    }

    #[test]
    fn restart_waits_for_the_throttle_interval() {
        const AGAIN: &str = "gui/501/org.longhaul.agent = {\n\tstate = spawn scheduled\n}\n";
        let service = Disk::new().service(Manager::Launchd);
        let status = ServiceStatus { is_defined: true, run_state: RunState::Running { pid: None } };
        // Five polls per second, for the 30 s of ThrottleInterval.
        let prints: Vec<Output> = vec![ok(AGAIN); 150].into_iter().chain([ok(RUNNING)]).collect();
        let kickstart = "launchctl kickstart -k gui/501/org.longhaul.agent";
        let tools = Recorded::new(&[(kickstart, &[ok("")]), (PRINT, &prints)]);
        execute(&Manager::Launchd.restart(&service, &status), &tools, &mut |_| ()).unwrap();
        let never = Recorded::new(&[(kickstart, &[ok("")]), (PRINT, &[ok(AGAIN)])]);
        let message = execute(&Manager::Launchd.restart(&service, &status), &never, &mut |_| ()).unwrap_err();
        assert!(message.to_string().contains("not running (starting) after 35 s"), "{message}");
    }

    #[test]
    fn plist_is_removed_only_after_the_agent_is_unloaded() {
        let disk = Disk::new();
        let service = disk.service(Manager::Launchd);
        std::fs::create_dir(disk.path("agents")).unwrap();
        std::fs::write(&service.definition_path, "x").unwrap();
        let status = ServiceStatus { is_defined: true, run_state: RunState::Running { pid: None } };
        let steps = Manager::Launchd.remove(&service, Some(&status));
        let stuck = Recorded::new(&[(BOOTOUT, &[ok("")]), (PRINT, &[ok(RUNNING)])]);
        assert!(execute(&steps, &stuck, &mut |_| ()).is_err() && service.definition_path.exists());
        let tools = Recorded::new(&[(BOOTOUT, &[ok("")]), (PRINT, &[fails(113, NOT_FOUND)])]);
        execute(&steps, &tools, &mut |_| ()).unwrap();
        assert!(!service.definition_path.exists());
    }
}

mod systemd {
    use super::*;

    const SHOW: &str = "systemctl --user show longhaul.service --property=LoadState,ActiveState,MainPID,Result,ExecMainStatus";
    const RUNNING: &str =
        "MainPID=71\nResult=success\nExecMainStatus=0\nLoadState=loaded\nActiveState=active\n";
    const STOPPED: &str =
        "MainPID=0\nResult=success\nExecMainStatus=0\nLoadState=loaded\nActiveState=inactive\n";
    const AGAIN: &str =
        "MainPID=0\nResult=exit-code\nExecMainStatus=7\nLoadState=loaded\nActiveState=activating\n";
    const FAILED: &str =
        "MainPID=0\nResult=exit-code\nExecMainStatus=7\nLoadState=loaded\nActiveState=failed\n";
    const ABSENT: &str =
        "MainPID=0\nResult=success\nExecMainStatus=0\nLoadState=not-found\nActiveState=inactive\n";
    const NO_BUS: &str = "Failed to connect to bus: No such file or directory\n";

    fn status(show: Output) -> Result<ServiceStatus, StepError> {
        let disk = Disk::new();
        Manager::Systemd.status(&disk.service(Manager::Systemd), &Recorded::new(&[(SHOW, &[show])]))
    }

    #[test]
    fn state_is_read_from_the_unit_properties() {
        let run_state = |show| status(ok(show)).unwrap().run_state;
        assert_eq!(run_state(RUNNING), RunState::Running { pid: Some(71) });
        assert_eq!(run_state(STOPPED), RunState::Stopped { reason: None });
        assert_eq!(run_state(AGAIN), RunState::Starting { after: None });
        assert_eq!(
            run_state(FAILED),
            RunState::Stopped { reason: Some("it ended with exit code 7".to_owned()) }
        );
        let watchdog = FAILED.replace("exit-code", "watchdog");
        assert_eq!(
            run_state(&watchdog),
            RunState::Stopped { reason: Some("systemd says `watchdog`".to_owned()) }
        );
        assert_eq!(run_state(ABSENT), RunState::NotLoaded);
    }

    #[test]
    fn missing_systemd_session_is_explained() {
        let message = status(fails(1, NO_BUS)).unwrap_err().one_line();
        assert!(message.contains("loginctl enable-linger") && message.contains(NO_BUS.trim()), "{message}");
    }

    #[test]
    fn systemctl_errors_are_explained_with_advice() {
        for (message, part) in [
            (
                "System has not been booted with systemd as init system (PID 1). Can't operate.",
                "longhauld --config",
            ),
            ("Failed to enable unit: Unit file longhaul.service does not exist.", "XDG_CONFIG_HOME"),
            ("Failed to start longhaul.service: Unit longhaul.service is masked.", "unmask"),
            (
                "Failed to start longhaul.service: Unit longhaul.service not found.",
                "longhaul service install",
            ),
            (
                "Failed to stop longhaul.service: Unit longhaul.service not loaded.",
                "longhaul service install",
            ),
            (
                "Job for longhaul.service failed because the control process exited with error code.\nSee ...",
                "longhaul service logs",
            ),
            ("Failed to do something new", "systemctl --user status"),
        ] {
            let disk = Disk::new();
            let tools = Recorded::new(&[("systemctl --user stop longhaul.service", &[fails(1, message)])]);
            let steps = Manager::Systemd.stop(&disk.service(Manager::Systemd));
            let error = execute(&steps, &tools, &mut |_| ()).unwrap_err().one_line();
            assert!(error.contains(part) && error.contains(message), "`{part}` is not in: {error}");
        }
    }

    #[test]
    fn files_are_removed_even_without_systemd() {
        let disk = Disk::new();
        let service = disk.service(Manager::Systemd);
        let wanted = disk.path("agents/default.target.wants/longhaul.service");
        std::fs::create_dir_all(wanted.parent().unwrap()).unwrap();
        [&service.definition_path, &wanted].iter().for_each(|path| std::fs::write(path, "x").unwrap());
        let steps = Manager::Systemd.remove(&service, None);
        execute(&steps, &Recorded::new(&[]), &mut |_| ()).unwrap();
        assert!(!service.definition_path.exists() && !wanted.exists());
    }

    #[test]
    fn removal_resets_the_failed_state() {
        let service = Disk::new().service(Manager::Systemd);
        let lines = |status: &ServiceStatus| {
            let steps = Manager::Systemd.remove(&service, Some(status));
            steps.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        let failed =
            ServiceStatus { is_defined: true, run_state: RunState::Stopped { reason: Some("x".to_owned()) } };
        assert!(lines(&failed).ends_with("reset-failed longhaul.service"));
        let absent = ServiceStatus { is_defined: false, run_state: RunState::NotLoaded };
        assert!(!lines(&absent).contains("disable"), "an absent unit is not stopped");
        let deleted = ServiceStatus { is_defined: false, run_state: RunState::Running { pid: None } };
        assert!(lines(&deleted).contains("stop longhaul") && !lines(&deleted).contains("disable"));
        let unknown = ServiceStatus { is_defined: true, run_state: RunState::NotLoaded };
        assert!(lines(&unknown).contains("disable longhaul") && !lines(&unknown).contains("stop longhaul"));
    }

    #[test]
    fn lingering_is_read_from_loginctl() {
        let lingers = |answer| {
            let service = Disk::new().service(Manager::Systemd);
            let tools = Recorded::new(&[("loginctl show-user 501 --property=Linger", &[answer])]);
            Manager::Systemd.survives_logout(&service, &tools)
        };
        assert_eq!(lingers(ok("Linger=yes\n")), Some(true));
        assert_eq!(lingers(ok("Linger=no\n")), Some(false));
        assert_eq!(lingers(fails(1, NO_BUS)), None);
        assert_eq!(
            lingers(fails(1, "Failed to get user: User ID 501 is not logged in or lingering\n")),
            None
        );
    }
}
