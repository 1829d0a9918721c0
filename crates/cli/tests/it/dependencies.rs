//! The crates' dependencies are those of the picture in ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The crate that every other crate may use: classes of errors.
const EVERYBODYS: &str = "failure";

/// Each crate by its folder, and the crates of this workspace that it may use. The program itself may use all but
/// `testkit`.
const MAY_USE: [(&str, &[&str]); 22] = [
    ("backup", &["fill", "tps", "server", "connect", "dump", "pgserver", "measure", "model", "page"]),
    ("blockio", &["server", "connect", "measure"]),
    ("catalog", &["server", "connect", "model", "rowgen", "sql"]),
    ("connect", &[]),
    ("ddl", &["fill", "catalog", "server", "connect", "dump", "measure", "model", "script", "sql"]),
    ("dump", &["sql"]),
    ("failure", &[]),
    ("fill", &["catalog", "server", "connect", "dump", "measure", "page", "rowgen", "script", "sql"]),
    ("measure", &[]),
    ("micro", &["server", "connect", "measure", "sql"]),
    ("model", &["rowgen"]),
    ("page", &[]),
    ("pgserver", &[]),
    ("report", &["measure"]),
    ("rowgen", &[]),
    ("script", &[]),
    ("server", &["connect", "measure", "page"]),
    ("sql", &[]),
    ("testdb", &["tps", "server", "connect", "dump", "measure"]),
    ("testkit", &["pgserver", "connect"]),
    ("tps", &["server", "connect", "measure", "script"]),
    ("cli", &[]),
];

/// Crates by their folders, with those of ours that they use outside of tests.
fn used() -> BTreeMap<String, BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--no-deps", "--format-version", "1", "--offline"]).current_dir(root);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let folder = |path: &str| Path::new(path).file_name().unwrap().to_str().unwrap().to_owned();
    let of_package = |package: &Value| {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let ours = dependencies.filter(|dependency| dependency["kind"] != "dev");
        let ours = ours.filter_map(|dependency| dependency["path"].as_str().map(folder)).collect();
        (folder(manifest.parent().unwrap().to_str().unwrap()), ours)
    };
    metadata["packages"].as_array().unwrap().iter().map(of_package).collect()
}

#[test]
fn crates_use_only_what_the_picture_shows() {
    let used = used();
    let known: BTreeSet<&str> = MAY_USE.iter().map(|(name, _)| *name).collect();
    let there: BTreeSet<&str> = used.keys().map(String::as_str).collect();
    assert_eq!(there, known, "the crates of the picture, and those of the workspace");
    for (name, may_use) in MAY_USE {
        for other in &used[name] {
            assert_ne!(other, "testkit", "{name}: testkit is for tests only");
            let allowed = name == "cli" || other == EVERYBODYS || may_use.contains(&other.as_str());
            assert!(allowed, "{name} must not use {other}: see the picture in ARCHITECTURE.md");
        }
    }
}

/// Both licences ask for their text in each copy, and a crate is a copy.
#[test]
fn each_published_crate_contains_the_licences() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (name, _) in MAY_USE.iter().filter(|(name, _)| *name != "testkit") {
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let copy = root.join("crates").join(name).join(licence);
            let text = fs::read(root.join(licence)).unwrap();
            let there = fs::read(&copy).unwrap_or_default();
            assert!(there == text, "{} must be a copy of {licence}", copy.display());
        }
    }
}
