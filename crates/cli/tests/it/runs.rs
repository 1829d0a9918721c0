//! `pgrig runs`, and the words that name runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use serde_json::Value;
use testkit::until_some as until;

use crate::support::{Rig, Running};

/// The format of a later pgrig.
const NEWER: (&str, &str) = ("\"format_version\": 1", "\"format_version\": 2");

/// A directory of saved runs, made from the document of a real one.
struct Saved {
    rig: Rig,
    document: Value,
}

impl Saved {
    /// With one run, of `blockio`, which has the label `real`.
    fn new() -> Self {
        let rig = Rig::new();
        let server = rig.server("");
        let document = rig.document("blockio 10MB --trials 1 --label real");
        drop(server);
        rig.done("server stop");
        Self { rig, document }
    }

    fn directory(&self) -> PathBuf {
        self.rig.home.path().join("runs")
    }

    fn path(&self, id: &str) -> PathBuf {
        self.directory().join(format!("{id}.json"))
    }

    /// Another run, as pgrig writes documents.
    fn add(&self, minute: u32, verb: &str, label: Option<&str>, status: &str) -> String {
        // The number of a process is in it: none has this one.
        let id = format!("20260101T10{minute:02}00Z-{verb}-7fffffff00000000");
        let (verb, status) = (format!("\"verb\": \"{verb}\""), format!("\"status\": \"{status}\""));
        let started = format!("\"started_at\": \"2026-01-01T10:{minute:02}:00.5Z\"");
        let text = self.text(&id, &[("\"verb\": \"blockio\"", &verb), ("\"status\": \"done\"", &status)]);
        let text = text.replace(&format!("\"started_at\": {}", self.document["started_at"]), &started);
        let labelled = label.map_or_else(String::new, |label| format!("  \"label\": \"{label}\",\n"));
        let text = text.replace("  \"label\": \"real\",\n", &labelled);
        fs::write(self.path(&id), text).unwrap();
        id
    }

    /// The document as pgrig wrote it, with another id and these changes.
    fn text(&self, id: &str, changes: &[(&str, &str)]) -> String {
        let real = self.document["id"].as_str().unwrap();
        let mut text = fs::read_to_string(self.path(real)).unwrap().replace(real, id);
        for (from, to) in changes {
            assert!(text.contains(from), "{from}");
            text = text.replace(from, to);
        }
        text
    }

    fn listed(&self, options: &str) -> Vec<Value> {
        let ran = self.rig.done(&format!("runs list --json {options}"));
        serde_json::from_str::<Value>(&ran.stdout).unwrap().as_array().unwrap().clone()
    }

    fn ids(&self, options: &str) -> Vec<String> {
        self.listed(options).iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
    }

