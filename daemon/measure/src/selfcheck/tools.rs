//! The tools of the operating system that longhaul asks for facts.

use crate::platform::{TOOLS, Tool};

use super::{Answer, Expectation, Expectations, MachineCheck, Question, shape};

/// A check for each tool of this system.
pub fn checks() -> impl Iterator<Item = MachineCheck> {
    TOOLS.iter().map(check)
}

fn check(tool: &'static Tool) -> MachineCheck {
    let expectation = Expectation { text: tool.expected, source: tool.source };
    MachineCheck {
        call: tool.call,
        expected: Expectations { linux: expectation, macos: expectation },
        question: Question::Tool(tool),
    }
}

/// What a tool printed, without its values.
pub fn judge(tool: &Tool, output: Option<&[u8]>) -> Answer {
    let is_json = tool.command.contains(&"JSON");
    match output {
        None => Answer::differs("it is not there, or gave no answer within 4 s"),
        Some([]) => Answer::unknown("it printed nothing"),
        Some(output) if is_json => match shape::of_json(output) {
            Some(shape) => Answer::ok(shape),
            None => Answer::differs(format!("no JSON: {}", shape::of_text(output))),
        },
        Some(output) => Answer::ok(shape::of_text(output)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selfcheck::Verdict;

    const JSON_TOOL: Tool =
        Tool { call: "nfsstat -c", command: &["nfsstat", "-c", "-f", "JSON"], expected: "", source: "" };

    #[test]
    fn a_tool_is_judged_by_what_it_printed() {
        let judged = |output| judge(&JSON_TOOL, output);
        assert_eq!(
            judged(Some(br#"{"Client Info": {"/mnt/nas": 1}}"#)),
            Answer::ok("{Client Info: {1 × *: number}}")
        );
        assert_eq!(judged(None).verdict, Verdict::Differs);
        assert_eq!(judged(Some(b"")).verdict, Verdict::Unknown);
        assert_eq!(judged(Some(b"Client Info:\n")), Answer::differs("no JSON: 1 lines, keys: Client Info"));
    }
}
