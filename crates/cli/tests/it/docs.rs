//! README and the book: links lead somewhere, options exist, the options at the end of a guide are clap's.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::Rig;

/// The guides, and the verbs whose options each guide ends with. Commands of a verb follow it.
pub(crate) const GUIDES: [(&str, &[&str]); 16] = [
    ("fill", &["fill"]),
    ("model", &["model"]),
    ("size", &["size"]),
    ("blockio", &["blockio"]),
    ("tps", &["tps"]),
    ("micro", &["micro"]),
    ("ddl", &["ddl"]),
    ("backup", &["backup"]),
    ("testdb", &["testdb"]),
    ("compare", &["ab", "compare"]),
    ("merge", &["merge"]),
    ("report", &["report"]),
    ("runs", &["runs"]),
    ("server", &["server"]),
    ("doctor", &["doctor"]),
    ("completions", &["completions", "man"]),
];
/// The line of a guide after which everything is generated.
const GENERATED: &str =
    "<!-- Generated from here on: DOCS=overwrite cargo test -p pgrig --test it docs::guides_end -->";

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn markdown(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            markdown(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "md") {
            found.push(entry);
        }
    }
}

/// README, the other pages beside it, and the book.
fn pages() -> Vec<PathBuf> {
    let beside = [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "records/README.md",
    ];
    let mut pages: Vec<PathBuf> = beside.iter().map(|name| root().join(name)).collect();
    markdown(&root().join("docs/src"), &mut pages);
    pages
}

/// README and the book.
pub(crate) fn guides() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    markdown(&root().join("docs/src"), &mut pages);
    pages.sort();
    pages
}

/// A fenced block.
pub(crate) struct Block {
    /// The text after the fence: the language, and `not-run`.
    info: String,
    pub(crate) text: String,
    /// The comment before it that says why it does not run.
    pub(crate) reason: Option<String>,
}

impl Block {
    /// Whether it is of this language.
    pub(crate) fn is(&self, language: &str) -> bool {
        self.info.split(' ').next() == Some(language)
    }

    /// Whether a test runs it.
    pub(crate) fn is_run(&self) -> bool {
        self.info == "sh" || self.info == "console"
    }
}

/// Lines outside of fenced blocks, and the blocks.
pub(crate) fn blocks(text: &str) -> (String, Vec<Block>) {
    let (mut prose, mut blocks, mut open, mut last) = (String::new(), Vec::new(), None::<Block>, "");
    for line in text.lines().map(|line| line.strip_prefix("   ").unwrap_or(line)) {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (None, Some(info)) => {
                let reason = last.trim().strip_prefix("<!-- not run: ").map(str::to_owned);
                open = Some(Block { info: info.to_owned(), text: String::new(), reason });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.text.extend([line, "\n"]),
            (None, None) => prose.extend([line, "\n"]),
        }
        last = if line.trim().is_empty() { last } else { line };
    }
    (prose, blocks)
}

