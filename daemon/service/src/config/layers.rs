//! Combines the user's configuration with the administrator's, key by key, before any value is validated.

use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toml_edit::Key;

use super::value::InvalidValue;
use super::{ConfigError, is_known_key};

/// Key of the administrator's file with the settings that users cannot set at all.
const FIXED: &str = "fixed";
/// Last parts of keys in `[notify]` whose values can contain a secret.
const SECRET_KEYS: [&str; 2] = ["url", "heartbeat-url"];

/// A configuration file: its path for messages, and its text.
#[derive(Debug, Clone, Copy)]
pub struct ConfigLayer<'a> {
    /// Path of the file.
    pub path: &'a Path,
    /// Its content.
    pub text: &'a str,
}

impl ConfigLayer<'_> {
    /// Returns the line of a byte offset, starting at 1.
    fn line(&self, offset: usize) -> usize {
        1 + self.text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
    }

    fn error(&self, wrong: InvalidValue) -> ConfigError {
        ConfigError::Invalid {
            path: self.path.to_owned(),
            line: self.line(wrong.offset),
            message: wrong.message,
        }
    }
}

/// A setting of the administrator's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedSetting {
    /// Key with its sections, such as `limits.cap-seconds`.
    pub key: String,
    /// Line in the administrator's file, starting at 1.
    pub line: usize,
    /// Value as written there, as far as [`shown_value`] shows it. `None`: users cannot set it, so that the default holds.
    pub value: Option<String>,
}

/// A setting of the user's file that is not used because the administrator has set it differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredSetting {
    /// Key with its sections.
    pub key: String,
    /// Line in the user's file, starting at 1.
    pub line: usize,
}

/// The combined settings of both files.
pub struct CombinedConfig<'a> {
    /// The settings, with offsets that [`Layers::error`] understands.
    pub table: Spanned<DeTable<'a>>,
    /// Settings of the administrator's file.
    pub fixed: Vec<FixedSetting>,
    /// Settings of the user's file that are not used.
    pub ignored: Vec<IgnoredSetting>,
}

/// Both files. The administrator's text is preceded by as many bytes as the user's file has, so that an offset in the
/// combined settings tells from which file a value comes.
pub struct Layers<'a> {
    user: ConfigLayer<'a>,
    managed: ConfigLayer<'a>,
    shifted: String,
}

impl<'a> Layers<'a> {
    /// Prepares both files for [`Self::combine`].
    pub fn new(user: ConfigLayer<'a>, managed: ConfigLayer<'a>) -> Self {
        let shifted = format!("{}{}", "\n".repeat(user.text.len() + 1), managed.text);
        Self { user, managed, shifted }
    }

    /// Combines the files: what the administrator sets replaces what the user sets.
    ///
    /// # Errors
    ///
    /// If a file is not TOML, or if `fixed` names no key.
    pub fn combine(&self) -> Result<CombinedConfig<'_>, ConfigError> {
        let mut user = self.parse(self.user.text)?;
        let mut managed = self.parse(&self.shifted)?;
        let (mut fixed, mut ignored) = (vec![], vec![]);
        let names = managed.get_mut().remove(FIXED);
        let names = names.map(|names| self.fixed_keys(&names)).transpose()?.unwrap_or_default();
        for name in &names {
            let spans = remove_others(user.get_mut(), managed.get_ref(), &name.path);
            ignored.extend(spans.into_iter().map(|found| self.ignored(found)));
        }
        let names = names.into_iter().map(|name| FixedSetting {
            key: join(&name.path),
            line: self.managed_line(&name.span),
            value: None,
        });
        fixed.extend(names);
        let mut replaced = vec![];
        Merge { layers: self, fixed: &mut fixed, replaced: &mut replaced }.merge(
            user.get_mut(),
            managed.into_inner(),
            &[],
        );
        ignored.extend(replaced.into_iter().map(|found| self.ignored(found)));
        fixed.sort_by_key(|setting| setting.line);
        ignored.sort_by_key(|setting: &IgnoredSetting| setting.line);
        Ok(CombinedConfig { table: user, fixed, ignored })
    }

    /// Returns the error for a value of the combined settings, with the file and line that it comes from.
    pub fn error(&self, wrong: InvalidValue) -> ConfigError {
        match wrong.offset.checked_sub(self.user.text.len() + 1) {
            Some(offset) => self.managed.error(InvalidValue::new(offset, wrong.message)),
            None => self.user.error(wrong),
        }
    }

    /// Returns the text in which an offset of the combined settings lies.
    pub fn text_at(&self, offset: usize) -> &str {
        if offset > self.user.text.len() { &self.shifted } else { self.user.text }
    }

    fn parse<'t>(&self, text: &'t str) -> Result<Spanned<DeTable<'t>>, ConfigError> {
        DeTable::parse(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            self.error(InvalidValue::new(offset, error.message()))
        })
    }

    fn fixed_keys(&self, names: &Spanned<DeValue<'_>>) -> Result<Vec<LocatedKey>, ConfigError> {
        let invalid =
            |span: Range<usize>, message: String| self.error(InvalidValue::new(span.start, message));
        let list = names.get_ref().as_array();
        let list = list.ok_or_else(|| {
            invalid(
                names.span(),
                format!("`{FIXED}` must be a list of keys, as in [\"targets\", \"log.level\"]"),
            )
        })?;
        list.iter()
            .map(|name| {
                let text = name.get_ref().as_str().unwrap_or_default();
                let path: Vec<String> = Key::parse(text)
                    .map(|keys| keys.iter().map(|key| key.get().to_owned()).collect())
                    .unwrap_or_default();
                if path.is_empty() || !is_known_key(&path) {
                    return Err(invalid(
                        name.span(),
                        format!("`{FIXED}` names the key `{text}`, which does not exist"),
                    ));
                }
                Ok(LocatedKey { path, span: name.span() })
            })
            .collect()
    }

    fn managed_line(&self, span: &Range<usize>) -> usize {
        self.managed.line(span.start.saturating_sub(self.user.text.len() + 1))
    }

    fn ignored(&self, found: LocatedKey) -> IgnoredSetting {
        IgnoredSetting { key: join(&found.path), line: self.user.line(found.span.start) }
    }
}

