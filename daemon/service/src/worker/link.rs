//! The pipe to a worker process, and the process itself.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command as Process, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use longhaul_measure::model::TargetName;
use longhaul_measure::platform;
use longhaul_measure::recorder::Recorder;
use longhaul_measure::worker::{Command, Message, Setup};

use super::{Launcher, Samples};

/// What came, or did not come, from a worker.
pub enum Answer {
    /// A message.
    Message(Box<Message>),
    /// Nothing within the time.
    Silence,
    /// The process closed its output: it has ended, or is about to.
    Ended,
}

/// A running worker.
pub struct Link {
    /// Both are there until the value is dropped.
    child: Option<Child>,
    input: Option<ChildStdin>,
    /// Boxed, for its places are there from the begin.
    messages: Receiver<Box<Message>>,
    recorder: Arc<Recorder>,
}

impl Link {
    /// Starts a worker in a process group of its own, so that Ctrl-C in the terminal reaches the supervisor only.
    pub fn start(launcher: &Launcher, setup: impl FnOnce(&Path) -> Setup) -> io::Result<Self> {
        let file = RecorderFile::new()?;
        let recorder = Arc::new(Recorder::create(&file.file)?);
        let mut child = Process::new(&launcher.program)
            .args(&launcher.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the pipes of a new process are missing"));
        };
        let child_errors = child.stderr.take();
        let (answers, messages) = sync_channel(1024);
        let mut link = Self { child: Some(child), input: Some(input), messages, recorder };
        let setup = setup(&file.path);
        link.write(&setup)?;
        child_errors.map(|errors| std::thread::spawn(move || pass_on(errors)));
        let hearing = Hearing { target: setup.target.name, answers, samples: launcher.samples.clone() };
        std::thread::spawn(move || {
            hearing.until_the_end(output);
            drop(file);
        });
        Ok(link)
    }

    /// Gives a command.
    pub fn send(&mut self, command: &Command) -> io::Result<()> {
        self.write(command)
    }

    fn write(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(&line)?;
        input.flush()
    }

    /// Waits for the next message, this long at most.
    pub fn receive(&self, limit: Duration) -> Answer {
        match self.messages.recv_timeout(limit) {
            Ok(message) => Answer::Message(message),
            Err(RecvTimeoutError::Timeout) => Answer::Silence,
            Err(RecvTimeoutError::Disconnected) => Answer::Ended,
        }
    }

    /// The flight recorder.
    pub fn recorder(&self) -> &Arc<Recorder> {
        &self.recorder
    }

    /// Tells the process to end after the operation in flight, by closing its input.
    pub fn dismiss(&mut self) {
        drop(self.input.take());
    }

    /// Kills the process without waiting for it: one that waits for a dead server ends only when that wait does.
    pub fn kill(&mut self) {
        let _ = self.child.as_mut().map(Child::kill);
    }

    /// Whether all that it said has been passed on: whoever does that has ended.
    pub fn is_heard(&self) -> bool {
        loop {
            match self.messages.try_recv() {
                Ok(_) => {}
                Err(error) => return error == TryRecvError::Disconnected,
            }
        }
    }

    /// Whether the process has ended; reaps it if so. Never waits.
    pub fn has_ended(&mut self) -> bool {
        self.status().is_some()
    }

    /// Whether the process ends within this time.
    pub fn ends_within(&mut self, limit: Duration) -> bool {
        let began = Instant::now();
        while !self.has_ended() {
            if began.elapsed() > limit {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    fn status(&mut self) -> Option<ExitStatus> {
        self.child.as_mut()?.try_wait().ok().flatten()
    }

    /// How a process that closed its output ended, for a message.
    pub fn exit_text(&mut self) -> String {
        for _ in 0..20 {
            if let Some(status) = self.status() {
                return status.to_string();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        "its output closed, but the process is still there".to_owned()
    }
}

impl Drop for Link {
    /// Closing the input tells the worker to end after the operation in flight. It is reaped by a thread that nobody
    /// waits for: a worker that waits for a dead server may take minutes to end.
    fn drop(&mut self) {
        drop(self.input.take());
        if let Some(mut child) = self.child.take() {
            std::thread::spawn(move || child.wait());
        }
    }
}

/// Where the messages of a worker go.
struct Hearing {
    target: TargetName,
    answers: SyncSender<Box<Message>>,
    samples: Option<Samples>,
}

impl Hearing {
    /// Passes on every message. Samples go past the answers, which are taken only while somebody waits for one.
    fn until_the_end(self, output: ChildStdout) {
        for line in BufReader::new(output).lines() {
            let message = line.ok().and_then(|line| serde_json::from_str(&line).ok());
            let is_heard = match message {
                None => false,
                Some(Message::Sampled(sampled)) => {
                    // Whether somebody wants samples does not decide over the answers.
                    let _ = self.samples.as_ref().map(|samples| samples.send((self.target.clone(), sampled)));
                    true
                }
                Some(answer) => self.answers.send(Box::new(answer)).is_ok(),
            };
            if !is_heard {
                break;
            }
        }
    }
}

/// Passes on what a worker says to standard error. It does not inherit ours: whoever reads ours to its end (`2>&1 | tee`)
/// would wait for a worker that hangs, long after we have ended.
fn pass_on(mut errors: ChildStderr) {
    let _ = io::copy(&mut errors, &mut io::stderr());
}

/// The recorder's file, held open until the worker has ended.
struct RecorderFile {
    file: File,
    path: PathBuf,
}

impl RecorderFile {
    fn new() -> io::Result<Self> {
        let (file, path) = platform::shared_file()?;
        Ok(Self { file, path })
    }
}

impl Drop for RecorderFile {
    /// Where it has a name, the worker removes it as soon as it has mapped it; this is for one that never came so far.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
