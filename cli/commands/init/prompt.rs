//! Interactive questions with default answers.

use std::io::{self, BufRead, Write};

/// Asks a user questions; replaced by scripted answers in tests.
pub trait Prompter {
    /// Prints a text.
    fn print(&mut self, text: &str);

    /// Asks a question. An empty answer selects the proposal.
    ///
    /// # Errors
    ///
    /// If the input has ended.
    fn ask(&mut self, question: &str, proposal: &str) -> io::Result<String>;
}

/// Repeats a question until the answer is valid, and prints the reason each time it is not.
pub fn ask_until_valid<T>(
    ask: &mut dyn Prompter,
    (question, proposal): (&str, &str),
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
    ask_until_valid(ask, (question, proposal), |answer| match answer.to_lowercase().as_str() {
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
        anstream::println!("{text}");
    }

    fn ask(&mut self, question: &str, proposal: &str) -> io::Result<String> {
        anstream::print!("{question} [{proposal}] ");
        io::stdout().flush()?;
        let mut answer = String::new();
        if io::stdin().lock().read_line(&mut answer)? == 0 {
            let why = "the input ended before all questions were answered; nothing was written. In scripts, use --yes";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
        }
        Ok(if answer.trim().is_empty() { proposal.to_owned() } else { answer.trim().to_owned() })
    }
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
    fn question_is_repeated_until_the_answer_is_valid() {
        let mut script = Script::new(&["perhaps", "", "Y"]);
        assert!(!ask_yes_no(&mut script, "Well?", DefaultAnswer::No).unwrap());
        assert!(script.output.contains("Answer yes or no"), "{}", script.output);
        assert!(ask_yes_no(&mut script, "Well?", DefaultAnswer::No).unwrap());
        assert!(ask_yes_no(&mut script, "Well?", DefaultAnswer::No).is_err(), "the input has ended");
    }
}