/// A key with its location in a file.
struct LocatedKey {
    path: Vec<String>,
    span: Range<usize>,
}

/// Replaces values of the user's settings by those of the administrator, and keeps account of both.
struct Merge<'m, 'a> {
    layers: &'m Layers<'a>,
    fixed: &'m mut Vec<FixedSetting>,
    replaced: &'m mut Vec<LocatedKey>,
}

impl Merge<'_, '_> {
    fn merge<'t>(&mut self, user: &mut DeTable<'t>, managed: DeTable<'t>, path: &[String]) {
        for (key, value) in managed {
            let path: Vec<String> = path.iter().cloned().chain([key.get_ref().to_string()]).collect();
            let span = value.span();
            let existing = user.remove(key.get_ref().as_ref());
            let value = match (existing, value.into_inner()) {
                (Some(existing), DeValue::Table(inner)) if existing.get_ref().is_table() => {
                    let mut table = existing;
                    if let DeValue::Table(table) = table.get_mut() {
                        self.merge(table, inner, &path);
                    }
                    table
                }
                (existing, DeValue::Table(inner)) => {
                    self.replaced
                        .extend(existing.map(|value| LocatedKey { path: path.clone(), span: value.span() }));
                    let mut table = DeTable::new();
                    self.merge(&mut table, inner, &path);
                    Spanned::new(span, DeValue::Table(table))
                }
                (existing, value) => {
                    let differs = existing.filter(|existing| plain(existing.get_ref()) != plain(&value));
                    self.replaced
                        .extend(differs.map(|old| LocatedKey { path: path.clone(), span: old.span() }));
                    self.fixed.push(self.setting(&path, span.clone()));
                    Spanned::new(span, value)
                }
            };
            user.insert(key, value);
        }
    }

    fn setting(&self, path: &[String], span: Range<usize>) -> FixedSetting {
        FixedSetting {
            key: join(path),
            line: self.layers.managed_line(&span),
            value: Some(shown_value(&join(path), &self.layers.shifted[span]).to_owned()),
        }
    }
}

/// Returns the value of a setting as it may be printed: an address of `[notify]` can contain a secret.
pub fn shown_value<'v>(key: &str, value: &'v str) -> &'v str {
    let is_secret = key.rsplit('.').next().is_some_and(|last| SECRET_KEYS.contains(&last));
    if is_secret && key.starts_with("notify.") { "(not shown)" } else { value }
}

/// Removes what the user sets below a key and the administrator does not. Returns the removed keys.
fn remove_others(user: &mut DeTable<'_>, managed: &DeTable<'_>, path: &[String]) -> Vec<LocatedKey> {
    let Some((first, rest)) = path.split_first() else { return vec![] };
    let Some(value) = user.get_mut(first.as_str()) else { return vec![] };
    let counterpart = managed.get(first.as_str()).map(Spanned::get_ref);
    let span = value.span();
    let mut removed = match (value.get_mut(), counterpart) {
        (DeValue::Table(inner), Some(DeValue::Table(counterpart))) if rest.is_empty() => {
            let names: Vec<String> = inner.keys().map(|key| key.get_ref().to_string()).collect();
            names
                .iter()
                .flat_map(|name| remove_others(inner, counterpart, std::slice::from_ref(name)))
                .collect()
        }
        (DeValue::Table(inner), _) if !rest.is_empty() => {
            let empty = DeTable::new();
            remove_others(inner, counterpart.and_then(DeValue::as_table).unwrap_or(&empty), rest)
        }
        (_, None) if rest.is_empty() => {
            user.remove(first.as_str());
            return vec![LocatedKey { path: vec![first.clone()], span }];
        }
        // The administrator's value replaces it, or it is no table and validation refuses it.
        _ => vec![],
    };
    removed.iter_mut().for_each(|found| found.path.insert(0, first.clone()));
    removed
}

/// Returns a value without its notation, to compare it. `None`: it is too large for its type.
fn plain(value: &DeValue<'_>) -> Option<toml::Value> {
    toml::Value::deserialize(Spanned::new(0..0, value.clone()).into_deserializer()).ok()
}

/// Writes a key as TOML does, with quotes where a part needs them.
fn join(path: &[String]) -> String {
    path.iter().map(|part| Key::new(part).to_string()).collect::<Vec<_>>().join(".")
}
