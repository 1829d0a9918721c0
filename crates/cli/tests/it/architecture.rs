//! Documents agree with the sources: ARCHITECTURE.md names every crate on one page, each folder of sources says
//! what it is for, the guide to `fill` has all specifications of columns.

use std::fs;
use std::path::{Path, PathBuf};

fn folders(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

/// A folder without mod.rs holds no code: queries, data.
fn sources(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let sources = entries.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).count();
    assert_eq!(sources, 0, "{} has no mod.rs", folder.display());
    sources
}

#[test]
fn every_crate_and_folder_is_named() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let crates = folders(&root.join("crates"));
    assert!(!crates.is_empty());
    assert!(text.lines().count() <= 150, "ARCHITECTURE.md is longer than a page");
    for path in crates {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(
            text.contains(&format!("| `crates/{name}` |")),
            "ARCHITECTURE.md does not name crates/{name}"
        );
        for folder in folders(&path.join("src")) {
            let page = folder.join("mod.rs");
            let text = fs::read_to_string(&page).unwrap_or_else(|_| format!("//! {}", sources(&folder)));
            assert!(text.starts_with("//! "), "{} does not begin with what it is for", page.display());
        }
    }
}

/// Each is linked and started on its own; the unit tests are one more.
#[test]
fn a_crate_has_one_program_of_tests() {
    let crates = folders(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    let programs = |path: &PathBuf| -> Vec<PathBuf> {
        let entries =
            fs::read_dir(path.join("tests")).into_iter().flatten().map(|entry| entry.unwrap().path());
        let is_program = |path: &PathBuf| {
            path.extension().is_some_and(|extension| extension == "rs") || path.join("main.rs").exists()
        };
        entries.filter(is_program).collect()
    };
    let all: Vec<Vec<PathBuf>> = crates.iter().map(programs).collect();
    assert!(all.iter().flatten().count() > 5, "{all:?}");
    let several: Vec<&Vec<PathBuf>> = all.iter().filter(|programs| programs.len() > 1).collect();
    assert!(several.is_empty(), "{several:?}");
}

#[test]
fn the_tables_of_specifications_are_those_of_the_source() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let source = fs::read_to_string(root.join("crates/rowgen/src/spec/mod.rs")).unwrap();
    let guide = fs::read_to_string(root.join("docs/src/verbs/fill.md")).unwrap();
    let lines: Vec<&str> = source.lines().filter_map(|line| line.strip_prefix("//!")).collect();
    let tables = lines.split(|line| !line.starts_with(" |")).filter(|table| !table.is_empty());
    let tables: Vec<String> =
        tables.map(|table| table.iter().copied().map(str::trim).collect::<Vec<_>>().join("\n")).collect();
    assert_eq!(tables.len(), 2, "{tables:#?}");
    for table in tables {
        assert!(
            table.lines().count() > 5 && guide.contains(&table),
            "docs/src/verbs/fill.md has not:\n{table}"
        );
    }
}

/// Files of sources under a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let (folders, files): (Vec<_>, Vec<_>) =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).partition(|path| path.is_dir());
    files.into_iter().chain(folders.iter().flat_map(|folder| self::files(folder))).collect()
}

/// The modules of `cmd` that a source names.
fn named_in_cmd(source: &str) -> Vec<&str> {
    let names = source.split("crate::cmd::").skip(1);
    names.map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap()).collect()
}

/// `ab` reads command lines and ends as `compare` does; `size` answers for options of `fill`. The command line knows all
/// verbs.
const KNOWN: [(&str, &str); 5] =
    [("ab", "line"), ("ab", "compare"), ("completions", "line"), ("man", "line"), ("size", "fill")];
const ABOVE: [&str; 4] = ["files.rs", "line.rs", "mistakes", "mod.rs"];

#[test]
fn verbs_do_not_know_each_other_and_app_knows_none() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in files(&sources.join("app")) {
        let named = fs::read_to_string(&file).unwrap();
        assert!(!named.contains("crate::cmd"), "{} knows verbs", file.display());
    }
    let cmd = sources.join("cmd");
    let mut met = Vec::new();
    for file in files(&cmd) {
        let verb = file.strip_prefix(&cmd).unwrap().iter().next().unwrap().to_str().unwrap().to_owned();
        let source = fs::read_to_string(&file).unwrap();
        // Tests may read a whole command line.
        let source = source.split("#[cfg(test)]").next().unwrap();
        assert!(!source.contains("crate::cmd::{"), "{}: name one module at a time", file.display());
        for other in named_in_cmd(source).into_iter().filter(|other| *other != verb) {
            let is_known = KNOWN.contains(&(verb.as_str(), other)) || ABOVE.contains(&verb.as_str());
            assert!(is_known, "{}: {verb} knows {other}", file.display());
            met.push((verb.clone(), other.to_owned()));
        }
    }
    for (verb, other) in KNOWN {
        assert!(met.contains(&(verb.to_owned(), other.to_owned())), "{verb} no longer knows {other}");
    }
}
