//! Finds the commit that pgrig is built from, for `--version` and run documents.
//!
//! In order: `PGRIG_COMMIT` in the environment (packagers), git, the `.cargo_vcs_info.json` of a published
//! crate. Without any of them the version says that the commit is unknown; the build never fails for it.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Sources of the binary, from the workspace's root. Other files may differ from the commit.
const SOURCES: [&str; 6] = [
    ":(exclude)crates/testkit",
    ":(glob)crates/*/src/**",
    ":(glob)crates/*/build.rs",
    ":(glob)crates/*/Cargo.toml",
    "Cargo.toml",
    "Cargo.lock",
];
/// Hexadecimal digits of a commit that are shown.
const DIGITS: usize = 12;
/// Published with the crate by `cargo publish`.
const PUBLISHED: &str = ".cargo_vcs_info.json";

fn main() {
    println!("cargo::rerun-if-env-changed=PGRIG_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let version = env!("CARGO_PKG_VERSION");
    let commit = named().or_else(from_git).or_else(published).unwrap_or_else(|| "commit unknown".to_owned());
    println!("cargo::rustc-env=PGRIG_VERSION={version} ({commit})");
}

/// The commit that the packager names.
fn named() -> Option<String> {
    let commit = env::var("PGRIG_COMMIT").ok()?;
    let commit = commit.trim();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._+~-".contains(c);
    if commit.is_empty() {
        return None;
    }
    if !commit.chars().all(is_plain) {
        println!("cargo::warning=PGRIG_COMMIT may have only letters, digits and ._+~-; it is ignored");
        return None;
    }
    Some(format!("commit {commit}"))
}

/// The commit of the work tree, and whether the sources differ from it.
fn from_git() -> Option<String> {
    // A tarball may be unpacked inside another project's work tree.
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    rerun_with_git()?;
    let commit = git(&["rev-parse", "--verify", "HEAD"])?;
    let commit = commit.get(..DIGITS)?;
    let root = git(&["rev-parse", "--show-toplevel"])?;
    let mut status = vec!["-C", &root, "--no-optional-locks", "status", "--porcelain", "--"];
    status.extend(SOURCES);
    let dirty = if git(&status)?.is_empty() { "" } else { ", dirty" };
    Some(format!("commit {commit}{dirty}"))
}

/// Runs this script again after a commit, a checkout, or a change of the sources.
fn rerun_with_git() -> Option<()> {
    let root = Path::new(&git(&["rev-parse", "--show-toplevel"])?).to_owned();
    let manifest = env::var_os("CARGO_MANIFEST_DIR")?;
    let manifest = Path::new(&manifest);
    let path_of = |name: &str| Some(manifest.join(git(&["rev-parse", "--git-path", name])?));
    // The reflog grows with each commit; unlike the index, `git status` leaves it as it is.
    let log = path_of("logs/HEAD")?;
    let moves = if log.is_file() { log } else { path_of("index")? };
    let mut watched = vec![path_of("HEAD")?, moves, root.join("Cargo.toml"), root.join("Cargo.lock")];
    let crates = fs::read_dir(root.join("crates")).ok()?.flatten();
    for entry in crates.filter(|entry| entry.file_name() != "testkit") {
        watched.extend(["src", "build.rs", "Cargo.toml"].map(|part| entry.path().join(part)));
    }
    // Cargo would run this script each time for a file that does not exist.
    for path in watched.iter().filter(|path| path.exists()) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    Some(())
}

/// The commit that this crate was published from.
fn published() -> Option<String> {
    println!("cargo::rerun-if-changed=Cargo.toml");
    let text = fs::read_to_string(PUBLISHED).ok()?;
    let commit = text.split("\"sha1\"").nth(1)?.split('"').nth(1)?;
    let commit = commit.get(..DIGITS).filter(|digits| digits.chars().all(|c| c.is_ascii_hexdigit()))?;
    let dirty = if text.contains("\"dirty\": true") { ", dirty" } else { "" };
    Some(format!("commit {commit}{dirty}"))
}

/// Output of git; none if it fails or is not installed.
fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim_end().to_owned())
}
