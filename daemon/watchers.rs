//! Threads that wait for changes of the configuration file and the mount table.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use longhaul_measure::platform::{self, MountEvent, MountWatch};
use longhaul_measure::private_files;
use longhaul_measure::private_files::MAX_BYTES;
use longhaul_service::command::Command;
use longhaul_service::config::ConfigLoader;
use longhaul_service::file_version::FileVersion;
use longhaul_service::handle::ServiceHandle;
use longhaul_telemetry::exporter::Exporter;
use notify::{RecommendedWatcher, RecursiveMode, Watcher, WatcherKind};
use parking_lot::Mutex;

use crate::config_file::log_ignored_settings;
use crate::export;
use crate::fleet_export::FleetExport;
use crate::notifier::Notifier;

/// Interval at which the configuration file is compared if the system does not report its changes. Each comparison
/// reads the file, which takes some microseconds.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The same interval for the administrator's file, which is missing on most machines and changes rarely.
const MANAGED_POLL_INTERVAL: Duration = Duration::from_secs(60);
/// Interval at which the configuration file is compared if the system reports its changes.
const COMPARE_INTERVAL: Duration = Duration::from_secs(300);
/// Time without further changes after which a changed file is read. Editors write a file in several steps.
const DEBOUNCE: Duration = Duration::from_millis(500);
/// Largest number of symbolic links that are followed, as in the kernel (`path_resolution(7)`).
const MAX_LINKS: usize = 40;
/// Code of the problem that is raised for an invalid configuration.
const CONFIG_PROBLEM: &str = "config";

/// Notifies the service whenever the mount table changes.
pub fn watch_mounts(handle: Arc<ServiceHandle>) {
    let watch = match MountWatch::new() {
        Ok(watch) => watch,
        Err(error) => {
            return tracing::warn!(%error, "the mount table cannot be watched; it is checked once a minute");
        }
    };
    let work = move || {
        while let Ok(event) = watch.wait(None) {
            match event {
                Some(MountEvent::Changed) => handle.report_mount_change(),
                Some(MountEvent::Dead) => handle.report_dead_share(),
                None => {}
            }
        }
    };
    spawn_watcher("mounts", work);
}

/// The versions of the configuration files that are in effect.
pub struct ConfigVersions {
    /// Path of the user's file. `None`: there is no place for one.
    pub path: Option<PathBuf>,
    /// Version of the user's file.
    pub user: Option<FileVersion>,
    /// Version of the administrator's file.
    pub managed: Option<FileVersion>,
}

/// Passes each new valid configuration to the service, and raises a problem for an invalid one.
pub fn watch_config(versions: ConfigVersions, receivers: ConfigReceivers) {
    // Locked from reading the files until the configuration is sent: when both files change at once, the configuration that one
    // thread read before the second change must not replace the one that the other thread read after it.
    let receivers = Arc::new(Mutex::new(receivers));
    let managed = ConfigLoader::system().managed_path().to_owned();
    let watch = |file: WatchedFile| {
        let (user, receivers) = (versions.path.clone(), Arc::clone(&receivers));
        spawn_watcher("config", move || {
            watch_file(&file, || reload_config(user.as_deref(), &receivers.lock()));
        });
    };
    watch(WatchedFile { path: managed, read: versions.managed, poll_interval: MANAGED_POLL_INTERVAL });
    if let Some(path) = versions.path.clone() {
        watch(WatchedFile { path, read: versions.user, poll_interval: POLL_INTERVAL });
    }
}

/// A file whose changes are reported.
struct WatchedFile {
    path: PathBuf,
    /// Version of the file that is in effect.
    read: Option<FileVersion>,
    /// Interval at which the file is compared if the system does not report its changes.
    poll_interval: Duration,
}

/// Calls `on_change` after each change of a file's content, for the lifetime of the process. The file need not
/// exist yet.
///
/// Where the system has inotify, the thread sleeps until something changes in a folder that leads to the file. The
/// content is also compared now and then: inotify reports no change that another machine makes in a network home,
/// and none of a folder further up. Elsewhere, the content is compared every two seconds: kqueue opens a descriptor
/// for each file of the folder and misses an edit in place (notify 8.2.1).
fn watch_file(file: &WatchedFile, mut on_change: impl FnMut()) {
    let WatchedFile { path, read, poll_interval } = file;
    let (sender, changes) = channel();
    let mut watch = FolderWatch::new(sender);
    let mut last = None;
    loop {
        // The folders are watched before the file is read, so that no change in between is missed.
        let interval = if watch.follow(path) { COMPARE_INTERVAL } else { *poll_interval };
        let content = content(path);
        let is_changed = match &last {
            None => FileVersion::of(path) != *read,
            Some(last) => *last != content,
        };
        last = Some(if is_changed { settled_content(path, content) } else { content });
        if is_changed {
            on_change();
        }
        if changes.recv_timeout(interval) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
        while changes.try_recv().is_ok() {}
    }
}

