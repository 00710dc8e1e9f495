//! A dialogue: questions with a proposal, answers.

use std::io::{self, BufRead, Write};

/// Somebody who answers.
pub trait Ask {
    /// Says something.
    fn tell(&mut self, text: &str);

    /// Asks; an empty answer is the proposal.
    ///
    /// # Errors
    ///
    /// If nobody is there any more.
    fn ask(&mut self, question: &str, proposal: &str) -> io::Result<String>;
}

/// Asks again until an answer has a meaning, and says each time what is wrong.
pub fn until<T>(
    ask: &mut dyn Ask,
    (question, proposal): (&str, &str),
    mut meaning: impl FnMut(&str) -> Result<T, String>,
) -> io::Result<T> {
    loop {
        match meaning(&ask.ask(question, proposal)?) {
            Ok(found) => return Ok(found),
            Err(wrong) => ask.tell(&format!("{wrong}.")),
        }
    }
}

/// Asks for yes or no.
pub fn yes(ask: &mut dyn Ask, question: &str, proposal: Answer) -> io::Result<bool> {
    let proposal = match proposal {
        Answer::Yes => "yes",
        Answer::No => "no",
    };
    until(ask, (question, proposal), |answer| match answer.to_lowercase().as_str() {
        "y" | "yes" => Ok(true),
        "n" | "no" => Ok(false),
        _ => Err("Answer yes or no".to_owned()),
    })
}

/// What a question for yes or no proposes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Yes.
    Yes,
    /// No.
    No,
}

/// The person at standard input and output.
pub struct Person;

impl Ask for Person {
    fn tell(&mut self, text: &str) {
        anstream::println!("{text}");
    }

    fn ask(&mut self, question: &str, proposal: &str) -> io::Result<String> {
        anstream::print!("{question} [{proposal}] ");
        io::stdout().flush()?;
        let mut answer = String::new();
        if io::stdin().lock().read_line(&mut answer)? == 0 {
            let why =
                "the answers ended before the questions; nothing was written. For scripts there is --yes";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
        }
        Ok(if answer.trim().is_empty() { proposal.to_owned() } else { answer.trim().to_owned() })
    }
}

/// Somebody whose answers are known beforehand, for tests.
#[cfg(test)]
pub mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// The answers, and all that was said.
    pub struct Script {
        answers: VecDeque<&'static str>,
        /// What was told and asked.
        pub said: String,
    }

    impl Script {
        /// Gives these answers, in order.
        pub fn new(answers: &[&'static str]) -> Self {
            Self { answers: answers.iter().copied().collect(), said: String::new() }
        }
    }

    impl Ask for Script {
        fn tell(&mut self, text: &str) {
            self.said.push_str(text);
            self.said.push('\n');
        }

        fn ask(&mut self, question: &str, proposal: &str) -> io::Result<String> {
            self.tell(&format!("{question} [{proposal}]"));
            let answer = self.answers.pop_front().ok_or(io::ErrorKind::UnexpectedEof)?;
            Ok(if answer.is_empty() { proposal } else { answer }.to_owned())
        }
    }

    #[test]
    fn a_question_is_asked_until_the_answer_has_a_meaning() {
        let mut script = Script::new(&["perhaps", "", "Y"]);
        assert!(!yes(&mut script, "Well?", Answer::No).unwrap());
        assert!(script.said.contains("Answer yes or no"), "{}", script.said);
        assert!(yes(&mut script, "Well?", Answer::No).unwrap());
        assert!(yes(&mut script, "Well?", Answer::No).is_err(), "nobody answers any more");
    }
}
