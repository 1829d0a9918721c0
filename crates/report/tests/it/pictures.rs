//! The plots in the book are those of the documents beside these tests: `just pictures`.

use std::fs;
use std::path::Path;

use report::svgs;

use crate::document;

/// Document and plot.
const SHOWN: [(&str, &str); 8] = [
    ("tps", "tps-latency.svg"),
    ("micro", "micro-differences.svg"),
    ("blockio", "blockio-steps.svg"),
    ("alternatives", "ddl-locks.svg"),
    ("alternatives", "ddl-queue.svg"),
    ("matrix", "tps-matrix-cells.svg"),
    ("backup", "backup-sizes.svg"),
    ("backup", "backup-restore.svg"),
];

#[test]
fn plots_in_the_book_are_those_of_real_documents() {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src");
    let shown = SHOWN.map(|(name, plot)| {
        let drawn = svgs(&[document(name)]);
        let found = drawn.iter().find(|(drawn, _)| drawn == plot);
        let names: Vec<&String> = drawn.iter().map(|(name, _)| name).collect();
        (book.join("plots").join(plot), found.unwrap_or_else(|| panic!("{plot} of {names:?}")).1.clone())
    });
    if std::env::var_os("DOCS").is_some_and(|value| value == "overwrite") {
        for (file, svg) in &shown {
            fs::write(file, svg).unwrap();
        }
    }
    for (file, svg) in &shown {
        let name = file.display();
        assert!(fs::read_to_string(file).unwrap() == *svg, "{name} is another drawing: just pictures");
    }
    let kept = fs::read_dir(book.join("plots")).unwrap().count();
    assert_eq!(kept, SHOWN.len(), "a plot in docs/src/plots is none of these");
    let pages = pages(&book) + &fs::read_to_string(book.join("../../README.md")).unwrap();
    for (_, plot) in SHOWN {
        assert!(pages.contains(&format!("plots/{plot})")), "no page shows {plot}");
    }
}

/// The text of all pages below a directory.
fn pages(directory: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text += &pages(&path);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            text += &fs::read_to_string(&path).unwrap();
        }
    }
    text
}