/// Content of a file, or why it cannot be read.
type Content = Result<Vec<u8>, ErrorKind>;

/// Reads a file. A pipe is not waited for.
fn content(path: &Path) -> Content {
    private_files::read(path, MAX_BYTES).map_err(|error| error.kind())
}

/// Returns the content of a file once it no longer changes: editors write a file in several steps.
fn settled_content(path: &Path, mut content: Content) -> Content {
    loop {
        std::thread::sleep(DEBOUNCE);
        let now = self::content(path);
        if now == content {
            return content;
        }
        content = now;
    }
}

/// Watch on the folders that lead to a file: its own, and that of each symbolic link on the way.
struct FolderWatch {
    /// `None`: the system has no inotify, or no instance of it for this user.
    watcher: Option<RecommendedWatcher>,
    folders: BTreeSet<PathBuf>,
    /// Keeps the channel open without a watcher.
    _sender: Sender<()>,
}

impl FolderWatch {
    fn new(sender: Sender<()>) -> Self {
        let changes = sender.clone();
        let on_event = move |event: notify::Result<notify::Event>| {
            // Reading the file is reported as well.
            if !event.is_ok_and(|event| event.kind.is_access()) {
                let _ = changes.send(());
            }
        };
        let has_inotify = RecommendedWatcher::kind() == WatcherKind::Inotify;
        let watcher = has_inotify.then(|| RecommendedWatcher::new(on_event, notify::Config::default()));
        let watcher = watcher.and_then(|made| {
            made.inspect_err(|error| tracing::warn!(%error, "inotify cannot be used: files of the configuration are compared now and then instead")).ok()
        });
        Self { watcher, folders: BTreeSet::new(), _sender: sender }
    }

    /// Watches the folders that lead to a file now. Returns whether all of them are watched.
    fn follow(&mut self, path: &Path) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        let folders = folders_to(path);
        for old in self.folders.difference(&folders) {
            // It fails if the folder was removed, which ends the watch as well.
            let _ = watcher.unwatch(old);
        }
        // Known folders are watched again: they may have been replaced.
        let watch = |folder: &&PathBuf| watcher.watch(folder, RecursiveMode::NonRecursive).is_ok();
        let watched: BTreeSet<PathBuf> = folders.iter().filter(watch).cloned().collect();
        let is_complete = watched.len() == folders.len();
        self.folders = watched;
        is_complete
    }
}

/// Returns the folder of a file, and the folders of the symbolic links that lead to it.
fn folders_to(path: &Path) -> BTreeSet<PathBuf> {
    let mut folders = BTreeSet::new();
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        let target = fs::read_link(&path);
        folders.insert(folder.clone());
        match target {
            Ok(target) => path = folder.join(target),
            Err(_) => break,
        }
    }
    folders
}

/// Everything that gets a new configuration.
#[derive(Clone)]
pub struct ConfigReceivers {
    /// Handle of the service.
    pub handle: Arc<ServiceHandle>,
    /// Exporter that sends rounds to a collector.
    pub exporter: Arc<Exporter>,
    /// Notifier that sends messages to the user.
    pub notifier: Arc<Notifier>,
    /// Exports results into a collection of many machines.
    pub fleet_export: Arc<FleetExport>,
}

