//! Threads that sleep until something changes: the configuration file, the mount table.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use longhaul_measure::platform::{self, MountWatch};
use longhaul_service::config::Config;
use longhaul_service::desk::Desk;
use longhaul_service::file_version::FileVersion;
use longhaul_telemetry::exporter::Exporter;
use notify::{PollWatcher, RecursiveMode, Watcher};

use crate::exporting;

/// How often the configuration file is looked at: each look reads it once, which takes some microseconds.
const POLL_EVERY: Duration = Duration::from_secs(2);
/// An editor writes a file in several steps: it is read when nothing has happened for so long.
const QUIET: Duration = Duration::from_millis(500);
/// The word of the problem that a bad configuration is.
const PROBLEM: &str = "config";

/// Rings the service whenever the mount table changes.
pub fn mounts(desk: Arc<Desk>) {
    let watch = match MountWatch::new() {
        Ok(watch) => watch,
        Err(error) => {
            return tracing::warn!(%error, "the mount table cannot be watched; it is looked at once a minute");
        }
    };
    let work = move || {
        while let Ok(changed) = watch.wait(None) {
            if changed {
                desk.order(|orders| orders.mounts = true);
            }
        }
    };
    spawn("mounts", work);
}

/// Hands the service each configuration that is good, and complains of one that is not. `read` is the version of the file
/// that is in force.
pub fn config(path: PathBuf, read: Option<FileVersion>, desk: Arc<Desk>, exporter: Arc<Exporter>) {
    spawn("config", move || {
        let watched = watch(&path, read, || take(&path, &desk, &exporter));
        if let Err(error) = watched {
            tracing::warn!(%error, "the configuration is not watched; restart longhauld after a change");
        }
    });
}

/// Calls `on_change` after each change of a file's content, for as long as the process lives. The file need not be there yet.
///
/// The file is polled, on every system. What notify has besides was not enough (notify 8.2.1): its kqueue backend opens a
/// descriptor for each file of the folder and hears nothing of an edit in place, and inotify hears nothing of the file that a
/// link leads to. The file and not its folder, because a folder is compared by times alone, in whole seconds and only
/// upwards (src/poll.rs): a second edit within a second, or an older file that takes its place, would never be noticed. To
/// compare contents would mean to read the database too, which on macOS lies in that folder.
fn watch(path: &Path, read: Option<FileVersion>, mut on_change: impl FnMut()) -> notify::Result<()> {
    let (sender, events) = channel();
    let settings = notify::Config::default().with_poll_interval(POLL_EVERY).with_compare_contents(true);
    let on_event = move |event: notify::Result<notify::Event>| {
        let _ = sender.send(event.is_ok());
    };
    let mut watcher = PollWatcher::new(on_event, settings)?;
    loop {
        watcher.watch(path, RecursiveMode::NonRecursive)?;
        // A file that is not there is not watched, which an event says, and no result.
        if events.try_recv() != Ok(false) {
            break;
        }
        std::thread::sleep(POLL_EVERY);
    }
    if FileVersion::of(path) != read {
        on_change();
    }
    while let Ok(is_change) = events.recv() {
        if is_change {
            settle(&events);
            on_change();
        }
    }
    Ok(())
}

fn settle(events: &Receiver<bool>) {
    while events.recv_timeout(QUIET).is_ok() {}
}

fn take(path: &Path, desk: &Desk, exporter: &Exporter) {
    let has_targets = || desk.status().is_some_and(|status| !status.targets.is_empty());
    match Config::read(path) {
        // A file that somebody is about to write, slowly, is empty for a while, and good.
        Ok(config) if config.targets.is_empty() && has_targets() => {
            let text = format!(
                "{} names no target. The configuration from before stays in force; `longhaul pause` stops measuring",
                path.display()
            );
            desk.complain(PROBLEM, text, platform::wall_clock_us());
        }
        Ok(config) => {
            desk.relieve(PROBLEM);
            tracing::info!(targets = config.targets.len(), "a new configuration");
            exporter.configure(exporting::settings(&config));
            desk.order(|orders| orders.config = Some(config));
        }
        Err(error) => {
            let text = format!("{error}. The configuration from before stays in force");
            desk.complain(PROBLEM, text, platform::wall_clock_us());
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) {
    if let Err(error) = std::thread::Builder::new().name(name.to_owned()).stack_size(256 << 10).spawn(work) {
        tracing::warn!(%error, name, "a thread could not be started");
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::SystemTime;

    use super::*;

    /// A file in a folder of its own, and what it held at each change that was noticed.
    struct Watched {
        folder: tempfile::TempDir,
        changes: Receiver<String>,
    }

    impl Watched {
        /// Watches `config.toml` in a folder that is laid out first.
        fn new(lay_out: impl FnOnce(&Path)) -> Self {
            let folder = tempfile::tempdir().unwrap();
            lay_out(folder.path());
            let path = folder.path().join("config.toml");
            let read = FileVersion::of(&path);
            let (sender, changes) = channel();
            let on_change = {
                let path = path.clone();
                move || drop(sender.send(fs::read_to_string(&path).unwrap_or_default()))
            };
            spawn("test", move || watch(&path, read, on_change).unwrap());
            Self { folder, changes }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        /// Waits until a change shows this content. The limit says nothing about speed.
        fn comes_to(&self, content: &str) {
            while self.changes.recv_timeout(Duration::from_secs(60)).expect("a change") != content {}
        }

        /// Makes a change that is noticed for certain, after which the watch is known to be in place.
        fn begin(&self) {
            fs::write(self.path("config.toml"), "begun").unwrap();
            self.comes_to("begun");
        }
    }

    #[test]
    fn an_edit_in_place_is_noticed_whatever_its_time() {
        let watched = Watched::new(|folder| fs::write(folder.join("config.toml"), "").unwrap());
        watched.begin();
        let time = fs::metadata(watched.path("config.toml")).unwrap().modified().unwrap();
        fs::write(watched.path("config.toml"), "ended").unwrap();
        File::options().write(true).open(watched.path("config.toml")).unwrap().set_modified(time).unwrap();
        watched.comes_to("ended");
    }

    #[test]
    fn a_replacement_by_an_older_file_is_noticed() {
        let watched = Watched::new(|folder| {
            fs::write(folder.join("old"), "older").unwrap();
            File::options()
                .write(true)
                .open(folder.join("old"))
                .unwrap()
                .set_modified(SystemTime::UNIX_EPOCH)
                .unwrap();
            fs::write(folder.join("config.toml"), "").unwrap();
        });
        watched.begin();
        fs::rename(watched.path("old"), watched.path("config.toml")).unwrap();
        watched.comes_to("older");
    }

    #[test]
    fn a_file_that_is_created_later_is_noticed_and_watched() {
        let watched = Watched::new(|_| {});
        watched.begin();
        fs::remove_file(watched.path("config.toml")).unwrap();
        watched.comes_to("");
        fs::write(watched.path("config.toml"), "again").unwrap();
        watched.comes_to("again");
    }

    #[test]
    fn an_edit_of_the_file_behind_a_link_is_noticed() {
        let watched = Watched::new(|folder| {
            fs::create_dir(folder.join("dotfiles")).unwrap();
            fs::write(folder.join("dotfiles/real"), "").unwrap();
            std::os::unix::fs::symlink("dotfiles/real", folder.join("config.toml")).unwrap();
        });
        watched.begin();
        fs::write(watched.path("dotfiles/real"), "edited").unwrap();
        watched.comes_to("edited");
    }
}
