//! Loads the configuration: the user's file, with the administrator's settings over it.

use std::path::{Path, PathBuf};

use longhaul_measure::private_files;
use serde::Deserialize;

use super::layers::{ConfigLayer, FixedSetting, IgnoredSetting, Layers};
use super::managed::ManagedFile;
use super::value::unreadable_value;
use super::{Config, ConfigError, ConfigFile};

/// The settings that the administrator has set, and what the user's file sets in vain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ManagedSettings {
    /// Path of the administrator's file. Empty: there is none.
    pub path: PathBuf,
    /// Settings of the administrator's file.
    pub fixed: Vec<FixedSetting>,
    /// Settings of the user's file that are not used.
    pub ignored: Vec<IgnoredSetting>,
}

/// A command line argument that means the same as a setting.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    /// The argument, such as `--scale`.
    pub option: &'static str,
    /// Key of the setting, such as `scale`.
    pub key: &'static str,
}

/// A request to use another value than the administrator's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{option} cannot be used: the administrator {} in {}:{line}. Leave it out, or ask your administrator",
    match value { Some(value) => format!("sets `{key} = {value}`"), None => format!("fixes `{key}`") },
    path.display()
)]
pub struct FixedSettingError {
    /// The argument or the setting of the user.
    pub option: String,
    /// Key of the setting.
    pub key: String,
    /// Value that the administrator set. `None`: the default.
    pub value: Option<String>,
    /// Path of the administrator's file.
    pub path: PathBuf,
    /// Line in the administrator's file.
    pub line: usize,
}