fn reload_config(path: Option<&Path>, receivers: &ConfigReceivers) {
    let ConfigReceivers { handle, exporter, notifier, fleet_export } = receivers;
    let has_targets = || handle.status().is_some_and(|status| !status.targets.is_empty());
    let loader = ConfigLoader::system();
    // A user's file that was removed is an error, unless the administrator's takes its place.
    let user = path.filter(|path| path.exists() || !loader.managed_path().exists());
    match loader.read(user) {
        // While a user saves a file slowly, it is empty for a moment, and an empty configuration is valid.
        Ok(config) if config.targets.is_empty() && has_targets() => {
            let text = format!(
                "{} contains no target. The previous configuration stays in effect; `longhaul pause` stops measuring",
                path.unwrap_or(loader.managed_path()).display()
            );
            handle.raise_problem(CONFIG_PROBLEM, text, platform::wall_clock());
        }
        Ok(config) => {
            handle.clear_problem(CONFIG_PROBLEM);
            tracing::info!(targets = config.targets.len(), "new configuration");
            log_ignored_settings(&config);
            exporter.configure(export::resolve_settings(&config));
            notifier.configure(config.clone());
            fleet_export.configure(&config);
            handle.send(Command::Configure(Box::new(config)));
        }
        Err(error) => {
            let error = error.to_string();
            let text =
                format!("{}. The previous configuration stays in effect", error.trim_end_matches(['.', '?']));
            handle.raise_problem(CONFIG_PROBLEM, text, platform::wall_clock());
        }
    }
}

fn spawn_watcher(name: &str, work: impl FnOnce() + Send + 'static) {
    if let Err(error) = std::thread::Builder::new().name(name.to_owned()).stack_size(256 << 10).spawn(work) {
        tracing::warn!(%error, name, "a thread could not be started");
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::mpsc::Receiver;
    use std::time::SystemTime;

    use super::*;

    /// A watched file in a folder of its own, and its content at each reported change.
    struct Watched {
        folder: tempfile::TempDir,
        changes: Receiver<String>,
    }

    impl Watched {
        /// Watches `config.toml` in a folder that `lay_out` prepares.
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
            spawn_watcher("test", move || {
                let file = WatchedFile { path, read, poll_interval: POLL_INTERVAL };
                watch_file(&file, on_change);
            });
            Self { folder, changes }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        /// Waits until a change with this content is reported. The long limit is no claim about speed.
        fn comes_to(&self, content: &str) {
            while self.changes.recv_timeout(Duration::from_secs(60)).expect("a change") != content {}
        }

        /// Makes a first change and waits for its report, after which the watch is known to be active.
        fn begin(&self) {
            fs::write(self.path("config.toml"), "begun").unwrap();
            self.comes_to("begun");
        }
    }

    #[test]
    fn edit_in_place_is_noticed_despite_an_equal_mtime() {
        let watched = Watched::new(|folder| fs::write(folder.join("config.toml"), "").unwrap());
        watched.begin();
        let time = fs::metadata(watched.path("config.toml")).unwrap().modified().unwrap();
        fs::write(watched.path("config.toml"), "ended").unwrap();
        File::options().write(true).open(watched.path("config.toml")).unwrap().set_modified(time).unwrap();
        watched.comes_to("ended");
    }

    #[test]
    fn replacement_by_an_older_file_is_noticed() {
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
    fn file_that_is_created_later_is_watched() {
        let watched = Watched::new(|_| {});
        watched.begin();
        fs::remove_file(watched.path("config.toml")).unwrap();
        watched.comes_to("");
        fs::write(watched.path("config.toml"), "again").unwrap();
        watched.comes_to("again");
    }

    #[test]
    fn edit_behind_a_symbolic_link_is_noticed() {
        let watched = Watched::new(|folder| {
            fs::create_dir(folder.join("dotfiles")).unwrap();
            fs::write(folder.join("dotfiles/real"), "").unwrap();
            std::os::unix::fs::symlink("dotfiles/real", folder.join("config.toml")).unwrap();
        });
        watched.begin();
        fs::write(watched.path("dotfiles/real"), "edited").unwrap();
        watched.comes_to("edited");
    }

    #[test]
    fn link_to_another_file_is_noticed_and_followed() {
        let watched = Watched::new(|folder| {
            for name in ["one", "two"] {
                fs::create_dir(folder.join(name)).unwrap();
                fs::write(folder.join(name).join("real"), name).unwrap();
            }
            std::os::unix::fs::symlink("one/real", folder.join("config.toml")).unwrap();
        });
        watched.begin();
        std::os::unix::fs::symlink("two/real", watched.path("new")).unwrap();
        fs::rename(watched.path("new"), watched.path("config.toml")).unwrap();
        watched.comes_to("two");
        fs::write(watched.path("two/real"), "edited").unwrap();
        watched.comes_to("edited");
    }
}
