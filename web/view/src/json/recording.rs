//! JSON of a recording: everything that its file has.

use longhaul_recording::{InitialState, Node, RecordedOperation, Recording};
use serde_json::{Value, json};

/// Returns everything that is kept in a recording, in the order of the file: what is known of the whole, a line for each path and
/// a line for each operation. Paths have numbers instead of names; the first is the recorded folder.
pub fn recording_lines(recording: &Recording) -> impl Iterator<Item = Value> + '_ {
    let nodes = (0..).zip(&recording.nodes).map(|(number, node)| path_line(number, node));
    [whole(recording)]
        .into_iter()
        .chain(nodes)
        .chain(recording.operations.iter().map(|one| operation_line(&one)))
}

fn whole(recording: &Recording) -> Value {
    // Destructured without `..`, so that the compiler reports a part that is missing here.
    let Recording { source, recorded_on, nodes, operations, mean_pauses, mean_sizes, times, account } =
        recording;
    json!({
        "source": source, "recorded_on": recorded_on, "paths": nodes.len(), "operations": operations.len(),
        "mean_pauses_ns_by_class": mean_pauses, "mean_sizes_bytes_by_class": mean_sizes, "times": times, "account": account,
    })
}

fn path_line(number: u32, Node { parent, kind, initial }: &Node) -> Value {
    let (before, bytes) = match initial {
        InitialState::Absent => ("absent", None),
        InitialState::Folder => ("folder", None),
        InitialState::Link => ("link", None),
        InitialState::File(size) => ("file", Some(size.floor())),
    };
    json!({ "path": number, "in": parent, "kind": kind, "before": before, "bytes_at_least": bytes })
}

fn operation_line(
    RecordedOperation { thread, pause, action, result, depth_in_open_folder }: &RecordedOperation,
) -> Value {
    json!({
        "thread": thread, "pause_us_at_least": pause.floor(), "action": action, "result": result,
        "names_from_open_folder": depth_in_open_folder,
    })
}

#[cfg(test)]
mod tests {
    use longhaul_recording::{Source, import, importer};

    use super::*;

    #[test]
    fn every_path_and_operation_has_a_line_and_no_name() {
        let trace = "7 1.000000 openat(AT_FDCWD, \"/share/secret/wedding.jpg\", O_RDONLY) = 3</share/secret/wedding.jpg> <0.000100>\n\
             7 1.000500 pread64(3</share/secret/wedding.jpg>, \"\"..., 5000, 0) = 4321 <0.000100>\n\
             7 1.001000 close(3</share/secret/wedding.jpg>) = 0 <0.000100>\n";
        let mut importer = importer(Source::Strace, b"/share").unwrap();
        let mut scrubber = longhaul_recording::Scrubber::new(b"/share");
        import(importer.as_mut(), &mut trace.as_bytes(), &mut scrubber).unwrap();
        let recording = scrubber.finish(Source::Strace, None);
        let lines: Vec<Value> = recording_lines(&recording).collect();
        assert_eq!(lines.len(), 1 + 3 + 3, "the whole, three paths, three operations");
        assert_eq!(
            lines[3],
            json!({ "path": 2, "in": 1, "kind": "image", "before": "file", "bytes_at_least": 4096 })
        );
        assert_eq!(
            lines[5]["action"]["read"],
            json!({ "handle": 0, "offset": 0, "length": 5000, "read": 4321 })
        );
        let text = format!("{lines:?}");
        assert!(!text.contains("secret") && !text.contains("wedding") && !text.contains("share"), "{text}");
    }
}
