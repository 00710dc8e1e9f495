//! Text with emphasis. Nothing in it is escaped: each renderer escapes for its own format.

use longhaul_model::TargetName;

/// A line of text: spans from left to right.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text(pub Vec<Span>);

/// A part of a text with one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Visible text.
    pub text: String,
    /// Emphasis of the text.
    pub style: Style,
}

/// Emphasis of a part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Style {
    /// No emphasis.
    Plain,
    /// Important.
    Strong,
    /// A command, a path or a name in a program.
    Code,
    /// The name of a target. A page shows the target's mark before it.
    Target,
    /// A link to another page. Only HTML has links; `href` is a path on the dashboard.
    Link {
        /// Destination of the link.
        href: String,
    },
    /// A result with a meaning, shown by a colour beside its words.
    Toned(Tone),
}

/// Meaning of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Decided, or as it should be.
    Good,
    /// Decided, and without consequence.
    Neutral,
    /// Should be looked at.
    Warning,
    /// A failure.
    Bad,
}

impl Text {
    /// Creates an empty text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a text of the program itself; what stands between backticks in it is code. Text from elsewhere must not become elements
    /// of a page, so this takes only constants.
    pub fn constant(text: &'static str) -> Self {
        let styles = [Style::Plain, Style::Code];
        text.split('`')
            .zip(styles.iter().cycle())
            .fold(Self::new(), |text, (part, style)| text.with(part, style.clone()))
    }

    /// Adds text without emphasis.
    pub fn plain(self, text: impl Into<String>) -> Self {
        self.with(text, Style::Plain)
    }

    /// Adds important text.
    pub fn strong(self, text: impl Into<String>) -> Self {
        self.with(text, Style::Strong)
    }

    /// Adds a command, a path or a name in a program.
    pub fn code(self, text: impl Into<String>) -> Self {
        self.with(text, Style::Code)
    }

    /// Adds the name of a target.
    pub fn target(self, name: &TargetName) -> Self {
        self.with(name.to_string(), Style::Target)
    }

    /// Adds a link to another page of the dashboard.
    pub fn link(self, text: impl Into<String>, href: impl Into<String>) -> Self {
        self.with(text, Style::Link { href: href.into() })
    }

    /// Adds a result with a meaning.
    pub fn toned(self, text: impl Into<String>, tone: Tone) -> Self {
        self.with(text, Style::Toned(tone))
    }

    /// Adds text in a style; nothing if it is empty.
    pub fn with(mut self, text: impl Into<String>, style: Style) -> Self {
        let text = text.into();
        if !text.is_empty() {
            self.0.push(Span { text, style });
        }
        self
    }

    /// Adds another text.
    pub fn then(mut self, other: impl Into<Text>) -> Self {
        self.0.extend(other.into().0);
        self
    }

    /// Returns what a reader sees, without emphasis.
    pub fn content(&self) -> String {
        self.0.iter().map(|span| span.text.as_str()).collect()
    }

    /// Returns true if there is nothing to see.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::new().plain(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::new().plain(text)
    }
}

impl From<&TargetName> for Text {
    fn from(name: &TargetName) -> Self {
        Self::new().target(name)
    }
}
/// Breaks a text into lines of at most `width` characters, at spaces. A longer word has a line of its own.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    for word in text.split_whitespace() {
        match lines.last_mut().filter(|line| line.chars().count() + word.chars().count() < width) {
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_at_spaces() {
        let lines = wrapped(&"word ".repeat(40), 12);
        assert_eq!((lines.len(), lines[0].as_str()), (20, "word word"));
    }
}
