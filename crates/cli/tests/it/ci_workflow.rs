//! The workflow of docs/src/how-to/slower-commit.md: its steps, as a runner runs them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::docs::{blocks, root};
use crate::support::{Ran, Rig};

/// A step that runs commands.
#[derive(Debug)]
struct Step {
    name: String,
    always: bool,
    script: String,
}

fn page() -> String {
    fs::read_to_string(root().join("docs/src/how-to/slower-commit.md")).unwrap()
}

/// The steps of the workflow that run commands, but for the installation.
fn steps() -> Vec<Step> {
    let page = page();
    let (_, workflow) = page.split_once("```yaml\n").unwrap();
    let (workflow, _) = workflow.split_once("\n```").unwrap();
    let (_, steps) = workflow.split_once("    steps:\n").unwrap();
    let steps = steps.split("      - ").filter_map(|step| {
        let (head, script) = step.split_once("run: |\n")?;
        let name = head.strip_prefix("name: ")?.lines().next()?.to_owned();
        let script = script.lines().map(|line| line.trim_start().to_owned() + "\n").collect();
        Some(Step { name, always: head.contains("if: always()"), script })
    });
    steps.filter(|step| step.name != "install pgrig").collect()
}

/// A checkout of two commits, beside a home with a small server.
struct Job {
    rig: Rig,
    place: PathBuf,
}

impl Job {
    fn new() -> Self {
        let rig = Rig::new();
        rig.done("server start --set shared_buffers=128MB --set max_wal_size=1GB");
        let place = rig.home.path().join("job");
        fs::create_dir(&place).unwrap();
        Self { rig, place }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.place.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// As the runner does: bash, which ends at the first error.
    fn shell(&self, script: &str) -> Ran {
        let pgrig = Path::new(env!("CARGO_BIN_EXE_pgrig")).parent().unwrap();
        let path = format!("{}:{}", pgrig.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("bash");
        for (name, value) in self.rig.command("").get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let environment = [("LABEL", "pr-1"), ("ROWS", "20000"), ("ROUNDS", "6"), ("DURATION", "200ms")];
        shell.args(["-e", "-c", script]).env("PATH", path).envs(environment);
        shell.env("GITHUB_STEP_SUMMARY", self.place.join("summary.md"));
        Ran::from(shell.current_dir(&self.place).stdin(Stdio::null()).output().unwrap())
    }

    /// Runs the steps; the exit status and the output of `compare`.
    fn run(&self) -> Ran {
        let mut compared = None;
        let mut has_failed = false;
        for step in steps() {
            if has_failed && !step.always {
                continue;
            }
            let ran = self.shell(&step.script);
            has_failed |= ran.code != Some(0);
            if step.name == "compare" {
                compared = Some(ran);
            } else {
                assert_eq!(ran.code, Some(0), "{step:#?}: {ran:#?}");
            }
        }
        compared.unwrap()
    }
}

const INDEXED: &str = "CREATE TABLE item (id bigint PRIMARY KEY, owner int NOT NULL, name text);\nCREATE INDEX ON item (owner);\n";
const PLAIN: &str = "CREATE TABLE item (id bigint PRIMARY KEY, owner int NOT NULL, name text);\n";
const LOOKUP: &str = "\\set owner random(1, 1000000)\nSELECT count(*) FROM item WHERE owner = :owner;\n";

#[test]
fn a_commit_that_loses_an_index_fails_the_job() {
    if !testkit::require(testkit::Need::Clients) {
        return;
    }
    let names: Vec<String> = steps().into_iter().map(|step| step.name).collect();
    assert_eq!(names, ["a database for each commit", "compare", "report"]);
    for (base, head, code, verdict) in [(INDEXED, PLAIN, 3, "regressed"), (PLAIN, INDEXED, 0, "improved")] {
        let job = Job::new();
        job.write("base/schema.sql", base);
        job.write("head/schema.sql", head);
        job.write("head/bench.sql", LOOKUP);
        let ran = job.run();
        assert_eq!(ran.code, Some(code), "{ran:#?}");
        let level = if code == 3 { "error" } else { "notice" };
        let annotation = format!("::{level} title=pgrig ab%2C b beside a::tps: tps {verdict}: ");
        assert!(ran.stdout.contains(&annotation), "{ran:#?}");
        let summary = fs::read_to_string(job.place.join("summary.md")).unwrap();
        assert!(summary.starts_with(&format!("**verdict: {verdict}: `tps` (")), "{summary}");
        let page = fs::read_to_string(job.place.join("performance/report.html")).unwrap();
        assert!(page.contains("<svg"), "{page}");
        // Beside it: all runs that count, from which anybody finds the same.
        let ran = job.shell(
            "pgrig runs rm 'pr-1-*' > removed; pgrig runs import performance/runs.json; \
             pgrig compare --paired --anyway --figures tps pr-1-a pr-1-b --json compared.json",
        );
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        let compared: Value =
            serde_json::from_str(&fs::read_to_string(job.place.join("compared.json")).unwrap()).unwrap();
        assert_eq!(compared["compared"][0]["verdict"], verdict, "{compared:#}");
        assert_eq!(compared["baseline"].as_array().unwrap().len(), 6);
    }
}

#[test]
fn stored_runs_are_compared() {
    let job = Job::new();
    job.rig.done("fill --scale 1");
    let block = blocks(&page()).1.into_iter().find(|block| block.text.contains("main.runs.json")).unwrap();
    let script = block.text.replace("-T 10s", "-T 200ms");
    let ran = job.shell(&script);
    // Both sides are the same commit, on a machine that others use, too.
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:#?}");
    assert!(ran.stdout.contains("title=pgrig compare::one side ran before the other"), "{ran:#?}");
    let summary = fs::read_to_string(job.place.join("summary.md")).unwrap();
    assert!(
        summary.contains("- baseline: `5 runs of tps \"main\"") && summary.contains("5 runs of tps \"head\""),
        "{summary}"
    );
}
