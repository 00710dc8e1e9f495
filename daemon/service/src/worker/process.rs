//! A worker process and the pipes to it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command as Process, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use longhaul_measure::platform;
use longhaul_measure::recorder::Recorder;
use longhaul_measure::worker::{WorkerCommand, WorkerMessage, WorkerSetup};
use longhaul_model::TargetName;

use super::launcher::{Launcher, SampleSender};

/// Interval at which the end of a process whose output has closed is checked.
const REAP_INTERVAL: Duration = Duration::from_millis(5);
/// Time between the end of a process's output and the moment from which it can be reaped.
const REAP_TIMEOUT: Duration = Duration::from_millis(200);

/// The end of a wait for a worker.
#[derive(Debug)]
pub enum ProcessEvent {
    /// A message arrived. Boxed because the channel allocates all its slots at once.
    Message(Box<WorkerMessage>),
    /// The user or the service wants to stop.
    Interrupted,
    /// No message arrived in time.
    TimedOut,
    /// The process closed its output: it has ended, or is about to end.
    Closed,
}

/// A running worker process with its pipes and flight recorder.
pub struct WorkerProcess {
    /// The child process; `None` only while the value is dropped.
    child: Option<Child>,
    /// Standard input of the process. `None`: closed, so that the process exits.
    input: Option<ChildStdin>,
    events: Receiver<ProcessEvent>,
    event_sender: SyncSender<ProcessEvent>,
    /// True if all output of the process has been received.
    is_closed: bool,
    recorder: Arc<Recorder>,
}

impl WorkerProcess {
    /// Starts a worker in its own process group, so that Ctrl-C in the terminal reaches only the supervisor.
    pub fn start(launcher: &Launcher, setup: impl FnOnce(&Path) -> WorkerSetup) -> io::Result<Self> {
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
        let stderr = child.stderr.take();
        let (event_sender, events) = sync_channel(1024);
        let mut link =
            Self { child: Some(child), input: Some(input), events, event_sender, is_closed: false, recorder };
        let setup = setup(&file.path);
        link.write(&setup)?;
        stderr.map(|errors| std::thread::spawn(move || forward_errors(errors)));
        // The thread keeps the recorder's file until the output ends: the worker has mapped it or ended by then.
        let reader = MessageReader {
            target: setup.target.name,
            event_sender: link.event_sender.clone(),
            sample_sender: launcher.sample_sender.clone(),
        };
        std::thread::spawn(move || {
            reader.read_until_end(output);
            drop(file);
        });
        Ok(link)
    }

    /// Sends a command to the process.
    pub fn send(&mut self, command: &WorkerCommand) -> io::Result<()> {
        self.write(command)
    }

    fn write(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(&line)?;
        input.flush()
    }

    /// Waits up to `limit` for the next event.
    pub fn receive(&mut self, limit: Duration) -> ProcessEvent {
        if self.is_closed {
            return ProcessEvent::Closed;
        }
        let event = match self.events.recv_timeout(limit) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => ProcessEvent::TimedOut,
            Err(RecvTimeoutError::Disconnected) => ProcessEvent::Closed,
        };
        self.is_closed = matches!(event, ProcessEvent::Closed);
        event
    }

    /// Returns a channel that ends the wait in [`Self::receive`].
    pub fn event_sender(&self) -> SyncSender<ProcessEvent> {
        self.event_sender.clone()
    }

    /// Returns the flight recorder that the process writes to.
    pub fn recorder(&self) -> &Arc<Recorder> {
        &self.recorder
    }

    /// Asks the process to exit after the operation in flight, by closing its input.
    pub fn close_input(&mut self) {
        drop(self.input.take());
    }

    /// Kills the process without waiting for it: a process blocked on a dead server ends
    /// only when that call returns.
    pub fn kill(&mut self) {
        let _ = self.child.as_mut().map(Child::kill);
    }

    /// Returns whether the process has ended, and reaps it if so. Never blocks.
    pub fn has_ended(&mut self) -> bool {
        self.status().is_some()
    }

    /// Waits up to `limit` for the process to close its output and to end. Discards its messages. Returns whether
    /// it has ended.
    pub fn exits_within(&mut self, limit: Duration) -> bool {
        let started = Instant::now();
        let left = || limit.saturating_sub(started.elapsed());
        while !matches!(self.receive(left()), ProcessEvent::Closed) {
            if left().is_zero() {
                return self.has_ended();
            }
        }
        // A process is reaped moments after its output has closed, which sends no event.
        while !self.has_ended() {
            if left().is_zero() {
                return false;
            }
            std::thread::sleep(REAP_INTERVAL);
        }
        true
    }

    fn status(&mut self) -> Option<ExitStatus> {
        self.child.as_mut()?.try_wait().ok().flatten()
    }

    /// Returns how a process that closed its output ended, for an error message.
    pub fn exit_text(&mut self) -> String {
        if self.exits_within(REAP_TIMEOUT)
            && let Some(status) = self.status()
        {
            return status.to_string();
        }
        "its output is closed, but the process is still running".to_owned()
    }
}

impl Drop for WorkerProcess {
    /// Asks the worker to exit by closing its input. A background thread reaps it: a worker blocked on a dead
    /// server may take minutes to end.
    fn drop(&mut self) {
        drop(self.input.take());
        if let Some(mut child) = self.child.take() {
            std::thread::spawn(move || child.wait());
        }
    }
}

/// Reads a worker's output and passes on its messages.
struct MessageReader {
    target: TargetName,
    event_sender: SyncSender<ProcessEvent>,
    sample_sender: Option<SampleSender>,
}

impl MessageReader {
    /// Passes on every message until the output ends. Samples have their own channel, because responses are
    /// only received while a request is pending.
    fn read_until_end(self, output: ChildStdout) {
        for line in BufReader::new(output).lines() {
            let message = line.ok().and_then(|line| serde_json::from_str(&line).ok());
            let is_passed_on = match message {
                None => false,
                Some(WorkerMessage::Sample(sampled)) => {
                    // A closed sample channel must not end the reading of responses.
                    let _ = self
                        .sample_sender
                        .as_ref()
                        .map(|samples| samples.send((self.target.clone(), sampled)));
                    true
                }
                Some(answer) => self.event_sender.send(ProcessEvent::Message(Box::new(answer))).is_ok(),
            };
            if !is_passed_on {
                break;
            }
        }
        let _ = self.event_sender.send(ProcessEvent::Closed);
    }
}

/// Copies a worker's error output to standard error. The worker does not inherit the supervisor's standard
/// error: a program that reads it to the end (`2>&1 | tee`) would wait for a hung
/// worker long after the supervisor has ended.
fn forward_errors(mut errors: ChildStderr) {
    let _ = io::copy(&mut errors, &mut io::stderr());
}

/// The file of the flight recorder, kept until the worker has ended.
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
    /// Removes the file. A worker removes it as soon as it has mapped it; this covers
    /// workers that ended before that.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
