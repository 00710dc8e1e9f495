//! The procedures against what the real tools say. The answers of systemctl were recorded from systemd 252; those of
//! launchctl are constructed from launchctl(1) and from printouts that people have published, as there was no Mac.

#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use longhaul_launchd::{
    Activity, Manager, Output, Runner, RunnerError, Service, ServicePlan, Standing, StepError, perform,
};

/// The system's tools, with their answers in order; the last answer of a command is its answer from then on.
struct Recorded {
    answers: RefCell<BTreeMap<String, VecDeque<Output>>>,
    asked: RefCell<Vec<String>>,
    paused: RefCell<Duration>,
}

impl Recorded {
    fn new(answers: &[(&str, &[Output])]) -> Self {
        let answers = answers.iter().map(|(command, said)| ((*command).to_owned(), said.to_vec().into()));
        Self {
            answers: RefCell::new(answers.collect()),
            asked: RefCell::default(),
            paused: RefCell::default(),
        }
    }
}

impl Runner for Recorded {
    fn run(&self, program: &str, arguments: &[OsString], _: Duration) -> Result<Output, RunnerError> {
        let words = arguments.iter().map(|word| word.to_str().unwrap());
        let words: Vec<&str> = [program.rsplit('/').next().unwrap()].into_iter().chain(words).collect();
        let command = words.join(" ");
        self.asked.borrow_mut().push(command.clone());
        let mut answers = self.answers.borrow_mut();
        let answers = answers.get_mut(&command).unwrap_or_else(|| panic!("nobody said how `{command}` goes"));
        let next = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        Ok(next.unwrap())
    }

    fn pause(&self, time: Duration) {
        *self.paused.borrow_mut() += time;
    }
}

fn ok(out: &str) -> Output {
    Output { code: Some(0), out: out.to_owned(), err: String::new() }
}

fn fails(code: i32, err: &str) -> Output {
    Output { code: Some(code), out: String::new(), err: err.to_owned() }
}

/// A place on the disk for what is written.
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
        Service { definition: self.path("agents").join(manager.file_name()), user: 501 }
    }

    fn plan(&self, manager: Manager) -> ServicePlan {
        ServicePlan {
            service: self.service(manager),
            program: "/opt/homebrew/bin/longhauld".into(),
            config: self.path("config.toml"),
            database: self.path("longhaul.sqlite"),
            logs: self.path("logs"),
            environment: BTreeMap::new(),
        }
    }
}

mod launchd {
    use super::*;

