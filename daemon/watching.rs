//! Threads that sleep until something changes: the configuration file, the mount table.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use longhaul_measure::platform::{self, MountWatch};
use longhaul_service::config::Config;
use longhaul_service::desk::Desk;
use longhaul_telemetry::exporter::Exporter;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};

use crate::exporting;

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

/// Hands the service each configuration that is good, and complains of one that is not. The value has to be kept.
pub fn config(path: PathBuf, desk: Arc<Desk>, exporter: Arc<Exporter>) -> Option<RecommendedWatcher> {
    let folder = path.parent()?.to_owned();
    let (sender, changes) = channel();
    let name = path.file_name()?.to_owned();
    let on_event = move |event: notify::Result<notify::Event>| {
        let is_ours = |event: notify::Event| {
            !event.kind.is_access() && event.paths.iter().any(|path| path.file_name() == Some(&name))
        };
        if event.is_ok_and(is_ours) {
            let _ = sender.send(());
        }
    };
    // The folder, not the file: most editors put a new file in the place of the old one.
    let watcher = notify::recommended_watcher(on_event).and_then(|mut watcher| {
        watcher.watch(&folder, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    match watcher {
        Ok(watcher) => {
            spawn("config", move || {
                while changes.recv().is_ok() {
                    settle(&changes);
                    read(&path, &desk, &exporter);
                }
            });
            Some(watcher)
        }
        Err(error) => {
            tracing::warn!(%error, "the configuration is not watched; restart longhauld after a change");
            None
        }
    }
}

fn settle(changes: &Receiver<()>) {
    while changes.recv_timeout(QUIET).is_ok() {}
}

fn read(path: &Path, desk: &Desk, exporter: &Exporter) {
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
