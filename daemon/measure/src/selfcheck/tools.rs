//! Checks of the operating system's tools that longhaul runs to get facts.

use crate::platform::{TOOLS, Tool, run_tool};

use super::check::{CheckAnswer, Expectation, Expectations, MachineCheck, MachineCheckMethod};
use super::shape;

/// Returns a check for each tool of this operating system.
pub fn checks() -> impl Iterator<Item = MachineCheck> {
    TOOLS.iter().map(check)
}

fn check(tool: &'static Tool) -> MachineCheck {
    let expectation = Expectation { text: tool.expected, source: tool.source };
    MachineCheck {
        name: tool.name,
        expected: Expectations { linux: expectation, macos: expectation },
        method: MachineCheckMethod::Tool(tool),
    }
}

impl MachineCheck {
    /// Runs the check and returns its answer.
    pub fn answer(&self) -> CheckAnswer {
        match self.method {
            MachineCheckMethod::Call(run) => run(),
            MachineCheckMethod::Tool(tool) => judge(tool, run_tool(tool).as_deref()),
        }
    }
}

/// Judges the output of a tool. The answer shows the shape of the output, without its values. `None` means that
/// the tool is missing or timed out.
pub fn judge(tool: &Tool, output: Option<&[u8]>) -> CheckAnswer {
    let is_json = tool.command.contains(&"JSON");
    match output {
        None => CheckAnswer::differs("not found, or no answer within 4 s"),
        Some([]) => CheckAnswer::unknown("no output"),
        Some(output) if is_json => match shape::json_shape(output) {
            Some(shape) => CheckAnswer::ok(shape),
            None => CheckAnswer::differs(format!("not JSON: {}", shape::text_shape(output))),
        },
        Some(output) => CheckAnswer::ok(shape::text_shape(output)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selfcheck::CheckOutcome;

    const JSON_TOOL: Tool =
        Tool { name: "nfsstat -m", command: &["nfsstat", "-m", "-f", "JSON"], expected: "", source: "" };

    #[test]
    fn tool_is_judged_by_its_output() {
        let judged = |output| judge(&JSON_TOOL, output);
        assert_eq!(
            judged(Some(br#"{"Client Info": {"/mnt/nas": 1}}"#)),
            CheckAnswer::ok("{Client Info: {1 × *: number}}")
        );
        assert_eq!(judged(None).verdict, CheckOutcome::Differs);
        assert_eq!(judged(Some(b"")).verdict, CheckOutcome::Unknown);
        assert_eq!(
            judged(Some(b"Client Info:\n")),
            CheckAnswer::differs("not JSON: 1 lines, keys: Client Info")
        );
    }
}
