//! Recording through a second mount of a share, until Ctrl-C or for a time.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use longhaul_model::Mount;
use longhaul_pass_through::{End, MountPaths, PassThrough};
use longhaul_recording::{Note, Scrubber, Source, TraceEvent, TraceSink};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::folder::RecordedFolder;
use super::{NewRecording, OK};
use crate::arguments::RecordArgs;

/// Time between two looks at the signals and the clock.
const STEP: Duration = Duration::from_millis(100);

/// The scrubber, which takes what is reported until the end of the recording.
#[derive(Clone)]
struct Recorded(Arc<Mutex<Option<Scrubber>>>);

impl Recorded {
    fn scrubber(&self) -> MutexGuard<'_, Option<Scrubber>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TraceSink for Recorded {
    fn event(&mut self, event: &TraceEvent<'_>) {
        if let Some(scrubber) = self.scrubber().as_mut() {
            scrubber.event(event);
        }
    }

    fn note(&mut self, note: Note<'_>) {
        if let Some(scrubber) = self.scrubber().as_mut() {
            scrubber.note(note);
        }
    }
}

/// Mounts the share a second time, and records what all programs do there until the end.
pub fn record(
    folder: &RecordedFolder,
    arguments: &RecordArgs,
    mounts: &[Mount],
    new: NewRecording,
) -> anyhow::Result<ExitCode> {
    let mount_point = match &arguments.at {
        Some(at) => std::path::absolute(at)?,
        None => default_mount_point(&folder.path)?,
    };
    let stop = stop_signals().context("handle Ctrl-C")?;
    let place = MountPaths { folder: folder.path.clone(), mount_point };
    let scrubber = Scrubber::new(folder.path.as_os_str().as_encoded_bytes());
    let recorded = Recorded(Arc::new(Mutex::new(Some(scrubber))));
    let mounted = longhaul_pass_through::mount(&place, mounts, Box::new(recorded.clone()))?;
    announce(&place, arguments);
    wait(&mounted, &stop, arguments);
    report_end(&mounted.end(), &place);
    let scrubber = recorded.scrubber().take().context("end the recording")?;
    let recording = scrubber.finish(Source::PassThrough, folder.protocol.clone());
    anyhow::ensure!(
        !recording.operations.is_empty(),
        "nothing was recorded: no program used {} in that time. Work in that folder, not in {}",
        place.mount_point.display(),
        place.folder.display()
    );
    new.store(&recording, folder)?;
    Ok(OK)
}

fn default_mount_point(folder: &Path) -> anyhow::Result<PathBuf> {
    let home = std::env::home_dir()
        .context("find your home folder; give a folder for the second mount with --at")?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    Ok(home.join(format!("{name}-recorded")))
}

fn stop_signals() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

fn announce(place: &MountPaths, arguments: &RecordArgs) {
    let end = match arguments.duration {
        Some(seconds) => format!("Recording ends after {} s, or with Ctrl-C.", seconds.0),
        None => "Press Ctrl-C to end the recording.".to_owned(),
    };
    crate::output::eprintln!(
        "Work in {} now: it shows the files of {}, and what programs do there is recorded. {end}",
        place.mount_point.display(),
        place.folder.display()
    );
}

fn wait(mounted: &PassThrough, stop: &AtomicBool, arguments: &RecordArgs) {
    let until = arguments.duration.map(|seconds| Instant::now() + Duration::from_secs(seconds.0.into()));
    let is_over = || until.is_some_and(|until| Instant::now() >= until);
    while !stop.load(Ordering::Relaxed) && !is_over() && !mounted.has_ended() {
        std::thread::sleep(STEP);
    }
}

fn report_end(end: &End, place: &MountPaths) {
    let at = place.mount_point.display();
    match end {
        End::Unmounted => {}
        End::Detached(users) => {
            let names: Vec<String> =
                users.iter().map(|user| format!("{} (process {})", user.name, user.process)).collect();
            let names = if names.is_empty() { "a program".to_owned() } else { names.join(", ") };
            crate::output::eprintln!(
                "longhaul: {at} was still in use by {names}. It is unmounted now, so their calls fail."
            );
        }
        End::StillMounted => {
            crate::output::eprintln!("longhaul: {at} cannot be unmounted. Unmount it: fusermount3 -uz {at}");
        }
    }
}