    /// The id of the run that the word names.
    fn named(&self, word: &str) -> String {
        let mut command = self.rig.command("runs show --json");
        command.arg(word);
        let ran = Running::start(command).end();
        assert_eq!(ran.code, Some(0), "{word}: {ran:#?}");
        serde_json::from_str::<Value>(&ran.stdout).unwrap()["id"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn refused(&self, arguments: &str, said: &[&str]) {
        let ran = self.rig.run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments}: {ran:#?}");
        for said in said {
            assert!(ran.stderr.contains(said), "{arguments}: no \"{said}\" in {}", ran.stderr);
        }
    }
}

#[test]
fn a_label_with_a_slash_or_of_digits_names_its_runs() {
    let saved = Saved::new();
    let with_slash = saved.add(1, "blockio", Some("a/b"), "done");
    let digits = saved.add(2, "blockio", Some("2026"), "done");
    assert_eq!(saved.named("a/b"), with_slash);
    assert_eq!(saved.named("2026"), digits);
    saved.refused("runs show a/c", &["cannot read a/c"]);
    saved.refused("compare ./a/b 2026", &["cannot read ./a/b"]);
    let without = saved.add(3, "blockio", None, "done");
    let exported = saved.rig.done("runs export * -o -");
    assert!(exported.stderr.contains("pgrig did not export 1 run without a label"), "{exported:#?}");
    assert_eq!(exported.stdout.matches("\"format_version\"").count(), 3, "{exported:#?}");
    let exported = saved.rig.done(&format!("runs export * {without} -o -"));
    assert_eq!(exported.stdout.matches("\"format_version\"").count(), 4, "{exported:#?}");
    saved.rig.done("runs rm a/b");
    assert!(!saved.path(&with_slash).exists());
}

/// Each document is removed once, whichever process comes first.
#[test]
fn two_prunes_at_the_same_time_count_what_they_removed() {
    let saved = Saved::new();
    for minute in 0..40 {
        saved.add(minute, "blockio", None, "done");
    }
    let prune = || Running::start(saved.rig.command("runs prune --keep 1"));
    let (one, other) = (prune(), prune());
    let removed = [one.end(), other.end()].map(|ran| {
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert!(!ran.stderr.contains("warning"), "{ran:#?}");
        let number = ran.stdout.strip_prefix("removed ").and_then(|rest| rest.split(' ').next());
        number.and_then(|number| number.parse::<usize>().ok()).unwrap_or_else(|| panic!("{ran:#?}"))
    });
    assert_eq!(removed.iter().sum::<usize>(), 40);
    assert_eq!(saved.ids("").len(), 1);
}

#[test]
fn runs_are_listed_shown_and_named() {
    let saved = Saved::new();
    let real = saved.document["id"].as_str().unwrap().to_owned();
    let ids = [
        saved.add(1, "blockio", Some("before"), "done"),
        saved.add(2, "blockio", Some("before"), "failed"),
        saved.add(3, "tps", Some("20260101T1002"), "interrupted"),
        saved.add(4, "blockio", None, "unfinished"),
        saved.add(5, "blockio", Some("before it"), "done"),
    ];
    // By their start, the newest first; the real one is of today.
    let newest = [&real, &ids[4], &ids[3], &ids[2], &ids[1], &ids[0]].map(String::clone);
    assert_eq!(saved.ids(""), newest);
    assert_eq!(saved.ids("--verb tps"), ids[2..3]);
    assert_eq!(saved.ids("--label before*"), [&ids[4], &ids[1], &ids[0]].map(String::clone));
    assert_eq!(saved.ids("--label before -n 1"), ids[1..2]);
    assert_eq!(saved.ids("--since 1d"), newest[..1]);
    assert_eq!(saved.ids("--since 2026-01-01T10:03:00Z").len(), 4);
    assert!(saved.ids("--since 2030-01-01").is_empty());
    // Figures are those of the document.
    let listed = &saved.listed("")[0];
    let of_document = &saved.document["figures"]["total"]["cluster"]["value"];
    let figures = listed["figures"].as_array().unwrap();
    let cluster = figures.iter().find(|figure| figure["name"] == "cluster").unwrap();
    assert_eq!(cluster["value"], *of_document);
    assert_eq!(listed["measured"], "10.0 MB, 1 client");
    assert_eq!(listed["size"].as_u64(), saved.path(&real).metadata().ok().map(|found| found.len()));
    let text = saved.rig.done("runs list").stdout;
    let second = text.lines().nth(2).unwrap();
    assert!(second.starts_with("20260101T100500Z  blockio  before it"), "{text}");
    assert!(text.lines().nth(3).unwrap().contains(" unfinished "), "{text}");
    let ran = saved.rig.done("runs list --verb ddl");
    assert!(ran.stdout.is_empty() && ran.stderr.contains("no saved run matches"), "{ran:#?}");

    for (word, id) in [
        ("latest", &real),
        ("latest~1", &ids[4]),
        ("latest:tps", &ids[2]),
        ("latest:blockio~2", &ids[3]),
        ("20260101T100100", &ids[0]),
        (ids[2].as_str(), &ids[2]),
        ("before it", &ids[4]),
        ("real", &real),
        ("re?l", &real),
        ("2026010[1]T1002", &ids[2]),
        (saved.path(&ids[1]).to_str().unwrap(), &ids[1]),
    ] {
        assert_eq!(saved.named(word), *id, "{word}");
    }
    saved.refused("runs show before", &["before matches 2 runs: give the id of one", &ids[0], &ids[1]]);
    saved.refused("runs show 20260101", &["5 ids begin with 20260101", &ids[3]]);
    // A label is the whole word, and so goes before the beginning of ids.
    assert_eq!(saved.named("20260101T1002"), ids[2]);
    saved.refused(&format!("tps --label {}", ids[2]), &["the form of the id of a run"]);
    saved.refused(&format!("tps --label {}", "a".repeat(201)), &["201 characters", "at most 200"]);
    saved.refused("runs show latest~6", &["there are 6 saved runs"]);
    saved.refused("runs show latest:tps~1", &["there is 1 saved run of tps"]);
    saved.refused(
        "runs show latest:foo",
        &["there is no run latest:foo, because foo saves no runs: give one of fill, model"],
    );
    saved.refused("runs show latest~x", &["give latest~N"]);
    saved.refused("runs rm ./latest", &["./latest is a file, and this command works on saved runs only"]);
    saved.refused("runs show after", &["\"after\" names no run", "pgrig runs list", "there is no such file"]);
    let ran = saved.rig.run("runs rm after");
    assert!(ran.stderr.ends_with("(pgrig runs list shows the runs)\n"), "it takes no file: {ran:#?}");
    saved.refused("tps --label latest~1", &["latest names the newest run"]);
    // A label names complete runs where they are compared: one of two.
    let ran = saved.rig.run("compare before latest --anyway");
    assert!(
        ran.stderr.contains("1 of the runs with label before is not complete: pgrig leaves it out"),
        "{ran:#?}"
    );
    assert!(ran.stdout.contains("baseline   1 run of blockio \"before\""), "{ran:#?}");
    saved.refused("compare 2026010[1]T1002 latest", &["no run with label", "is complete"]);

    // Files and directories of such names, where pgrig runs.
    let place = saved.rig.home.path().join("place");
    fs::create_dir_all(place.join("before it")).unwrap();
    for name in ["latest", "real", "only-here"] {
        fs::copy(saved.path(&ids[0]), place.join(name)).unwrap();
    }
    for (word, id) in [
        ("latest", &real),
        ("./latest", &ids[0]),
        ("real", &ids[0]),
        ("only-here", &ids[0]),
        ("before it", &ids[4]),
    ] {
        let mut command = saved.rig.command("runs show --json");
        command.arg(word).current_dir(&place);
        let ran = Running::start(command).end();
        assert!(ran.stdout.contains(&format!("\"id\": \"{id}\"")), "{word}: {ran:#?}");
    }
    let text = saved.rig.done("runs show").stdout;
    assert!(text.contains(&real) && text.contains("\ncluster ") && text.contains("10.0 MB"), "{text}");
}

#[test]
fn a_baseline_is_named_by_the_same_words() {
    let rig = Rig::new();
    let _server = rig.server("");
    rig.done("blockio 10MB --trials 1 --label base");
    rig.done("micro 1 2 --budget 100ms");
    for word in ["latest:blockio", "base"] {
        let ran = rig.done(&format!("blockio 10MB --trials 1 --baseline {word}"));
        assert!(ran.stdout.contains("beside the baseline of 20"), "{word}: {ran:#?}");
    }
    let ran = rig.run("blockio 10MB --baseline latest:micro");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("that is a run of micro, not of blockio"), "{ran:#?}");
    // That of the refused one was never begun.
    assert_eq!(fs::read_dir(rig.home.path().join("runs")).unwrap().count(), 4);
}

#[test]
fn what_is_not_a_run_is_left_alone() {
    let saved = Saved::new();
    let real = saved.document["id"].as_str().unwrap().to_owned();
    let old = saved.add(1, "blockio", None, "done");
    let started = saved.document["started_at"].as_str().unwrap();
    let elsewhere = saved.rig.home.path().join("elsewhere.json");
    let id = |minute: u32| format!("20250101T10{minute:02}00Z-tps-7fffffff00000000");
    fs::write(&elsewhere, saved.text(&id(1), &[(started, "2025-01-01T10:01:00Z")])).unwrap();
    symlink(&elsewhere, saved.path(&id(1))).unwrap();
    symlink("/nowhere/at/all", saved.path(&id(2))).unwrap();
    nix::unistd::mkfifo(&saved.path(&id(3)), Mode::S_IRWXU).unwrap();
    fs::create_dir(saved.path(&id(4))).unwrap();
    fs::write(saved.path(&id(5)), "{}").unwrap();
    let cut = fs::read(saved.path(&old)).unwrap();
    // pgrig's own beginning, and no end.
    let text = saved.text(&id(6), &[(started, "2025-01-01T10:06:00Z")]);
    fs::write(saved.path(&id(6)), &text[..text.len() / 2]).unwrap();
    fs::write(saved.path(&id(7)), saved.text(&id(7), &[NEWER])).unwrap();
    fs::write(saved.directory().join("mine.json"), &cut).unwrap();
    fs::write(saved.directory().join("notes.txt"), "mine").unwrap();
    let partial = saved.directory().join(format!("{}.json.partial", id(8)));
    fs::write(&partial, "{").unwrap();
    let all = || fs::read_dir(saved.directory()).unwrap().count();
    let before = all();

    let ran = saved.rig.done("runs list");
    assert_eq!(ran.stdout.lines().count(), 1 + 4, "{ran:#?}");
    assert!(ran.stderr.contains("3 more files in"), "{ran:#?}");
    assert!(ran.stdout.contains("unreadable"), "{ran:#?}");
    let ran = saved.rig.done("runs prune --keep 0 --dry-run");
    assert!(ran.stderr.contains("would remove 3 runs"), "{ran:#?}");
    assert_eq!(all(), before);
    saved.refused("runs prune", &["--keep"]);
    // Both let a run stay.
    let ran = saved.rig.done("runs prune --keep 1 --older-than 90000d");
    assert!(ran.stdout.starts_with("removed 0 runs"), "{ran:#?}");
    let ran = saved.rig.done("runs prune --older-than 1d");
    assert!(ran.stdout.starts_with("removed 2 runs"), "{ran:#?}");
    assert!(ran.stderr.contains("warning: pgrig keeps "), "{ran:#?}");
    assert!(saved.path(&real).exists() && !saved.path(&old).exists());
    // The link is gone, and its target is not.
    assert!(elsewhere.exists() && saved.path(&id(1)).symlink_metadata().is_err());
    assert_eq!(all(), before - 2);
    // A half-written document may be one that is being written.
    assert!(partial.exists());
    let yesterday = std::time::SystemTime::now() - std::time::Duration::from_hours(25);
    fs::File::options().write(true).open(&partial).unwrap().set_modified(yesterday).unwrap();
    saved.rig.done("runs prune --keep 10");
    assert!(!partial.exists());
    saved.refused(&format!("runs show {}", saved.path(&id(7)).display()), &["format 2", "use a newer pgrig"]);
}

#[test]
fn a_run_that_goes_on_is_not_removed() {
    let rig = Rig::new();
    let server = rig.server("");
    rig.done("fill --scale 1");
    let running = rig.spawn("tps -T 60 --label goes-on");
    let listed = || rig.done("runs list --label goes-on").stdout;
    until("the run is listed", || listed().contains(" running ").then_some(()));
    let ran = rig.run("runs rm goes-on");
    assert!(ran.code == Some(2) && ran.stderr.contains("is still running"), "{ran:#?}");
    let ran = rig.done("runs prune --keep 0");
    assert!(ran.stdout.starts_with("removed 1 run "), "{ran:#?}");
    running.signal(Signal::SIGKILL);
    running.end();
    until("its sessions end", || {
        let others = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'";
        (server.number(others) == 1).then_some(())
    });
    assert!(listed().contains(" unfinished "));
    let ran = rig.done("runs rm latest");
    assert!(ran.stdout.starts_with("removed 2"), "{ran:#?}");
    assert!(rig.done("runs list").stdout.is_empty());
    rig.done("runs prune --keep 1");
}

#[test]
fn documents_go_from_home_to_home_as_they_are() {
    let saved = Saved::new();
    let real = saved.document["id"].as_str().unwrap().to_owned();
    let ids = [saved.add(1, "blockio", Some("a"), "done"), saved.add(2, "blockio", Some("a"), "failed")];
    let place = saved.rig.home.path().join("place");
    fs::create_dir(&place).unwrap();
    let file = |name: &str| place.join(name).to_str().unwrap().to_owned();
    let (export, other) = (file("runs.json"), Rig::new());
    saved.rig.done(&format!("runs export a latest {} -o {export}", ids[0]));
    saved.refused(&format!("runs export a -o {export}"), &["--force"]);
    let to_stdout = saved.rig.done("runs export a latest -o -").stdout;
    assert_eq!(to_stdout, fs::read_to_string(&export).unwrap());

    // A file of several runs is a RUN.
    let ran = saved.rig.run(&format!("compare {export} latest"));
    assert!(ran.code == Some(2) && ran.stderr.contains("on both sides"), "{ran:#?}");
    saved.refused(&format!("runs show {export}"), &["matches 3 runs"]);

    let ran = other.done(&format!("runs import {export}"));
    assert_eq!(ran.stdout, "imported 3 runs\n");
    for id in [&real, &ids[0], &ids[1]] {
        let [one, copy] = [&saved.rig, &other]
            .map(|rig| fs::read(rig.home.path().join(format!("runs/{id}.json"))).unwrap());
        assert!(one == copy, "{id}");
    }
    let ran = other.done(&format!("runs import {export} {export}"));
    assert!(ran.stdout.starts_with("imported 0 runs; 6 runs were saved already"), "{ran:#?}");

    // All or none: a file that is cut off, a path as id, a newer format, another document of a known run.
    let text = fs::read_to_string(&export).unwrap();
    let new = "20260102T100000Z-blockio-7fffffff00000000";
    let fresh = saved.text(new, &[]);
    let changed = fresh.replace(new, &ids[0]);
    let newer = saved.text("20260103T100000Z-tps-7f", &[NEWER]);
    for (name, text, said) in [
        ("cut", fresh.clone() + &text[..text.len() - 3], "document 4: it is not a run document"),
        ("path", fresh.clone() + &fresh.replace(new, "../../escaped"), "is not a run id"),
        ("newer", fresh.clone() + &newer, "use a newer pgrig"),
        ("changed", fresh.clone() + &changed, "a saved run has the id"),
        (
            "two",
            fresh.clone() + &fresh.replace("10.0", "20.0").replace("\"done\"", "\"failed\""),
            "two different documents",
        ),
        ("foreign", "{\"pgrig\": 1}".to_owned(), "not a run document"),
        ("empty", String::new(), "not a run document"),
    ] {
        fs::write(file(name), text).unwrap();
        let ran = other.run(&format!("runs import {}", file(name)));
        assert!(ran.code == Some(2) && ran.stderr.contains(said), "{name}: {ran:#?}");
        assert!(!other.home.path().join(format!("runs/{new}.json")).exists(), "{name}");
    }
    assert!(!other.home.path().join("escaped.json").exists());
    let kept = fs::read(other.home.path().join(format!("runs/{}.json", ids[0]))).unwrap();
    assert!(kept == fs::read(saved.path(&ids[0])).unwrap());

    // Two imports at once: the same documents, each saved once.
    let third = Rig::new();
    let both = [(); 2].map(|()| third.spawn(&format!("runs import {export}")));
    for import in both {
        let ran = import.end();
        assert_eq!(ran.code, Some(0), "{ran:#?}");
    }
    let files = fs::read_dir(third.home.path().join("runs")).unwrap();
    assert_eq!(files.count(), 3);
}

#[test]
fn a_directory_that_is_missing_or_cannot_be_written_is_said_so() {
    let rig = Rig::new();
    let ran = rig.done("runs list");
    assert!(ran.stdout.is_empty() && ran.stderr.contains("no saved run yet"), "{ran:#?}");
    assert_eq!(rig.done("runs list --json").stdout, "[]\n");
    assert!(rig.done("runs prune --keep 1").stdout.starts_with("removed 0 runs"));
    assert!(rig.run("runs show").stderr.contains("there is no saved run"));
    assert!(!rig.home.path().join("runs").exists());
    let Some(small) = Rig::on_small_disk(1) else { return };
    let saved = Saved::new();
    let export = saved.rig.home.path().join("runs.json");
    saved.rig.done(&format!("runs export latest -o {}", export.display()));
    // Full: nothing is saved, and nothing is left.
    let full = small.home.path().join("full");
    assert!(fs::write(&full, vec![b' '; 2 << 20]).is_err());
    let ran = small.run(&format!("runs import {}", export.display()));
    assert!(ran.code == Some(1) && ran.stderr.contains("No space left"), "{ran:#?}");
    fs::remove_file(full).unwrap();
    assert_eq!(fs::read_dir(small.home.path().join("runs")).map_or(0, Iterator::count), 0);
    small.done(&format!("runs import {}", export.display()));
    let read_only = |word: &str| {
        let mounted =
            Command::new("mount").args(["-o", &format!("remount,{word}")]).arg(small.home.path()).status();
        assert!(mounted.unwrap().success());
    };
    read_only("ro");
    assert_eq!(small.done("runs list").stdout.lines().count(), 2);
    let ran = small.run("runs rm latest");
    assert!(ran.code == Some(1) && ran.stderr.contains("cannot remove"), "{ran:#?}");
    read_only("rw");
}

#[test]
fn hostile_documents_do_not_act_on_a_terminal() {
    let saved = Saved::new();
    let id = "20260101T100000Z-blockio-7fffffff00000000";
    let has_notes = saved.document["notes"] != serde_json::json!([]);
    let comma = if has_notes { "," } else { "" };
    let note = &format!(r#""notes": [{{ "text": "a\u001b[2Jb" }}{comma}"#);
    let text = saved.text(
        id,
        &[
            ("\"label\": \"real\"", r#""label": "\u001b]0;owned\u0007\n::error::x""#),
            ("\"total\"", r#""\u001b[31mtotal\u202e""#),
            ("\"notes\": [", note),
        ],
    );
    fs::write(saved.path(id), text).unwrap();
    for command in
        ["runs list".to_owned(), format!("runs show {id}"), format!("compare {id} latest --anyway")]
    {
        let ran = saved.rig.run(&command);
        for out in [&ran.stdout, &ran.stderr] {
            assert!(
                !out.contains('\u{1b}') && !out.contains('\u{202e}') && !out.contains("\n::"),
                "{ran:#?}"
            );
        }
    }
    // The document itself is what it is.
    assert!(saved.rig.done(&format!("runs export {id} -o -")).stdout.contains("\\u001b]0;owned"));
}
