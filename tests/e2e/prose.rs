//! Tests of the documentation: the check `.ci/prose` finds bad words, and every link has a target.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs `.ci/prose` on a file with this content.
fn check(name: &str, content: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    std::fs::write(&file, content).unwrap();
    Command::new(root().join(".ci/prose")).arg(file).output().unwrap()
}

#[test]
fn private_words_are_detected() {
    let bad = [
        ("a.rs", "/// What it is.\npub struct Name;\n"),
        ("a.rs", "/// Which one it is.\npub struct Name;\n"),
        ("a.rs", "/// The name.\npub struct Desk;\n"),
        ("a.rs", "mod booking;\n"),
        ("a.md", "As long as somebody looks.\n"),
        ("a.snap", " target | hung for |\n"),
    ];
    for (name, content) in bad {
        let output = check(name, content);
        assert_eq!(output.status.code(), Some(1), "{content}");
        assert!(String::from_utf8_lossy(&output.stdout).contains(name), "{content}");
    }
}

#[test]
fn plain_words_pass() {
    let good = [
        ("a.rs", "/// The name of a target.\n/// What follows may begin with any word.\npub struct Name;\n"),
        ("a.md", "A user reads this.\n"),
    ];
    for (name, content) in good {
        assert!(check(name, content).status.success(), "{content}");
    }
}

/// Collects every Markdown file outside of build folders.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !["target", ".git", "node_modules", "book"].contains(&name.as_str()) {
            pages(&path, found);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// Returns the link targets in a page, without those in code.
fn links(text: &str) -> Vec<String> {
    let mut is_code = false;
    let prose = text.lines().filter(|line| {
        is_code ^= line.trim_start().starts_with("```");
        !is_code
    });
    let prose: String = prose.flat_map(|line| [line, "\n"]).collect();
    let outside = prose.split('`').step_by(2).collect::<Vec<_>>().join("");
    outside
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(link, _)| link.to_owned())
        .collect()
}

/// Returns the anchors of a page's headings, as GitHub and mdBook generate them.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_has_a_target() {
    let (mut found, mut broken) = (vec![], vec![]);
    pages(root(), &mut found);
    assert!(found.len() > 30, "{found:?}");
    for page in &found {
        let text = std::fs::read_to_string(page).unwrap();
        for link in
            links(&text).into_iter().filter(|link| !link.contains("://") && !link.starts_with("mailto:"))
        {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
            let has_anchor =
                || anchors(&std::fs::read_to_string(&target).unwrap()).contains(&anchor.to_owned());
            if !target.exists() || !(anchor.is_empty() || has_anchor()) {
                broken.push(format!("{}: {link}", page.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let mut found = vec![];
    pages(&root().join("docs"), &mut found);
    let listed = links(&summary);
    let missing: Vec<_> = found
        .iter()
        .map(|page| page.strip_prefix(root().join("docs")).unwrap().display().to_string())
        .filter(|page| page != "SUMMARY.md" && !listed.contains(page))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
