//! Interactive questions with default answers.

use std::io::{self, BufRead, IsTerminal, Write};

use inquire::validator::MinLengthValidator;
use inquire::{InquireError, MultiSelect};
use longhaul_view::render::terminal::visible;

/// Asks a user questions; replaced by scripted answers in tests.
pub trait Prompter {
    /// Prints a text of one line.
    fn print(&mut self, text: &str);

    /// Asks a question. An empty answer selects the proposal.
    ///
    /// # Errors
    ///
    /// If the input has ended.
    fn ask(&mut self, question: &str, proposal: &str) -> io::Result<String>;

    /// Shows a list in which the user marks at least one entry. Returns the indices of the marked entries, or `None`
    /// if no terminal can show the list.
    ///
    /// # Errors
    ///
    /// If the user cancels the selection.
    fn choose(&mut self, _list: &ChoiceList) -> io::Result<Option<Vec<usize>>> {
        Ok(None)
    }
}

/// A list of which several entries can be chosen.
pub struct ChoiceList {
    /// Question above the list.
    pub question: &'static str,
    /// Entries of the list.
    pub entries: Vec<String>,
    /// Indices of the entries that are marked at first.
    pub proposal: Vec<usize>,
}

/// Repeats a question until the answer is valid, and prints the reason each time it is not.
pub fn ask_until_valid<T>(
    ask: &mut dyn Prompter,
    question: &str,
    proposal: &str,
    mut meaning: impl FnMut(&str) -> Result<T, String>,
) -> io::Result<T> {
    loop {
        match meaning(&ask.ask(question, proposal)?) {
            Ok(found) => return Ok(found),
            Err(wrong) => ask.print(&format!("{wrong}.")),
        }
    }
}

/// Asks a question that is answered with yes or no.
pub fn ask_yes_no(ask: &mut dyn Prompter, question: &str, proposal: DefaultAnswer) -> io::Result<bool> {
    let proposal = match proposal {
        DefaultAnswer::Yes => "yes",
        DefaultAnswer::No => "no",
    };
    ask_until_valid(ask, question, proposal, |answer| match answer.to_lowercase().as_str() {
        "y" | "yes" => Ok(true),
        "n" | "no" => Ok(false),
        _ => Err("Answer yes or no".to_owned()),
    })
}

/// The default answer of a yes-or-no question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultAnswer {
    /// Yes is the default.
    Yes,
    /// No is the default.
    No,
}

/// Asks on standard output and reads answers from standard input.
pub struct TerminalPrompter;

impl Prompter for TerminalPrompter {
    fn print(&mut self, text: &str) {
        crate::output::print_line(text);
    }

    fn ask(&mut self, question: &str, proposal: &str) -> io::Result<String> {
        crate::output::print!("{}", question_line(question, proposal));
        io::stdout().flush()?;
        let mut answer = String::new();
        if io::stdin().lock().read_line(&mut answer)? == 0 {
            let why = "the input ended before all questions were answered; nothing was changed. In scripts, use --yes";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
        }
        Ok(if answer.trim().is_empty() { proposal.to_owned() } else { answer.trim().to_owned() })
    }

    fn choose(&mut self, list: &ChoiceList) -> io::Result<Option<Vec<usize>>> {
        // The list is drawn on standard error.
        if list.entries.is_empty() || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Ok(None);
        }
        let at_least_one = MinLengthValidator::new(1).with_message("Mark at least one with the space bar");
        let entries: Vec<String> = list.entries.iter().map(|entry| visible(entry)).collect();
        let chosen = MultiSelect::new(list.question, entries)
            .with_default(&list.proposal)
            .with_validator(at_least_one)
            .raw_prompt();
        match chosen {
            Ok(chosen) => Ok(Some(chosen.into_iter().map(|entry| entry.index).collect())),
            Err(InquireError::OperationCanceled | InquireError::OperationInterrupted) => {
                let why = "the selection was cancelled; nothing was written";
                Err(io::Error::new(io::ErrorKind::Interrupted, why))
            }
            Err(InquireError::IO(error)) => Err(error),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

/// Returns a question as it is shown, on one line, also if the name of a mount or file in it has line ends.
fn question_line(question: &str, proposal: &str) -> String {
    visible(&format!("{question} [{proposal}] "))
}

/// Scripted answers for tests.
#[cfg(test)]
pub mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Scripted answers, and everything that was printed.
    pub struct Script {
        answers: VecDeque<&'static str>,
        /// All output so far.
        pub output: String,
    }

    impl Script {
        /// Creates a script that gives these answers, in order.
        pub fn new(answers: &[&'static str]) -> Self {
            Self { answers: answers.iter().copied().collect(), output: String::new() }
        }
    }

    impl Prompter for Script {
        fn print(&mut self, text: &str) {
            self.output.push_str(text);
            self.output.push('\n');
        }

        fn ask(&mut self, question: &str, proposal: &str) -> io::Result<String> {
            self.print(&format!("{question} [{proposal}]"));
            let answer = self.answers.pop_front().ok_or(io::ErrorKind::UnexpectedEof)?;
            Ok(if answer.is_empty() { proposal } else { answer }.to_owned())
        }
    }

    #[test]
    fn name_in_a_question_forges_no_line() {
        let shown = question_line("Write to /m/a\nSaved.\u{1b}[2J?", "/m/\rb");
        assert_eq!(shown, "Write to /m/a\\nSaved.\\u{1b}[2J? [/m/\\rb] ");
    }

    #[test]
    fn question_is_repeated_until_the_answer_is_valid() {
        let mut script = Script::new(&["perhaps", "", "Y"]);
        assert!(!ask_yes_no(&mut script, "Well?", DefaultAnswer::No).unwrap());
        assert!(script.output.contains("Answer yes or no"), "{}", script.output);
        assert!(ask_yes_no(&mut script, "Well?", DefaultAnswer::No).unwrap());
        assert!(ask_yes_no(&mut script, "Well?", DefaultAnswer::No).is_err(), "the input has ended");
    }
}