impl ManagedSettings {
    /// Returns the administrator's setting that covers a key: the key itself, or a section that it is part of.
    pub fn covering(&self, key: &str) -> Option<&FixedSetting> {
        let covers = |fixed: &&FixedSetting| {
            key.strip_prefix(&fixed.key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        // Prefer a fixed value over the section that fixes it: its error can name the value.
        let found = |fixed: &&FixedSetting| fixed.value.is_some();
        self.fixed.iter().filter(covers).find(found).or_else(|| self.fixed.iter().find(covers))
    }

    /// Returns whether the administrator sets anything in a section.
    pub fn touches(&self, section: &str) -> bool {
        let within = |key: &str| key.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'));
        self.covering(section).is_some() || self.fixed.iter().any(|fixed| within(&fixed.key))
    }

    /// Refuses an argument whose value differs from the one that the administrator has set.
    pub fn check_argument<T: PartialEq>(
        &self,
        argument: Argument,
        given: Option<&T>,
        effective: &T,
    ) -> Result<(), FixedSettingError> {
        match given {
            Some(given) if given != effective => self.check_option(argument.option, argument.key),
            _ => Ok(()),
        }
    }

    /// Refuses an option that would change a key if the administrator has set it.
    pub fn check_option(&self, option: &str, key: &str) -> Result<(), FixedSettingError> {
        let Some(fixed) = self.covering(key) else { return Ok(()) };
        Err(FixedSettingError {
            option: option.to_owned(),
            key: fixed.key.clone(),
            value: fixed.value.clone(),
            path: self.path.clone(),
            line: fixed.line,
        })
    }
}

/// Reads configurations under the settings of an administrator's file.
#[derive(Debug, Clone)]
pub struct ConfigLoader {
    managed: ManagedFile,
}

impl ConfigLoader {
    /// Returns the loader that programs use: with the administrator's file in the system's folder. Nothing that a user
    /// controls can change that path.
    pub fn system() -> Self {
        Self::new(ManagedFile::system())
    }

    /// Returns a loader with another administrator's file.
    pub fn new(managed: ManagedFile) -> Self {
        Self { managed }
    }

    /// Returns the path of the administrator's file, which need not exist.
    pub fn managed_path(&self) -> &Path {
        &self.managed.path
    }

    /// Reads and validates the configuration. Without a user's file, the administrator's settings and the defaults hold.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or is invalid, or if the administrator's file could have been changed by others.
    pub fn read(&self, user: Option<&Path>) -> Result<Config, ConfigError> {
        let Some(path) = user else { return self.parse("", Path::new("")) };
        let text = private_files::read_text(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        self.parse(&text, path)
    }

    /// Returns the settings of the administrator's file on its own, without their values being validated.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is not TOML, or if it could have been changed by others.
    pub fn managed_settings(&self) -> Result<ManagedSettings, ConfigError> {
        let Some(text) = self.managed.read()? else { return Ok(ManagedSettings::default()) };
        let (user, managed) = (
            ConfigLayer { path: Path::new(""), text: "" },
            ConfigLayer { path: &self.managed.path, text: &text },
        );
        let layers = Layers::new(user, managed);
        Ok(ManagedSettings {
            path: self.managed.path.clone(),
            fixed: layers.combine()?.fixed,
            ignored: vec![],
        })
    }

    /// Parses and validates the text of a user's configuration. `path` is used in error messages only.
    pub fn parse(&self, text: &str, path: &Path) -> Result<Config, ConfigError> {
        match self.managed.read()? {
            None => Config::parse(text, path),
            Some(managed) => {
                let managed = ConfigLayer { path: &self.managed.path, text: &managed };
                parse_layers(&Layers::new(ConfigLayer { path, text }, managed), &self.managed.path)
            }
        }
    }
}

fn parse_layers(layers: &Layers<'_>, managed: &Path) -> Result<Config, ConfigError> {
    let combined = layers.combine()?;
    let file = ConfigFile::deserialize(toml::de::Deserializer::from(combined.table)).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        layers.error(unreadable_value(layers.text_at(offset), &error))
    })?;
    let config = Config::from_file(file).map_err(|wrong| layers.error(wrong))?;
    let settings =
        ManagedSettings { path: managed.to_owned(), fixed: combined.fixed, ignored: combined.ignored };
    Ok(Config { managed: settings, ..config })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use longhaul_model::Scale;
    use proptest::prelude::*;

    use super::*;

    /// An administrator's file in a folder of its own.
    struct Fixture {
        _folder: tempfile::TempDir,
        loader: ConfigLoader,
    }

    impl Fixture {
        fn new(managed: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("managed.toml");
            fs::write(&path, managed).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            let owner = fs::metadata(&path).unwrap().uid();
            Self { _folder: folder, loader: ConfigLoader::new(ManagedFile { path, owner }) }
        }

        fn parse(&self, user: &str) -> Result<Config, String> {
            let parsed = self.loader.parse(user, Path::new("c.toml"));
            let folder = self.loader.managed_path().parent().unwrap().display().to_string();
            parsed.map_err(|error| error.to_string().replace(&format!("{folder}/"), ""))
        }

        /// Returns the valid configuration and the keys of the user that are not used, with their lines.
        fn ignored(&self, user: &str) -> (Config, Vec<String>) {
            let config = self.parse(user).unwrap();
            let keys = config.managed.ignored.iter().map(|found| format!("{}:{}", found.key, found.line));
            let keys = keys.collect();
            (config, keys)
        }
    }

    #[test]
    fn settings_of_the_administrator_replace_those_of_the_user() {
        let fixture = Fixture::new("scale = \"quick\"\n[limits]\ncap-seconds = 60\n");
        let user = "# mine\nscale = \"large\"\n\n[limits]\ncap-seconds = 900\nmegabytes-per-day = 5\n";
        let (config, ignored) = fixture.ignored(user);
        assert_eq!(config.scale, Scale::Quick);
        assert_eq!(config.limits.cap.as_secs(), 60);
        assert_eq!(config.limits.bytes_per_day, Some(5_000_000), "what is not set stays the user's");
        assert_eq!(ignored, ["scale:2", "limits.cap-seconds:5"]);
        let fixed = &config.managed.fixed;
        assert_eq!(fixed[1].key, "limits.cap-seconds");
        assert_eq!((fixed[1].line, fixed[1].value.as_deref()), (3, Some("60")));
    }

    #[test]
    fn equal_settings_are_not_reported() {
        let fixture = Fixture::new("workloads = [\"dd\"]\nscale = \"quick\"\n");
        let (_, ignored) = fixture.ignored("scale = 'quick'\nworkloads = [ \"dd\" ] # same\n");
        assert!(ignored.is_empty(), "{ignored:?}");
    }

    #[test]
    fn lists_are_replaced_as_a_whole() {
        let fixture = Fixture::new("workloads = [\"dd\"]\n");
        let (config, ignored) = fixture.ignored("workloads = [\"dd\", \"photo-batch\"]\n");
        assert_eq!(config.workloads, ["dd"]);
        assert_eq!(ignored, ["workloads:1"]);
    }

    #[test]
    fn targets_are_combined_key_by_key_in_any_notation() {
        let fixture = Fixture::new("targets.nas.path = \"/Volumes/nas\"\n");
        for user in [
            "[targets.nas]\npath = \"/tmp\"\nrole = \"baseline\"\n[targets.mine]\npath = \"/m\"\n",
            "targets = { nas = { path = \"/tmp\", role = \"baseline\" }, mine = { path = \"/m\" } }\n",
            "targets.nas = { path = \"/tmp\", role = \"baseline\" }\ntargets.\"mine\".path = '/m'\n",
        ] {
            let (config, ignored) = fixture.ignored(user);
            let nas = config.targets.iter().find(|target| target.name.as_str() == "nas").unwrap();
            assert_eq!(nas.path, Path::new("/Volumes/nas"));
            assert_eq!(nas.role, longhaul_model::Role::Baseline);
            assert_eq!(config.targets.len(), 2);
            assert!(ignored.len() == 1 && ignored[0].starts_with("targets.nas.path:"), "{ignored:?}");
        }
    }

    #[test]
    fn sections_that_are_no_tables_are_replaced() {
        let fixture = Fixture::new("[limits]\ncap-seconds = 60\n");
        let (config, ignored) = fixture.ignored("limits = 3\n");
        assert_eq!((config.limits.cap.as_secs(), ignored), (60, vec!["limits:1".to_owned()]));
    }

    #[test]
    fn fixed_sections_take_nothing_from_the_user() {
        let text = "fixed = [\"targets\", \"telemetry\", \"schedule.quiet-hours\"]\n\
                    [targets.nas]\npath = \"/Volumes/nas\"\n";
        let fixture = Fixture::new(text);
        let user = "[telemetry]\nendpoint = \"http://a\"\n[schedule]\nquiet-hours = \"22:00-07:00\"\nrounds-per-day = 4\n\
                    [targets.nas]\npath = \"/Volumes/nas\"\nrole = \"baseline\"\n[targets.mine]\npath = \"/m\"\n";
        let (config, mut ignored) = fixture.ignored(user);
        ignored.sort();
        assert_eq!(
            ignored,
            ["schedule.quiet-hours:4", "targets.mine:9", "targets.nas.role:8", "telemetry:1"]
        );
        assert_eq!(config.targets.len(), 1);
        assert_eq!(config.telemetry, Config::default().telemetry);
        assert_eq!((config.schedule.rounds_per_day, config.schedule.skip_rules.quiet_hours), (4, None));
        let covering = |key| config.managed.covering(key).map(|fixed| fixed.value.clone());
        assert_eq!(covering("targets.other.path"), Some(None));
        assert_eq!(covering("targets.nas.path"), Some(Some("\"/Volumes/nas\"".to_owned())));
        assert_eq!(covering("targetsx"), None);
        assert!(config.managed.touches("telemetry") && !config.managed.touches("log"));
    }

    #[test]
    fn errors_name_the_file_that_they_are_in() {
        let fixture = Fixture::new("scale = \"quick\"\n[limits]\ncap-seconds = 0\n");
        assert_eq!(
            fixture.parse("[limits]\n").unwrap_err(),
            "managed.toml:3: `cap-seconds` must be between 1 and 86400"
        );
        let fixture = Fixture::new("# nothing\n[limits]\ncap-seconds = 5\n");
        for (user, expected) in [
            (
                "\n[limits]\ncap-second = 3\n",
                "c.toml:3: unknown key `cap-second`; did you mean `cap-seconds`?",
            ),
            ("\nfixed = [\"scale\"]\n", "c.toml:2: unknown key `fixed`"),
            ("\n\nscale = \n", "c.toml:3: "),
            ("scale = \"quick", "c.toml:1: "),
            ("[web]\nport = 70000", "c.toml:2: "),
        ] {
            let error = fixture.parse(user).unwrap_err();
            assert!(error.starts_with(expected), "{user}: {error}");
        }
        for (managed, expected) in [
            ("\nscala = 1\n", "managed.toml:2: unknown key `scala`; did you mean `scale`?"),
            ("scale = \n", "managed.toml:1: "),
            ("\nscale = \"huge\"", "managed.toml:2: `scale`: unknown value `huge`; it is one of quick"),
            (
                "fixed = [\n\"scale\",\n\"log.lvl\"]",
                "managed.toml:3: `fixed` names the key `log.lvl`, which does not exist",
            ),
            ("fixed = [3]", "managed.toml:1: `fixed` names the key ``"),
            ("fixed = [\"a = 1\\nscale\"]", "managed.toml:1: `fixed` names"),
            ("fixed = true", "managed.toml:1: `fixed` must be a list of keys"),
        ] {
            let error = Fixture::new(managed).parse("# a user's text of some length\n").unwrap_err();
            assert!(error.starts_with(expected), "{managed}: {error}");
        }
    }

    #[test]
    fn arguments_that_differ_are_refused_with_the_line() {
        let fixture = Fixture::new("# site\nscale = \"quick\"\nfixed = [\"workloads\"]\n");
        let managed = fixture.parse("").unwrap().managed;
        let argument = Argument { option: "--scale", key: "scale" };
        let error = managed.check_argument(argument, Some(&1), &2).unwrap_err().to_string();
        assert!(
            error.starts_with("--scale cannot be used: the administrator sets `scale = \"quick\"` in "),
            "{error}"
        );
        assert!(error.contains("managed.toml:2. "), "{error}");
        assert_eq!(managed.check_argument(argument, Some(&2), &2), Ok(()));
        assert_eq!(managed.check_argument(argument, None, &2), Ok(()));
        let error = managed.check_option("--workload", "workloads").unwrap_err().to_string();
        assert!(error.contains("fixes `workloads`"), "{error}");
        assert_eq!(managed.check_option("--cap", "limits.cap-seconds"), Ok(()));
    }

    #[test]
    fn addresses_of_channels_are_not_shown() {
        let fixture = Fixture::new(
            "[notify]\nheartbeat-url = \"https://ping.example/secret\"\n\
             [notify.channels.phone]\nkind = \"ntfy\"\nurl = \"https://ntfy.sh/secret\"\n",
        );
        let managed = fixture.parse("").unwrap().managed;
        let shown: Vec<&str> = managed.fixed.iter().filter_map(|fixed| fixed.value.as_deref()).collect();
        assert_eq!(shown, ["(not shown)", "\"ntfy\"", "(not shown)"]);
        let error = managed.check_option("url", "notify.channels.phone.url").unwrap_err().to_string();
        assert!(!error.contains("secret") && error.contains("(not shown)"), "{error}");
        let sample = crate::config::commented_sample(&managed);
        assert!(!sample.contains("example/secret") && !sample.contains("ntfy.sh/secret"), "{sample}");
    }

    #[test]
    fn without_the_file_the_users_settings_hold() {
        let fixture = Fixture::new("");
        fs::remove_file(fixture.loader.managed_path()).unwrap();
        let config = fixture.parse("scale = \"large\"\n").unwrap();
        assert_eq!((config.scale, config.managed), (Scale::Large, ManagedSettings::default()));
    }

    #[test]
    fn refused_file_lets_no_configuration_through() {
        let fixture = Fixture::new("scale = \"quick\"\n");
        fs::set_permissions(fixture.loader.managed_path(), fs::Permissions::from_mode(0o666)).unwrap();
        let error = fixture.parse("scale = \"large\"\n").unwrap_err();
        assert!(error.contains("can be changed by others"), "{error}");
    }

    proptest! {
        /// A valid user's file never changes what the administrator has set.
        #[test]
        fn no_users_file_changes_a_fixed_value(
            scale in prop::sample::select(vec!["quick", "standard", "large"]),
            cap in 1u64..86_400, rounds in 1u64..97, padding in "(# [ -~]{0,40}\n){0,4}",
        ) {
            let fixture = Fixture::new("scale = \"quick\"\nfixed = [\"schedule\"]\n[limits]\ncap-seconds = 77\n");
            let user = format!(
                "{padding}scale = \"{scale}\"\n[limits]\ncap-seconds = {cap}\n[schedule]\nrounds-per-day = {rounds}\n"
            );
            let config = fixture.parse(&user).unwrap();
            prop_assert_eq!(config.scale, Scale::Quick);
            prop_assert_eq!(config.limits.cap.as_secs(), 77);
            prop_assert_eq!(config.schedule, Config::default().schedule);
            for ignored in &config.managed.ignored {
                let line = user.lines().nth(ignored.line - 1).unwrap();
                let last = ignored.key.rsplit('.').next().unwrap();
                prop_assert!(line.contains(last), "{}: {}", ignored.key, line);
            }
        }
    }
}
