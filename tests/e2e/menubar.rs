//! Tests of the plugin for the menu bar.

use std::fs;
use std::process::Command;

use crate::support::Place;

const PLUGIN: &str = "longhaul.5m.sh";

#[test]
fn installed_plugin_prints_the_menu() {
    let place = Place::new();
    let folder = place.folder("it's a folder");
    let install = || place.longhaul("menubar --install --folder").arg(&folder);
    install().arg("--database").arg(place.database()).expect(0);
    let menu = Command::new(folder.join(PLUGIN)).env_clear().env("HOME", place.root()).output().unwrap();
    let menu = String::from_utf8(menu.stdout).unwrap();
    assert!(menu.starts_with("⚠ longhaul\n---\nthere is no database yet at "), "{menu}");
    install().expect(0);
    assert!(!fs::read_to_string(folder.join(PLUGIN)).unwrap().contains("--database"), "it was replaced");
}

#[test]
fn plugin_of_another_program_is_not_replaced() {
    let place = Place::new();
    let plugin = place.folder("plugins").join(PLUGIN);
    fs::write(&plugin, "#!/bin/sh\necho mine\n").unwrap();
    let output = place.longhaul("menubar --install --folder").arg(place.path("plugins")).expect(2);
    output.assert_stderr(&["was not made by longhaul"]);
    assert_eq!(fs::read_to_string(&plugin).unwrap(), "#!/bin/sh\necho mine\n");
}

#[test]
fn plugin_folder_of_an_installed_program_is_found() {
    let place = Place::new();
    place.longhaul("menubar --install").expect(2).assert_stderr(&["--folder FOLDER"]);
    let folder = place.folder("home/Library/Application Support/xbar/plugins");
    place.longhaul("menubar --install").expect(0);
    assert!(folder.join(PLUGIN).exists());
}
