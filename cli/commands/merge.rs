//! `longhaul merge`: merges the files of many machines, or checks them.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use longhaul_analysis::summary::Week;
use longhaul_commons::{MAX_FILE_BYTES, Merged, SharedFile, SharedResults, check, merge, read};
use longhaul_measure::platform;
use longhaul_view::{document_page, render, screens};

use crate::arguments::{MergeArgs, MergeCheckArgs, MergeCommand, MergeFormat};
use crate::{exit, render as terminal, result_file};

/// Merges files, or checks them.
pub fn run(arguments: &MergeArgs) -> anyhow::Result<ExitCode> {
    if let Some(MergeCommand::Check(check)) = &arguments.command {
        return Ok(check_files(check));
    }
    let merged = merge(arguments.files.iter().map(|path| checked(path)).collect());
    for file in &merged.refused {
        let path = given_path(&arguments.files, &file.file);
        crate::output::eprintln!("longhaul: left out {path}: {}", file.reason);
    }
    if merged.machines == 0 {
        return Ok(ExitCode::from(exit::NO_DATA));
    }
    let text = rendered(&merged, arguments.chosen_format())?;
    match &arguments.output {
        None => crate::output::print!("{text}"),
        Some(path) => result_file::write_text(path, &text)?,
    }
    Ok(exit::OK)
}

/// Returns the path that was given for a file of this name; the name alone if several files have it.
fn given_path(given: &[PathBuf], name: &str) -> String {
    let has_name = |path: &&PathBuf| file_name(path) == name;
    match given.iter().filter(has_name).collect::<Vec<_>>()[..] {
        [path] => path.display().to_string(),
        _ => name.to_owned(),
    }
}

fn rendered(merged: &Merged, format: MergeFormat) -> anyhow::Result<String> {
    let document = || screens::commons::merged(merged);
    Ok(match format {
        MergeFormat::Text => render::terminal::render(&document()),
        MergeFormat::Md => render::markdown::render(&document()),
        MergeFormat::Html => document_page("Results of many machines", &document()),
        MergeFormat::Json => serde_json::to_string_pretty(merged)? + "\n",
    })
}

/// Prints the contradictions in each file. A file that cannot be read is one, too.
fn check_files(arguments: &MergeCheckArgs) -> ExitCode {
    let mut code = exit::OK;
    for path in &arguments.files {
        let name = path.display().to_string();
        match load(path) {
            Err(reason) => {
                crate::output::print_line(format_args!("{name} is refused: {reason}"));
                code = ExitCode::from(exit::RUN_FAILED);
            }
            Ok(share) => {
                let findings = check(&share);
                terminal::print(&screens::commons::findings(&name, &findings));
                code = if findings.is_empty() { code } else { ExitCode::from(exit::RUN_FAILED) };
            }
        }
    }
    code
}

/// Reads a file and checks it.
fn checked(path: &Path) -> SharedFile {
    let content = load(path).and_then(|share| match check(&share).first() {
        None => Ok(share),
        Some(finding) => Err(format!("it contradicts itself ({finding}); `longhaul merge check` lists all")),
    });
    SharedFile { name: file_name(path), content }
}

/// Returns the name of a file without its folder, because the result may be published.
fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Reads a file, up to the largest size of such a file. The error continues a sentence that names the file.
fn load(path: &Path) -> Result<SharedResults, String> {
    let mut bytes = Vec::new();
    // Opening a pipe would wait for a writer.
    if std::fs::metadata(path).is_ok_and(|facts| !facts.is_file()) {
        return Err("it is not a regular file".to_owned());
    }
    let file = std::fs::File::open(path).map_err(|error| format!("it cannot be opened: {error}"))?;
    let mut limited = file.take(MAX_FILE_BYTES as u64 + 1);
    limited.read_to_end(&mut bytes).map_err(|error| format!("it cannot be read: {error}"))?;
    let today = platform::wall_clock().local_day(0);
    read(&bytes, Some(Week::of_day(today))).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_named_by_the_path_that_was_given() {
        let given = ["/a/one.json", "/a/two.json", "/b/two.json"].map(PathBuf::from);
        assert_eq!(given_path(&given, "one.json"), "/a/one.json");
        assert_eq!(given_path(&given, "two.json"), "two.json", "the name is of two files");
    }
}
