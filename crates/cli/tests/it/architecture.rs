//! What documents say of the sources: ARCHITECTURE.md names every crate and every folder of sources
//! below one, README.md has all specifications of columns.

use std::fs;
use std::path::{Path, PathBuf};

fn folders(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

#[test]
fn every_crate_and_folder_is_named() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let crates = folders(&root.join("crates"));
    assert!(!crates.is_empty());
    for path in crates {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(
            text.contains(&format!("| `crates/{name}` |")),
            "ARCHITECTURE.md does not name crates/{name}"
        );
        for folder in folders(&path.join("src")) {
            let name = folder.file_name().unwrap().to_str().unwrap();
            assert!(
                text.contains(&format!("`{name}/`")),
                "ARCHITECTURE.md does not name {}",
                folder.display()
            );
        }
    }
}

#[test]
fn the_table_of_specifications_is_that_of_the_source() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let source = fs::read_to_string(root.join("crates/rowgen/src/spec/mod.rs")).unwrap();
    let lines = source.lines().filter_map(|line| line.strip_prefix("//! "));
    let table: Vec<&str> = lines.filter(|line| line.starts_with('|')).collect();
    assert!(table.len() > 10, "{table:#?}");
    let table = table.join("\n");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    assert!(readme.contains(&table), "README.md's table is not:\n{table}");
}