    /// As in boxen/puppet-boxen#104, with the label, state and paths of ours.
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
        format!("launchctl bootstrap gui/501 {}", disk.service(Manager::Launchd).definition.display())
    }

    fn install(disk: &Disk, tools: &Recorded) -> Result<(), StepError> {
        let steps = Manager::Launchd.install(&disk.plan(Manager::Launchd)).unwrap();
        perform(&steps, tools, &mut |_| ())
    }

    #[test]
    fn an_update_waits_until_the_old_agent_is_gone_before_the_new_one_is_loaded() {
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
        let asked = [BOOTOUT, PRINT, PRINT, PRINT, ENABLE, &bootstrap, PRINT, PRINT];
        assert_eq!(*tools.asked.borrow(), asked);
        assert!(
            disk.path("logs").is_dir(),
            "launchd makes no folder for its logs, and fails with 5 without one"
        );
        assert!(disk.service(Manager::Launchd).definition.is_file());
    }

    #[test]
    fn an_agent_that_does_not_end_is_not_written_over() {
        let disk = Disk::new();
        let tools = Recorded::new(&[(BOOTOUT, &[ok("")]), (PRINT, &[ok(RUNNING)])]);
        let said = install(&disk, &tools).unwrap_err().to_string();
        assert!(
            said.contains("still there (running, process 24784) after 40 s") && said.contains("server"),
            "{said}"
        );
        assert!(!disk.service(Manager::Launchd).definition.exists());
        assert!(*tools.paused.borrow() >= Duration::from_secs(40));
    }

    #[test]
    fn each_exit_code_is_explained_with_what_to_do() {
        for (code, said, part) in [
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
                (&bootstrap(&disk), &[fails(code, said)]),
            ]);
            let error = install(&disk, &tools).unwrap_err().to_string();
            for part in [part, said, "/bin/launchctl bootstrap gui/501"] {
                assert!(error.contains(part), "`{part}` is not in: {error}");
            }
        }
    }

    #[test]
    fn an_agent_that_is_loaded_but_ends_at_once_is_told_with_its_exit_code() {
        let disk = Disk::new();
        let prints = [fails(113, NOT_FOUND), ok(FAILED)];
        let tools = Recorded::new(&[
            (BOOTOUT, &[ok("")]),
            (PRINT, &prints),
            (ENABLE, &[ok("")]),
            (&bootstrap(&disk), &[ok("")]),
        ]);
        let said = install(&disk, &tools).unwrap_err().to_string();
        assert!(said.contains("last exit code 78: EX_CONFIG") && said.contains("longhaul logs"), "{said}");
    }

    fn standing(print: Output) -> Result<Standing, StepError> {
        let disk = Disk::new();
        Manager::Launchd.standing(&disk.service(Manager::Launchd), &Recorded::new(&[(PRINT, &[print])]))
    }

    #[test]
    fn how_an_agent_stands_is_read_from_its_own_lines_only() {
        let activity = |print| standing(print).unwrap().activity;
        assert_eq!(activity(ok(RUNNING)), Activity::Running { pid: Some(24784) });
        assert_eq!(activity(ok(&RUNNING.replace('\t', "    "))), Activity::Running { pid: Some(24784) });
        let how = Some("last exit code 78: EX_CONFIG".to_owned());
        assert_eq!(activity(ok(FAILED)), Activity::Stopped { how });
        assert_eq!(activity(fails(113, NOT_FOUND)), Activity::Absent);
        let first_line = "nothing that is known".to_owned();
        assert_eq!(activity(ok("nothing that is known\nor more\n")), Activity::Unknown { first_line });
    }

    #[test]
    fn where_nobody_is_logged_in_at_the_screen_it_is_said() {
        let said = standing(fails(125, "Domain does not support specified action")).unwrap_err().to_string();
        assert!(said.contains("over ssh alone"), "{said}");
    }

    #[test]
    fn start_stop_and_restart_ask_for_what_is_missing() {
        let service = Disk::new().service(Manager::Launchd);
        let commands = |steps: Vec<longhaul_launchd::Step>| steps.first().map(ToString::to_string);
        let stands = |activity| Standing { defined: true, activity };
        let (running, absent) = (stands(Activity::Running { pid: None }), stands(Activity::Absent));
        let stopped = stands(Activity::Stopped { how: None });
        let start = |standing| commands(Manager::Launchd.start(&service, standing));
        assert_eq!(start(&running), None);
        assert_eq!(start(&stopped).unwrap(), "run /bin/launchctl kickstart gui/501/org.longhaul.agent");
        assert_eq!(start(&absent).unwrap(), "run /bin/launchctl enable gui/501/org.longhaul.agent");
        let restart = commands(Manager::Launchd.restart(&service, &running)).unwrap();
        assert_eq!(restart, "run /bin/launchctl kickstart -k gui/501/org.longhaul.agent");
        let stop = commands(Manager::Launchd.stop(&service)).unwrap();
        assert_eq!(stop, "run /bin/launchctl bootout gui/501/org.longhaul.agent");
    }

    #[test]
    fn a_restart_waits_as_long_as_launchd_may_hold_it_back() {
        const AGAIN: &str = "gui/501/org.longhaul.agent = {\n\tstate = spawn scheduled\n}\n";
        let service = Disk::new().service(Manager::Launchd);
        let standing = Standing { defined: true, activity: Activity::Running { pid: None } };
        // five looks a second, for the 30 s of ThrottleInterval
        let prints: Vec<Output> = vec![ok(AGAIN); 150].into_iter().chain([ok(RUNNING)]).collect();
        let kickstart = "launchctl kickstart -k gui/501/org.longhaul.agent";
        let tools = Recorded::new(&[(kickstart, &[ok("")]), (PRINT, &prints)]);
        perform(&Manager::Launchd.restart(&service, &standing), &tools, &mut |_| ()).unwrap();
        let never = Recorded::new(&[(kickstart, &[ok("")]), (PRINT, &[ok(AGAIN)])]);
        let said = perform(&Manager::Launchd.restart(&service, &standing), &never, &mut |_| ()).unwrap_err();
        assert!(said.to_string().contains("not running (starting) after 35 s"), "{said}");
    }

    #[test]
    fn a_service_of_homebrew_that_runs_already_is_found() {
        let service = Disk::new().service(Manager::Launchd);
        let tools = Recorded::new(&[
            ("launchctl print gui/501/homebrew.mxcl.longhaul", &[ok(RUNNING)]),
            ("launchctl print gui/501/sh.brew.longhaul", &[fails(113, NOT_FOUND)]),
        ]);
        assert_eq!(Manager::Launchd.rivals(&service, &tools).unwrap(), ["homebrew.mxcl.longhaul"]);
    }

    #[test]
    fn removing_takes_the_plist_away_only_when_the_agent_is_gone() {
        let disk = Disk::new();
        let service = disk.service(Manager::Launchd);
        std::fs::create_dir(disk.path("agents")).unwrap();
        std::fs::write(&service.definition, "x").unwrap();
        let standing = Standing { defined: true, activity: Activity::Running { pid: None } };
        let steps = Manager::Launchd.remove(&service, Some(&standing));
        let stuck = Recorded::new(&[(BOOTOUT, &[ok("")]), (PRINT, &[ok(RUNNING)])]);
        assert!(perform(&steps, &stuck, &mut |_| ()).is_err() && service.definition.exists());
        let tools = Recorded::new(&[(BOOTOUT, &[ok("")]), (PRINT, &[fails(113, NOT_FOUND)])]);
        perform(&steps, &tools, &mut |_| ()).unwrap();
        assert!(!service.definition.exists());
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

    fn standing(show: Output) -> Result<Standing, StepError> {
        let disk = Disk::new();
        Manager::Systemd.standing(&disk.service(Manager::Systemd), &Recorded::new(&[(SHOW, &[show])]))
    }

    #[test]
    fn how_a_unit_stands_is_read_from_its_properties() {
        let activity = |show| standing(ok(show)).unwrap().activity;
        assert_eq!(activity(RUNNING), Activity::Running { pid: Some(71) });
        assert_eq!(activity(STOPPED), Activity::Stopped { how: None });
        assert_eq!(activity(AGAIN), Activity::Starting);
        assert_eq!(activity(FAILED), Activity::Stopped { how: Some("it ended with exit code 7".to_owned()) });
        let watchdog = FAILED.replace("exit-code", "watchdog");
        assert_eq!(
            activity(&watchdog),
            Activity::Stopped { how: Some("systemd says `watchdog`".to_owned()) }
        );
        assert_eq!(activity(ABSENT), Activity::Absent);
    }

    #[test]
    fn a_login_without_systemd_is_explained() {
        let said = standing(fails(1, NO_BUS)).unwrap_err().to_string();
        assert!(said.contains("loginctl enable-linger") && said.contains(NO_BUS.trim()), "{said}");
    }

    #[test]
    fn each_complaint_is_explained_with_what_to_do() {
        for (said, part) in [
            (
                "System has not been booted with systemd as init system (PID 1). Can't operate.",
                "longhauld --config",
            ),
            ("Failed to enable unit: Unit file longhaul.service does not exist.", "XDG_CONFIG_HOME"),
            ("Failed to start longhaul.service: Unit longhaul.service is masked.", "unmask"),
            ("Failed to start longhaul.service: Unit longhaul.service not found.", "longhaul install"),
            ("Failed to stop longhaul.service: Unit longhaul.service not loaded.", "longhaul install"),
            (
                "Job for longhaul.service failed because the control process exited with error code.\nSee ...",
                "longhaul logs",
            ),
            ("Failed to do something new", "systemctl --user status"),
        ] {
            let disk = Disk::new();
            let tools = Recorded::new(&[("systemctl --user stop longhaul.service", &[fails(1, said)])]);
            let steps = Manager::Systemd.stop(&disk.service(Manager::Systemd));
            let error = perform(&steps, &tools, &mut |_| ()).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains(said), "`{part}` is not in: {error}");
        }
    }

    #[test]
    fn without_systemd_the_files_are_removed_all_the_same() {
        let disk = Disk::new();
        let service = disk.service(Manager::Systemd);
        let wanted = disk.path("agents/default.target.wants/longhaul.service");
        std::fs::create_dir_all(wanted.parent().unwrap()).unwrap();
        [&service.definition, &wanted].iter().for_each(|path| std::fs::write(path, "x").unwrap());
        let steps = Manager::Systemd.remove(&service, None);
        perform(&steps, &Recorded::new(&[]), &mut |_| ()).unwrap();
        assert!(!service.definition.exists() && !wanted.exists());
    }

    #[test]
    fn a_failure_that_systemd_remembers_is_forgotten_with_the_unit() {
        let service = Disk::new().service(Manager::Systemd);
        let lines = |standing: &Standing| {
            let steps = Manager::Systemd.remove(&service, Some(standing));
            steps.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        let failed = Standing { defined: true, activity: Activity::Stopped { how: Some("x".to_owned()) } };
        assert!(lines(&failed).ends_with("reset-failed longhaul.service"));
        let absent = Standing { defined: false, activity: Activity::Absent };
        assert!(!lines(&absent).contains("disable"), "what is not there needs not be stopped");
    }

    #[test]
    fn lingering_is_known_or_not_known() {
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
