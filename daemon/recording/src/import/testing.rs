//! A sink for tests that writes down events as text.

use std::time::Duration;

use crate::{Note, TraceEvent, TraceSink};

/// Events and notes as text.
#[derive(Default)]
pub(crate) struct Written {
    pub(crate) events: Vec<String>,
    pub(crate) notes: Vec<String>,
    /// Times at which the events began.
    pub(crate) began: Vec<Duration>,
}

impl TraceSink for Written {
    fn event(&mut self, event: &TraceEvent<'_>) {
        self.began.push(event.time.began);
        let mut paths = vec![];
        let action = event.action.clone().with_paths(&mut |path| {
            paths.push(String::from_utf8_lossy(path).into_owned());
            b""
        });
        let text = format!("{action:?}").replace("path: [], ", "").replace("path: [] ", "");
        let place = event
            .depth_in_open_folder
            .map(|depth| format!(" {depth} below an open folder"))
            .unwrap_or_default();
        self.events
            .push(format!("{} {text} {:?}{place}", paths.join(" -> "), event.result).trim().to_owned());
    }

    fn note(&mut self, note: Note<'_>) {
        if note != Note::Line {
            let text = match note {
                Note::UnknownCall { name, path } => {
                    format!("unknown {name} {}", String::from_utf8_lossy(path.unwrap_or_default()))
                }
                Note::AddedOpening { path } => format!("added {}", String::from_utf8_lossy(path)),
                other => format!("{other:?}"),
            };
            self.notes.push(text);
        }
    }
}
