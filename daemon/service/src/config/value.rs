//! Validation of single values of the configuration file.

/// A problem at a byte offset in the configuration file.
pub struct InvalidValue {
    /// Byte offset of the value.
    pub offset: usize,
    /// Description of the problem and of a valid value.
    pub message: String,
}

impl InvalidValue {
    /// Creates a problem at this byte offset.
    pub fn new(offset: usize, message: impl Into<String>) -> Self {
        Self { offset, message: message.into() }
    }
}

/// Returns the value of a key if it lies within a range. `None`: the key is missing.
pub fn in_range<T: PartialOrd + std::fmt::Display>(
    value: Option<toml::Spanned<T>>,
    key: &str,
    range: std::ops::RangeInclusive<T>,
) -> Result<Option<T>, InvalidValue> {
    match value {
        Some(value) if !range.contains(value.get_ref()) => {
            let message = format!("`{key}` must be between {} and {}", range.start(), range.end());
            Err(InvalidValue::new(value.span().start, message))
        }
        value => Ok(value.map(toml::Spanned::into_inner)),
    }
}

/// Returns the problem of a value that has another type, of an unknown value, or of an unknown key. `text` is the file in which the
/// error was found.
pub(super) fn unreadable_value(text: &str, error: &toml::de::Error) -> InvalidValue {
    let offset = error.span().map_or(0, |span| span.start);
    let message = with_nearest_name(error.message());
    let message = match key_of_value(text, offset) {
        Some(key) => format!("`{key}`: {message}"),
        None => message,
    };
    InvalidValue::new(offset, message)
}

/// Returns the key whose value begins at a byte offset: `scale` in `scale = "huge"`. `None`: no value of a key begins there.
fn key_of_value(text: &str, offset: usize) -> Option<&str> {
    let line = text.get(..offset)?.rsplit('\n').next()?;
    let before = line.trim_end().strip_suffix('=')?.trim_end();
    let key = before.rsplit([' ', '\t', '{', ',']).next()?;
    let is_part_of_quoted = key.contains(['"', '\'']) && !(key.len() > 1 && key.starts_with(['"', '\'']));
    (!key.is_empty() && !is_part_of_quoted).then_some(key)
}

/// Turns "unknown field `x`, expected one of `a`, `b`" into a message that suggests the most similar known key. A value that
/// is an unknown variant gets the same.
fn with_nearest_name(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match quoted.split_first() {
        Some((unknown, known)) if message.starts_with("unknown field") => {
            format!("unknown key `{unknown}`{}", did_you_mean(unknown, known))
        }
        Some((unknown, known)) if message.starts_with("unknown variant") => match nearest(unknown, known) {
            Some(nearest) => format!("unknown value `{unknown}`; did you mean `{nearest}`?"),
            None => format!("unknown value `{unknown}`; it is one of {}", known.join(", ")),
        },
        _ => message.to_owned(),
    }
}

/// Returns the end of a message about an unknown name: the most similar known name, or all of them.
pub(super) fn did_you_mean(word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(nearest) => format!("; did you mean `{nearest}`?"),
        None => format!("; valid names are {}", known.join(", ")),
    }
}

/// Returns the most similar known name; `None` if none is similar.
fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let similarity = |name: &str| strsim::jaro_winkler(word, name);
    let nearest = known.iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    // 0.7: a typing error scores higher, an unrelated word lower.
    nearest.copied().filter(|nearest| similarity(nearest) > 0.7)
}
