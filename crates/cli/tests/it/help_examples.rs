//! The examples that help ends with run as they are pasted, at a small size and for a short time.

use std::collections::BTreeSet;

use crate::docs::{GUIDES, with_commands};
use crate::docs_examples::{commands, reader, shell};
use crate::support::Rig;

/// Commands whose examples another test runs.
const ELSEWHERE: [(&str, &str); 4] = [
    ("backup", "client programs may be older than the server: backup.rs runs it on an older one"),
    ("backup rehearse", "the same"),
    ("backup check", "the same"),
    ("testdb serve", "serves until Ctrl-C: testdb_serve.rs sends its requests"),
];
/// Examples that use the results of an earlier command: a part of them, and what a reader has done before.
const BEFORE: [(&str, &str); 7] = [
    (
        "pgrig completions",
        "HOME=$PWD && mkdir -p ~/.local/share/bash-completion/completions ~/.zfunc ~/.config/fish/completions",
    ),
    ("pgrig man", "HOME=$PWD"),
    ("--append", "pgrig fill -q --scale 1"),
    ("tps -S -c 8 -T 1 mydb", "pgrig fill -q --scale 1 -d mydb --drop"),
    ("runs export", "rm -f ./*.runs.json"),
    ("runs rm 'try", "pgrig micro i -q --budget 1s --label try-1"),
    ("server restart", "pgrig server start -q"),
];

/// The commands after `Examples:`.
fn examples(help: &str) -> Vec<String> {
    let section = help.split("\nExamples:\n").nth(1).unwrap_or_default();
    let section = section.replace("\\\n", "");
    section.lines().take_while(|line| line.starts_with("  ")).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn examples_of_help_run() {
    if ![testkit::Need::Clients, testkit::Need::Pytest].into_iter().all(testkit::require) {
        return;
    }
    let rig = Rig::new();
    // With rows in `shop`, and an empty database `copy`.
    let directory = reader(&rig, "-d shop -o");
    rig.done("server start -q");
    let made = shell(&rig, directory.path(), "pgrig server psql -- -qc 'CREATE DATABASE copy'");
    assert_eq!(made.code, Some(0), "{made:#?}");
    let mut without = BTreeSet::new();
    for verb in GUIDES.iter().flat_map(|(_, verbs)| *verbs) {
        for command in with_commands(&rig, verb) {
            let examples = examples(&rig.done(&format!("{command} --help")).stdout);
            if examples.is_empty() {
                without.insert(command);
                continue;
            }
            assert!((2..=6).contains(&examples.len()), "{command}: {examples:#?}");
            if ELSEWHERE.iter().any(|(elsewhere, _)| *elsewhere == command) {
                continue;
            }
            for example in examples {
                let mut script = commands(&rig, &format!("$ {example}"));
                if let Some((_, before)) = BEFORE.iter().find(|(part, _)| script.contains(part)) {
                    let (first, last) = script.rsplit_once('\n').unwrap();
                    script = format!("{first}\n{before}\n{last}");
                }
                let ran = shell(&rig, directory.path(), &script);
                // A machine may be too slow for a threshold.
                let is_done = ran.code == Some(0) || script.contains("--fail-if") && ran.code == Some(3);
                assert!(is_done, "{command} --help: {script}\n{ran:#?}");
            }
        }
    }
    rig.done("testdb drop --all");
    let verbs = GUIDES.iter().flat_map(|(_, verbs)| *verbs);
    let lacking: Vec<_> = verbs.filter(|verb| without.contains(**verb)).collect();
    assert!(lacking.is_empty(), "without examples: {lacking:?}");
}
