//! The names of a replayed tree, generated from the numbers of its nodes.

use std::ffi::{CStr, CString};
use std::path::{Component, Path};

use crate::platform::NameBelow;
use longhaul_corpus::slices::MAX_SLICES;
use longhaul_recording::plan::PlannedNode;
use longhaul_recording::{FileKind, NodeNumber};

/// Extensions of generated names.
const EXTENSIONS: [&str; 9] = ["", ".jpg", ".mp4", ".mp3", ".pdf", ".c", ".zip", ".sqlite", ".tmp"];

const fn extension(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Other => EXTENSIONS[0],
        FileKind::Image => EXTENSIONS[1],
        FileKind::Video => EXTENSIONS[2],
        FileKind::Audio => EXTENSIONS[3],
        FileKind::Document => EXTENSIONS[4],
        FileKind::Source => EXTENSIONS[5],
        FileKind::Archive => EXTENSIONS[6],
        FileKind::Database => EXTENSIONS[7],
        FileKind::Temporary => EXTENSIONS[8],
    }
}

/// Returns the number of the node with this name; `None` for a name that is not generated.
pub fn parse_name(name: &[u8]) -> Option<u32> {
    let name = std::str::from_utf8(name).ok()?.strip_prefix('n')?;
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    let (number, extension) = name.split_at(digits);
    let parsed: u32 = number.parse().ok()?;
    (EXTENSIONS.contains(&extension) && parsed.to_string() == number).then_some(parsed)
}

/// Returns the name of the folder of a slice: the recording and the number of the slice.
pub fn slice_name(recording: u64, slice: u64) -> CString {
    CString::new(format!("{recording:016x}-{slice}")).expect("digits contain no NUL")
}

/// Returns whether a folder of a slice has this name.
pub fn is_slice_name(name: &str) -> bool {
    let parts = name.split_once('-');
    let parsed = parts
        .and_then(|(recording, slice)| Some((u64::from_str_radix(recording, 16).ok()?, slice.parse().ok()?)));
    parsed.is_some_and(|(recording, slice)| {
        slice < MAX_SLICES && slice_name(recording, slice).to_bytes() == name.as_bytes()
    })
}

/// Returns whether a path in the workload's folder is that of a replayed tree.
pub fn owns(path: &Path) -> bool {
    let mut parts = path.components();
    let is_slice = parts.next().and_then(|part| part.as_os_str().to_str()).is_some_and(is_slice_name);
    let is_name = |part: Component<'_>| match part {
        Component::Normal(name) => parse_name(name.as_encoded_bytes()).is_some(),
        _ => false,
    };
    is_slice && parts.clone().next().is_some() && parts.all(is_name)
}

/// The paths of all nodes, relative to the folder of a slice.
pub struct Paths {
    /// All paths, one after the other, each with its NUL.
    bytes: Vec<u8>,
    /// Span of each path in `bytes`, and the start of its name.
    spans: Vec<PathSpan>,
    parents: Vec<NodeNumber>,
}

struct PathSpan {
    begin: usize,
    name: usize,
    end: usize,
}

impl Paths {
    /// Makes the paths of a tree. Parents stand before their children.
    pub fn new(nodes: &[PlannedNode]) -> Self {
        let mut paths = Self {
            bytes: b".\0".to_vec(),
            spans: vec![PathSpan { begin: 0, name: 0, end: 2 }],
            parents: nodes.iter().map(|node| node.parent).collect(),
        };
        for (number, node) in nodes.iter().enumerate().skip(1) {
            let begin = paths.bytes.len();
            if node.parent.0 > 0 {
                let parent = &paths.spans[node.parent.0 as usize];
                let (first, last) = (parent.begin, parent.end - 1);
                paths.bytes.extend_from_within(first..last);
                paths.bytes.push(b'/');
            }
            let name = paths.bytes.len();
            paths.bytes.extend_from_slice(format!("n{number}{}\0", extension(node.kind)).as_bytes());
            paths.spans.push(PathSpan { begin, name, end: paths.bytes.len() });
        }
        paths
    }

    /// Returns the path of a node.
    pub fn path(&self, node: NodeNumber) -> &CStr {
        let place = &self.spans[node.0 as usize];
        self.text(place.begin, place.end)
    }

    /// Returns the place of a node: the path of its folder, and its name.
    pub fn name(&self, node: NodeNumber) -> NameBelow<'_> {
        self.name_from(NodeNumber(0), node)
    }

    /// Returns the path of a node from a folder above it.
    pub fn path_from(&self, folder: NodeNumber, node: NodeNumber) -> &CStr {
        let (above, place) = (&self.spans[folder.0 as usize], &self.spans[node.0 as usize]);
        match folder {
            NodeNumber(0) => self.path(node),
            _ if folder == node => c".",
            _ => self.text(place.begin + (above.end - above.begin), place.end),
        }
    }

    /// Returns the place of a node, with the path of its folder from a folder above it.
    pub fn name_from(&self, folder: NodeNumber, node: NodeNumber) -> NameBelow<'_> {
        let place = &self.spans[node.0 as usize];
        let parent = self.path_from(folder, self.parents[node.0 as usize]);
        NameBelow { parent, name: self.text(place.name, place.end) }
    }

    fn text(&self, begin: usize, end: usize) -> &CStr {
        CStr::from_bytes_with_nul(&self.bytes[begin..end]).expect("each path ends with its only NUL")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_recording::InitialState;

    #[test]
    fn only_generated_names_are_owned() {
        for path in ["0000000000000007-0/n1/n12.jpg", "00000000000000ff-3/n4"] {
            assert!(owns(Path::new(path)), "{path}");
        }
        for path in [
            "0000000000000007-0",
            "7-0/n1",
            "0000000000000007-64/n1",
            "0000000000000007-0/n01",
            "0000000000000007-0/diary.txt",
            "0000000000000007-0/n1/../n2",
            "0000000000000007-0/n1.exe",
            "n1",
        ] {
            assert!(!owns(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn paths_lead_from_the_slice_to_each_node() {
        let node = |parent| PlannedNode {
            parent: NodeNumber(parent),
            kind: FileKind::Image,
            initial: InitialState::Folder,
            bytes: 0,
            changes: false,
            file_changes: false,
        };
        let paths = Paths::new(&[node(0), node(0), node(1), node(2)]);
        assert_eq!(paths.path(NodeNumber(0)), c".");
        assert_eq!(paths.path(NodeNumber(3)), c"n1.jpg/n2.jpg/n3.jpg");
        let place = paths.name(NodeNumber(2));
        assert_eq!((place.parent, place.name), (c"n1.jpg", c"n2.jpg"));
        assert_eq!(paths.name(NodeNumber(1)).parent, c".");
        assert_eq!(paths.path_from(NodeNumber(1), NodeNumber(3)), c"n2.jpg/n3.jpg");
        let place = paths.name_from(NodeNumber(1), NodeNumber(3));
        assert_eq!((place.parent, place.name), (c"n2.jpg", c"n3.jpg"));
        assert_eq!(paths.name_from(NodeNumber(2), NodeNumber(3)).parent, c".");
    }
}
