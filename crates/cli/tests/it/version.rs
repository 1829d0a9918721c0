//! Version of pgrig: the same text for every verb, with the commit; and how the build script finds the commit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[test]
fn every_verb_prints_the_version_of_pgrig() {
    let version = |verb: &str| {
        let words = verb.split_whitespace();
        printed(Command::new(env!("CARGO_BIN_EXE_pgrig")).args(words).arg("-V"))
    };
    let own = version("");
    assert!(own.starts_with(&format!("pgrig {} (commit ", env!("CARGO_PKG_VERSION"))), "{own}");
    for verb in ["fill", "size", "blockio", "micro", "tps", "testdb", "testdb new", "compare", "server start"]
    {
        assert_eq!(version(verb), own, "{verb}");
    }
}

/// A copy of the build script, compiled, in a source tree of its own.
struct Tree {
    dir: TempDir,
    script: PathBuf,
}

impl Tree {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("build-script");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs");
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        printed(
            Command::new(rustc)
                .env("CARGO_PKG_VERSION", "1.2.3")
                .args(["--edition", "2024", "--crate-name", "build_script", "-o"])
                .args([&script, &source]),
        );
        fs::create_dir_all(dir.path().join("tree/crates/cli/src")).unwrap();
        let tree = Self { dir, script };
        for file in
            ["Cargo.toml", "Cargo.lock", "crates/cli/Cargo.toml", "crates/cli/src/main.rs", "README.md"]
        {
            tree.write(file, "");
        }
        tree
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("tree")
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.root().join(path), text).unwrap();
    }

    /// A command that sees no repository, configuration or commit from outside.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env("HOME", self.dir.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CEILING_DIRECTORIES", self.dir.path())
            .env("CARGO_MANIFEST_DIR", self.root().join("crates/cli"))
            .env_remove("GIT_DIR")
            .env_remove("PGRIG_COMMIT");
        command
    }

    fn git(&self, arguments: &str) -> String {
        let author = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
        let mut git = self.command("git");
        printed(git.current_dir(self.root()).args(author).args(arguments.split_whitespace()))
    }

    /// The version that the build script gives the program.
    fn version(&self, commit: Option<&str>) -> String {
        let mut script = self.command(&self.script);
        let script = script.current_dir(self.root().join("crates/cli"));
        let output = printed(script.envs(commit.map(|commit| ("PGRIG_COMMIT", commit))));
        let line = output.lines().find_map(|line| line.strip_prefix("cargo::rustc-env=PGRIG_VERSION="));
        line.unwrap_or_else(|| panic!("no version in {output}")).to_owned()
    }
}

#[test]
fn a_source_tree_without_git_has_no_commit_unless_it_is_named() {
    let tree = Tree::new();
    assert_eq!(tree.version(None), "1.2.3 (commit unknown)");
    assert_eq!(tree.version(Some("")), "1.2.3 (commit unknown)");
    assert_eq!(tree.version(Some("v1.2.3-4")), "1.2.3 (commit v1.2.3-4)");
    assert_eq!(tree.version(Some("a\nb")), "1.2.3 (commit unknown)");
    // A crate from a registry.
    let published =
        r#"{ "git": { "sha1": "0123456789abcdef0123456789abcdef01234567" }, "path_in_vcs": "crates/cli" }"#;
    tree.write("crates/cli/.cargo_vcs_info.json", published);
    assert_eq!(tree.version(None), "1.2.3 (commit 0123456789ab)");
    // A tarball in the work tree of another project.
    fs::remove_file(tree.root().join("crates/cli/.cargo_vcs_info.json")).unwrap();
    tree.git("init -q");
    tree.git("commit -q --allow-empty -m other");
    assert_eq!(tree.version(None), "1.2.3 (commit unknown)");
}

#[test]
fn a_work_tree_has_the_commit_and_is_dirty_when_sources_differ() {
    let tree = Tree::new();
    tree.git("init -q");
    tree.git("add .");
    tree.git("commit -q -m first");
    let clean = format!("1.2.3 (commit {})", &tree.git("rev-parse HEAD")[..12]);
    let dirty = clean.replace(')', ", dirty)");
    assert_eq!(tree.version(None), clean);
    // The program is not made of these.
    tree.write("README.md", "more");
    assert_eq!(tree.version(None), clean);
    tree.write("crates/cli/src/main.rs", "fn main() {}");
    assert_eq!(tree.version(None), dirty);
    assert_eq!(tree.version(Some("f00")), "1.2.3 (commit f00)");
    tree.git("checkout -q -- crates");
    tree.write("crates/cli/src/untracked.rs", "");
    assert_eq!(tree.version(None), dirty);
    tree.git("add crates");
    tree.git("commit -q -m second");
    let next = tree.version(None);
    assert!(next != clean && !next.contains("dirty"), "{next}");
}