/// The anchor of a heading, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|char| char.is_alphanumeric() || " -_".contains(*char));
    kept.map(|char| if char == ' ' { '-' } else { char }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let (prose, _) = blocks(text);
    let headings = prose.lines().filter_map(|line| line.strip_prefix('#'));
    headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let (prose, _) = blocks(&text);
        for target in prose.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.starts_with("http") {
                continue;
            }
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let file = if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
            let is_there = file.exists();
            let is_heading = heading.is_empty()
                || is_there && anchors(&fs::read_to_string(&file).unwrap_or_default()).contains(heading);
            // A published book has its own pages only.
            let book = root().join("docs/src");
            let is_within =
                !page.starts_with(&book) || file.canonicalize().is_ok_and(|file| file.starts_with(&book));
            if !is_there || !is_heading || !is_within {
                broken.push(format!("{}: {target}", page.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// The book names files of the repository by their path.
#[test]
fn records_that_pages_name_exist() {
    let mut named = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let is_record = |path: &&str| {
            path.starts_with("records/2") && Path::new(path).extension().is_some_and(|name| name == "json")
        };
        for record in text.split('`').filter(is_record) {
            assert!(root().join(record).exists(), "{}: {record}", page.display());
            named += 1;
        }
    }
    assert!(named >= 10, "{named} records");
}

#[test]
fn the_summary_lists_every_page() {
    let summary = fs::read_to_string(root().join("docs/src/SUMMARY.md")).unwrap();
    let mut pages = Vec::new();
    markdown(&root().join("docs/src"), &mut pages);
    for page in pages {
        let name = page.strip_prefix(root().join("docs/src")).unwrap().display().to_string();
        let is_listed = name == "SUMMARY.md" || summary.contains(&format!("({name})"));
        assert!(is_listed, "SUMMARY.md does not list {name}");
    }
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.lines().count() <= 200, "README.md is longer than 200 lines");
}

/// With `DOCS=overwrite` the ends of the guides are written.
#[test]
fn guides_end_with_all_options_as_help_prints_them() {
    let rig = Rig::new();
    let mut described = BTreeSet::new();
    for (guide, verbs) in GUIDES {
        let path = root().join(format!("docs/src/verbs/{guide}.md"));
        let page = fs::read_to_string(&path).unwrap();
        let (written, _) = page.split_once(GENERATED).unwrap_or_else(|| panic!("{guide}.md: no {GENERATED}"));
        let mut whole = format!("{written}{GENERATED}\n");
        for verb in verbs {
            described.insert((*verb).to_owned());
            for command in with_commands(&rig, verb) {
                let help = rig.done(&format!("{command} --help")).stdout;
                write!(whole, "\n### pgrig {command}\n\n```text\n{}\n```\n", help.trim_end()).unwrap();
            }
        }
        if std::env::var("DOCS").is_ok_and(|value| value == "overwrite") {
            fs::write(&path, &whole).unwrap();
        }
        let page = fs::read_to_string(&path).unwrap();
        assert_eq!(page, whole, "{}: run the test with DOCS=overwrite", path.display());
    }
    let verbs: BTreeSet<String> = commands(&rig.done("--help").stdout).into_iter().collect();
    assert_eq!(described, verbs, "each verb has a guide");
}

/// A verb, and its commands.
pub(crate) fn with_commands(rig: &Rig, verb: &str) -> Vec<String> {
    let help = rig.done(&format!("{verb} --help")).stdout;
    let below = commands(&help).into_iter().map(|command| format!("{verb} {command}"));
    std::iter::once(verb.to_owned()).chain(below).collect()
}

/// The commands that a help text lists.
fn commands(help: &str) -> Vec<String> {
    let headings = ["\nCommands:\n", "\nCommands (verbs):\n"];
    let list = headings.iter().find_map(|heading| help.split(*heading).nth(1)).unwrap_or_default();
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn options_that_the_guides_name_exist() {
    let guides = GUIDES.map(|(guide, _)| root().join(format!("docs/src/verbs/{guide}.md")));
    let generated =
        |guide: &PathBuf| fs::read_to_string(guide).unwrap().split_once(GENERATED).unwrap().1.to_owned();
    let help: String = guides.iter().map(generated).collect();
    // Of pgbench, pg_dump and other programs that the guides speak of.
    let others = [
        "--schema-only",
        "--incremental",
        "--no-publications",
        "--no-subscriptions",
        "--encoding",
        "--init-steps",
        "--workspace",
        "--release",
        "--locked",
        "--path",
        "--file",
        "--jobs",
        "--log",
        "--log-prefix",
        "--aggregate-interval",
        "--sampling-rate",
        "--unlogged-tables",
        "--vacuum-all",
        "--progress-timestamp",
        "--verbose-errors",
        "--exit-on-abort",
        "--continue-on-error",
        "--report-latencies",
        "--debug",
        "--results",
        "--no-vacuum",
        "--kinds",
        "--trials",
        "--same",
        "--known",
        "--sizes-budget",
        "--pgrig",
        "--seconds",
        "--seeds",
        "--rows",
        "--minutes",
        "--from",
        "--cases",
        "--array",
        "--dependency",
        "--export",
        "--parsable",
        "--for",
        "--tail",
        "--timeout",
        "--from-literal",
        "--in-a-row",
        "--list",
        "--manifest-checksums",
        "--roles-only",
        "--tablespace-map-all",
        "--tablespace-mapping",
    ];
    let mut unknown = BTreeSet::new();
    let beside = [
        "README.md",
        "docs/src/start.md",
        "docs/src/faq.md",
        "docs/src/clouds.md",
        "docs/src/troubleshooting.md",
    ];
    let mut pages: Vec<PathBuf> = beside.iter().map(|name| root().join(name)).collect();
    for folder in ["verbs", "how-to"] {
        markdown(&root().join("docs/src").join(folder), &mut pages);
    }
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let written = text.split(GENERATED).next().unwrap();
        let words =
            written.split(|char: char| !(char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-'));
        for option in
            words.filter(|word| word.starts_with("--") && word.len() > 3 && !word.starts_with("---"))
        {
            let is_option =
                [' ', '=', '\n', '[', ',', '`'].iter().any(|end| help.contains(&format!("{option}{end}")));
            if !is_option && !others.contains(&option) {
                unknown.insert(format!("{}: {option}", page.file_name().unwrap().display()));
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}
