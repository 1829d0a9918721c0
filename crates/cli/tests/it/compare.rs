//! `pgrig compare` and `pgrig ab` on real runs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Ran, Rig, Running};
use nix::sys::signal::Signal;
use serde_json::Value;
use testkit::until_some as until;

fn write(document: &Value, file: &Path) -> String {
    fs::write(file, document.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Copies of a run's document, each with another id and two minutes later than the one before. In all trials, the
/// named value is multiplied.
fn repeated(rig: &Rig, document: &Value, count: u32, after: u32, (name, times): (&str, f64)) -> Vec<String> {
    let copy = |number: u32| {
        let mut document = document.clone();
        document["started_at"] = format!("2026-11-21T12:{:02}:00Z", after + 2 * number).into();
        let id = format!("{}{after}{number}", document["id"].as_str().unwrap());
        let noise = 1.0 + f64::from(number) / 1000.0;
        for trial in document["trials"].as_array_mut().unwrap() {
            for observation in trial["observations"].as_array_mut().unwrap() {
                let factor = if observation["name"] == name { times } else { 1.0 };
                observation["value"] = (observation["value"].as_f64().unwrap() * factor * noise).into();
            }
        }
        let file = rig.home.path().join(format!("{id}-{times}.json"));
        document["id"] = id.into();
        write(&document, &file)
    };
    (0..count).map(copy).collect()
}

/// The verdict in the line of a figure.
fn verdict<'t>(text: &'t str, figure: &str) -> &'t str {
    let line = text.lines().find(|line| line.split("  ").next() == Some(figure));
    line.unwrap_or_else(|| panic!("no {figure} in {text}")).rsplit("  ").next().unwrap().trim()
}

fn last_line(ran: &Ran) -> &str {
    ran.stdout.trim_end().lines().last().unwrap_or_default()
}

/// pgrig ab with these options, and with commands that hold blanks.
fn ab(rig: &Rig, options: &str, commands: &[&str]) -> std::process::Command {
    let mut command = rig.command(&format!("ab {options}"));
    command.args(commands);
    command
}

fn run_ab(rig: &Rig, options: &str, commands: &[&str]) -> Ran {
    Running::start(ab(rig, options, commands)).end()
}

/// Saved runs with this label.
fn labelled(rig: &Rig, label: &str) -> Vec<Value> {
    let files = fs::read_dir(rig.home.path().join("runs")).unwrap().map(|entry| entry.unwrap().path());
    let documents =
        files.filter(|path: &PathBuf| path.extension().is_some_and(|extension| extension == "json"));
    let read = |path: PathBuf| serde_json::from_str::<Value>(&fs::read_to_string(path).unwrap()).unwrap();
    documents.map(read).filter(|document| document["label"] == label).collect()
}

#[test]
fn what_is_no_document_is_refused_however_long_it_is() {
    let rig = Rig::new();
    let _server = rig.server("");
    let document = rig.document("blockio 10MB --trials 1");
    let marked = rig.home.path().join("marked.json");
    fs::write(&marked, format!("\u{feff}{document}")).unwrap();
    let marked = marked.to_str().unwrap();
    let other = write(&rig.document("blockio 10MB --trials 1"), &rig.home.path().join("other.json"));
    rig.done(&format!("compare {marked} {other}"));
    rig.done(&format!("blockio 10MB --trials 1 --baseline {marked}"));
    for (file, said) in
        [("/dev/zero", "byte 1 is NUL"), ("/", "directory"), ("/dev/null", "not a run document")]
    {
        for command in [format!("compare {marked} {file}"), format!("blockio 10MB --baseline {file}")] {
            let ran = rig.run(&command);
            assert_eq!(ran.code, Some(2), "{command}: {ran:#?}");
            assert!(ran.stderr.contains(said), "{command}: {ran:#?}");
        }
    }
}

#[test]
fn runs_of_block_io_get_verdicts_and_a_status() {
    let rig = Rig::new();
    let _server = rig.server("");
    let document = rig.document("blockio 10MB --trials 2 --label real");
    let same = repeated(&rig, &document, 5, 0, ("cluster", 1.0)).join(" ");
    let slower = repeated(&rig, &document, 5, 1, ("cluster", 100.0)).join(" ");

    let ran = rig.done(&format!("compare --baseline {same} --candidate {slower}"));
    assert_eq!(verdict(&ran.stdout, "cluster"), "regressed", "{}", ran.stdout);
    // Nothing else changed; what is not judged is shown.
    assert_eq!(verdict(&ran.stdout, "create"), "no change");
    assert_eq!(verdict(&ran.stdout, "vacuum"), "-");
    assert!(last_line(&ran).starts_with("verdict: regressed: total"), "{}", ran.stdout);
    let ran = rig.done(&format!("compare --baseline {slower} --candidate {same}"));
    assert_eq!(verdict(&ran.stdout, "cluster"), "improved", "{}", ran.stdout);

    let ran = rig.run(&format!("compare --fail-on regressed --baseline {same} --candidate {slower}"));
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert!(ran.stderr.contains("total: cluster regressed"), "{ran:#?}");
    // Vacuum is judged if it is named, and cluster is not.
    let judged = "--figures vacuum --fail-on regressed,inconclusive";
    rig.done(&format!("compare {judged} --baseline {same} --candidate {slower}"));
    let ran = rig.run(&format!("compare --figures speed --baseline {same} --candidate {slower}"));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("no figure \"speed\"") && ran.stderr.contains("vacuum"), "{ran:#?}");

    let compared = rig.document(&format!("compare --baseline {same} --candidate {slower}"));
    assert_eq!(compared["baseline"].as_array().unwrap().len(), 5);
    let cluster =
        compared["compared"].as_array().unwrap().iter().find(|one| one["name"] == "cluster").unwrap();
    assert_eq!((cluster["verdict"].as_str(), cluster["unit"].as_str()), (Some("regressed"), Some("seconds")));
    let number = |value: &Value| value.as_f64().unwrap();
    let typical = number(&cluster["typical"][1]) / number(&cluster["typical"][0]);
    assert!((typical / number(&cluster["ratio"]) - 1.0).abs() < 1e-9, "{cluster:#}");
    assert!(number(&cluster["interval"]["low"]) > 90.0, "{cluster:#}");
    // A run has a figure's median over its trials, in its document too.
    let first: Value =
        serde_json::from_str(&fs::read_to_string(same.split(' ').next().unwrap()).unwrap()).unwrap();
    let trials = document["trials"].as_array().unwrap().iter().filter(|trial| trial["config"] == "total");
    let seconds = trials.map(|trial| {
        let observations = trial["observations"].as_array().unwrap();
        number(&observations.iter().find(|one| one["name"] == "cluster").unwrap()["value"])
    });
    let median = seconds.sum::<f64>() / 2.0;
    assert!((number(&cluster["baseline"][0]) / median - 1.0).abs() < 1e-9, "{cluster:#}");
    assert!((number(&first["figures"]["total"]["cluster"]["value"]) / median - 1.0).abs() < 1e-9);
}

#[test]
fn too_few_runs_and_runs_apart_are_said_so() {
    let rig = Rig::new();
    let _server = rig.server("");
    let document = rig.document("blockio 10MB --trials 1");
    let same = repeated(&rig, &document, 5, 0, ("cluster", 1.0));
    let slower = repeated(&rig, &document, 5, 20, ("cluster", 100.0));
    let ran = rig.run(&format!("compare {} {} --fail-on inconclusive", same[0], slower[0]));
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert_eq!(
        last_line(&ran),
        "verdict: inconclusive, because there is only 1 run on each side; make at least 5 runs on each side, for example \
         with pgrig ab"
    );
    let ran = rig.done(&format!("compare --baseline {} --candidate {}", same.join(" "), slower.join(" ")));
    assert!(ran.stderr.contains("one side ran before the other"), "{ran:#?}");
    let ran =
        rig.run(&format!("compare --paired --baseline {} --candidate {}", same.join(" "), slower.join(" ")));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("did not alternate"), "{ran:#?}");
    let ran = rig.run(&format!("compare {} {}", same[0], same[0]));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("is on both sides"), "{ran:#?}");
}

#[test]
fn runs_are_found_by_label_and_what_differs_hinders() {
    let rig = Rig::new();
    let server = rig.server("");
    rig.done("fill --scale 1");
    let tps = "tps -S -T 100ms";
    for _ in 0..2 {
        rig.done(&format!("{tps} --label before"));
        rig.done(&format!("{tps} --label after-1"));
    }
    rig.done(&format!("{tps} --label other -c 2"));
    let compared = rig.document("compare before after*");
    assert_eq!((compared["baseline"].as_array().unwrap().len(), &compared["needed"]["runs"]), (2, &5.into()));
    // Each run has another seed, which nobody chose.
    assert_eq!(compared["differences"].as_array().unwrap().len(), 0, "{compared:#}");
    let run = &labelled(&rig, "before")[0];
    let id = run["id"].as_str().unwrap();
    let compared = rig.document(&format!("compare {id} after-1"));
    assert_eq!(compared["baseline"], serde_json::json!([id]));
    let figures = &run["figures"]["tps"]["tps"];
    let of = |name| crate::support::observed(run, name);
    let tps = of("succeeded") / of("elapsed");
    assert!((figures["value"].as_f64().unwrap() / tps - 1.0).abs() < 1e-9, "{figures:#}");

    fs::write(rig.home.path().join("runs/cut.json"), "{ \"format_version\": 1, ").unwrap();
    let ran = rig.done("compare before after-1");
    assert!(ran.stderr.contains("cut.json is left out: it is not a run document"), "{ran:#?}");
    fs::remove_file(rig.home.path().join("runs/cut.json")).unwrap();

    for (command, said) in [
        ("compare before other", "request.clients: 1 → 2"),
        ("compare before nobody", "\"nobody\" names no run"),
        ("compare before [", "not a pattern"),
    ] {
        let ran = rig.run(command);
        assert_eq!(ran.code, Some(2), "{command}: {ran:#?}");
        assert!(ran.stderr.contains(said) && ran.stdout.is_empty(), "{command}: {ran:#?}");
    }
    let ran = rig.done("compare before other --anyway");
    assert!(ran.stderr.contains("compared despite request.clients"), "{ran:#?}");

    // Whatever is in force in the sessions that measure is a difference.
    server.execute("ALTER ROLE postgres SET work_mem = '5MB'");
    let mut command = rig.command("tps -S -T 100ms --label settings");
    command.args(["-d", &rig.url()]).env("PGOPTIONS", "-c enable_sort=off");
    assert_eq!(Running::start(command).end().code, Some(0));
    let ran = rig.run("compare before settings");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    for said in ["setting enable_sort: default → off", "setting work_mem: default → 5MB"] {
        assert!(ran.stderr.contains(said), "{said}: {ran:#?}");
    }
}

#[test]
fn commands_in_turn_are_judged_as_their_saved_runs_are() {
    let rig = Rig::new();
    let _server = rig.server("");
    rig.done("fill --scale 1");
    let script = |statements: usize| {
        let file = rig.home.path().join(format!("{statements}.sql"));
        fs::write(&file, "SELECT sum(n) FROM generate_series(1, 1000) n;\n".repeat(statements)).unwrap();
        format!("pgrig tps -T 100ms -f '{}'", file.display())
    };
    let (little, much) = (script(1), script(60));
    let report = rig.home.path().join("ab.json");
    let options = format!(
        "--rounds 20 --look 10 --seed 3 --label turns --fail-on regressed --json {}",
        report.display()
    );
    let ran = run_ab(&rig, &options, &[&little, &much]);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert!(last_line(&ran).starts_with("verdict: regressed: tps (-"), "{ran:#?}");
    let costs = ran.stdout.lines().find(|line| line.contains(" per transaction")).unwrap();
    assert!(costs.contains("client-cpu"), "{costs}");
    // Sixty times the work shows at the look, with what the look may spend.
    let report: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    assert_eq!((&report["rounds"], &report["rounds_planned"]), (&10.into(), &20.into()));
    assert!(report["alpha"].as_f64().unwrap() < 0.01, "{report:#}");
    let compared = &report["comparisons"][0];
    assert_eq!(compared["command"], much.as_str());
    let ran = run_ab(&rig, "--label turns", &[&little, &much]);
    assert!(ran.stderr.contains("saved runs have the label turns-a already"), "{ran:#?}");
    // The first round warmed up.
    for (label, count) in [("turns-a", 10), ("turns-b", 10), ("turns-a-warm-up", 1), ("turns-b-warm-up", 1)] {
        assert_eq!(labelled(&rig, label).len(), count, "{label}");
    }
    let ids = |side: &str| {
        let ids = compared[side].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>().join(" ")
    };
    let by_id = format!("--baseline {} --candidate {}", ids("baseline"), ids("candidate"));
    for runs in [by_id.as_str(), "turns-a turns-b"] {
        let again = rig.document(&format!("compare --paired --anyway {runs}"));
        assert_eq!(again["compared"], compared["compared"], "{runs}");
    }
}

/// The commands run a program that keeps its arguments and its environment: the witness of what a child gets.
#[test]
fn no_command_line_and_no_output_of_ab_has_a_password() {
    let rig = Rig::new();
    let server = rig.server("");
    let seen = rig.home.path().join("seen");
    let directory = rig.home.path().join("bin");
    fs::create_dir(&directory).unwrap();
    let witness = directory.join("pgrig");
    let program = rig.command("");
    let text = format!(
        "#!/bin/sh\ntr '\\0' ' ' < /proc/$$/cmdline >> '{seen}'\necho \"| $PGPASSWORD\" >> '{seen}'\nexec '{}' \"$@\"\n",
        program.get_program().to_str().unwrap(),
        seen = seen.display()
    );
    fs::write(&witness, text).unwrap();
    fs::set_permissions(&witness, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let uri = server.url.replacen('@', ":hunter%32pw@", 1);
    let commands = [format!("-d '{uri}'"), format!("--dbname='{} password=hunter2pw'", rig.url())];
    let commands = commands.map(|server| format!("{} blockio 10MB {server}", witness.display()));
    let commands = commands.each_ref().map(String::as_str);
    let json = rig.home.path().join("ab.json");
    let options = format!("--rounds 1 --no-warm-up --format md --json {}", json.display());
    let ran = run_ab(&rig, &options, &commands);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let seen = fs::read_to_string(seen).unwrap();
    assert_eq!(seen.lines().count(), 2, "{seen}");
    for line in seen.lines() {
        assert!(line.contains("user='") && line.ends_with("| hunter2pw"), "{seen}");
        assert!(!line.split('|').next().unwrap().contains("hunter"), "{seen}");
    }
    let told = [ran.stdout, ran.stderr, fs::read_to_string(json).unwrap()];
    assert!(told[1].contains("***") && told[2].contains("***"), "{told:#?}");
    assert!(told.iter().all(|text| !text.contains("hunter")), "{told:#?}");
}

#[test]
fn too_few_rounds_are_announced_and_tell_nothing() {
    let rig = Rig::new();
    let _server = rig.server("");
    let ran = run_ab(&rig, "--rounds 2 --no-warm-up", &["pgrig fill --rows 1000 --drop"; 3]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    // One figure in each of two comparisons: 2 / 2^7 is the first below 0.05 / 2.
    assert!(
        ran.stderr.contains("2 rounds are too few for a verdict on 1 figure: give --rounds 7"),
        "{ran:#?}"
    );
    let inconclusive = "verdict: inconclusive, because there are only 2 rounds; make at least 7 rounds";
    assert_eq!(ran.stdout.lines().filter(|line| *line == inconclusive).count(), 2, "{ran:#?}");
    // Arguments after -- belong to the user's command.
    let bench = "pgrig testdb bench --variants dangerous --trials 1 -- true --json";
    let ran = run_ab(&rig, "--rounds 1 --no-warm-up", &[bench, bench]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stdout.contains("dangerous: total"), "{ran:#?}");
    let fill = "pgrig fill --rows 1000 --drop";
    for (options, commands, said) in [
        ("--figures speed", [fill, fill], "these runs have no figure \"speed\""),
        ("--json /nowhere/x.json", [fill, fill], "--json /nowhere/x.json: there is no directory /nowhere"),
    ] {
        let ran = run_ab(&rig, &format!("--rounds 2 {options}"), &commands);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains(said) && !ran.stderr.contains("round 1 of 2"), "{ran:#?}");
    }
    let ran = run_ab(&rig, "--rounds 1 --no-warm-up --figures 1+i", &["pgrig micro 1+i --budget 100ms"; 2]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let ran = run_ab(&rig, "--rounds 2", &["pgrig fill --table nosuch --rows 5", fill]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    let said = "command a (pgrig fill --table nosuch --rows 5) ended with exit status: 2";
    assert!(ran.stderr.contains(said), "{ran:#?}");
}

#[test]
fn commands_that_cannot_be_judged_are_refused_before_anything_runs() {
    let rig = Rig::new();
    for (options, commands, said) in [
        ("", ["pgrig tps -S", "ls"], "command b (ls): begin the command with pgrig"),
        (
            "",
            ["PGHOST=db pgrig tps", "pgrig tps"],
            "begin the command with pgrig, and give -h db in it instead of PGHOST",
        ),
        ("", ["PGTZ=UTC pgrig tps", "pgrig tps"], "to set PGTZ for all commands, write it before pgrig ab"),
        ("", ["pgrig tps -S", "pgrig size 1GB"], "give one of fill, blockio"),
        ("", ["pgrig ddl m.sql --schema-file s.sql", "pgrig tps"], "give one of fill, blockio"),
        ("", ["pgrig backup rehearse -d a", "pgrig tps"], "give one of fill, blockio"),
        ("", ["pgrig tps -S", "pgrig fill 1GB"], "command a runs another pgrig command"),
        ("", ["pgrig tps --json x", "pgrig tps"], "leave out --json and --label"),
        ("", ["pgrig tps --explain", "pgrig tps"], "only shows a plan"),
        (
            "",
            ["pgrig fill 1GB --drop", "pgrig fill 1GB -d shop"],
            "command b (pgrig fill 1GB -d shop): each round fills the tables again: give --drop in each command: pgrig fill 1GB -d shop \
             --drop",
        ),
        ("", ["pgrig tps -f 'x", "pgrig tps"], "the command has an unclosed quote"),
        ("", ["pgrig tps --nonsense", "pgrig tps"], "unexpected argument '--nonsense'"),
        ("--rounds 5 --look 5", ["pgrig tps -S", "pgrig tps -S"], "--look 5 comes too late"),
        ("--rounds 0", ["pgrig tps -S", "pgrig tps -S"], "0 is out of range: give 1 to 1000"),
        ("", ["pgrig micro i+1", "pgrig micro i+2"], "give all to one command: pgrig micro i+1 i+2\n"),
        ("", ["pgrig micro 1+i --budget 100ms"; 2], "give --figures 1+i\n"),
        ("--label a*", ["pgrig tps -S", "pgrig tps -S"], "give a name without *"),
    ] {
        let ran = run_ab(&rig, options, &commands);
        assert_eq!(ran.code, Some(2), "{commands:?}: {ran:#?}");
        assert!(ran.stderr.contains(said), "{commands:?}: {ran:#?}");
    }
    assert!(!rig.home.path().join("instances").exists());
}

#[test]
fn an_interrupted_ab_leaves_no_command_behind() {
    let rig = Rig::new();
    rig.done("fill --scale 1");
    let running = Running::start(ab(&rig, "--label interrupted", &["pgrig tps -S -T 60s"; 2]));
    // Of the first command, which has started a server of its own.
    let first = || {
        (rig.home.path().join("runs").exists() && !labelled(&rig, "interrupted-a-warm-up").is_empty())
            .then_some(())
    };
    let second = || (!labelled(&rig, "interrupted-b-warm-up").is_empty()).then_some(());
    until("a command's run", || first().or_else(second));
    running.signal(Signal::SIGINT);
    let ran = running.end();
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    assert_eq!(rig.status()["state"], "stopped", "{:#}", rig.status());
    let runs = [labelled(&rig, "interrupted-a-warm-up"), labelled(&rig, "interrupted-b-warm-up")].concat();
    assert_eq!(runs.len(), 1);
    // Unfinished if it was interrupted before it measured anything.
    assert_ne!(runs[0]["status"], "done");
}

#[test]
fn fills_of_other_work_do_not_compare() {
    let rig = Rig::new();
    let server = rig.server("");
    let file = |name: &str| rig.home.path().join(name).to_str().unwrap().to_owned();
    let (logged, again, unlogged) = (file("logged.json"), file("again.json"), file("unlogged.json"));
    rig.done(&format!("fill --scale 1 --json {logged}"));
    rig.done(&format!("fill --scale 1 --drop --json {again}"));
    rig.done(&format!("fill --scale 1 --drop --unlogged --json {unlogged}"));
    assert_eq!(server.number("SELECT count(*) FROM pgbench_accounts"), 100_000);

    // The second one drops what the first has made, which is other work.
    let ran = rig.run(&format!("compare {logged} {again}"));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("request.steps"), "{ran:#?}");
    let ran = rig.run(&format!("compare {again} {unlogged}"));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("request.persistence: logged → unlogged"), "{ran:#?}");
}

#[test]
fn what_is_no_run_is_refused() {
    let rig = Rig::new();
    let file = rig.home.path().join("none.json");
    fs::write(&file, "{}").unwrap();
    let file = file.display();
    for (arguments, said) in [
        (format!("compare /nowhere.json {file}"), "cannot read /nowhere.json"),
        (format!("compare {file} {file}"), "not a run document"),
        (format!("compare {file}"), "give two runs or labels"),
        (format!("compare {file} {file} --threshold 0%"), "above 0%"),
    ] {
        let ran = rig.run(&arguments);
        assert_eq!(ran.code, Some(2), "pgrig {arguments}: {ran:#?}");
        assert!(ran.stderr.contains(said), "pgrig {arguments}: {ran:#?}");
    }
}

/// A JSON string of a document that names of configurations and labels get.
const HOSTILE: &str =
    r#""::error::x ##[add-path]/tmp | @team `<script>` \\| \u001b[31m\n::set-env name=A::b\u202e""#;

#[test]
fn verdicts_go_to_pull_requests_and_annotations() {
    let rig = Rig::new();
    let server = rig.server("");
    let document = rig.document("blockio 10MB --trials 1");
    drop(server);
    rig.done("server stop");
    let same = repeated(&rig, &document, 5, 0, ("cluster", 1.0)).join(" ");
    let slower = repeated(&rig, &document, 5, 1, ("cluster", 100.0)).join(" ");
    let sides = format!("--baseline {same} --candidate {slower}");

    let markdown = rig.done(&format!("compare --format md {sides}")).stdout;
    let row = markdown.lines().find(|line| line.starts_with("| cluster |")).unwrap();
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    assert_eq!((cells.len(), cells[6]), (8, "regressed"), "{markdown}");
    assert!(markdown.starts_with("**verdict: regressed: `total` ("), "{markdown}");
    assert!(markdown.contains("<details><summary>") && markdown.contains("\n| vacuum |"), "{markdown}");

    // Without a summary of a job, the Markdown follows the annotations.
    let summary = rig.home.path().join("summary.md");
    fs::write(&summary, "before\n").unwrap();
    let github = |options: &str, summary: Option<&Path>| {
        let mut command = rig.command(&format!("compare --format github {options} {sides}"));
        command.env_remove("GITHUB_STEP_SUMMARY");
        command.envs(summary.map(|file| ("GITHUB_STEP_SUMMARY", file)));
        Running::start(command).end()
    };
    let ran = github("", None);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let regressed = |level: &str| format!("::{level} title=pgrig compare::total: cluster regressed: ");
    assert!(ran.stdout.contains(&regressed("warning")) && ran.stdout.contains("| cluster |"), "{ran:#?}");
    let ran = github("--fail-on regressed", Some(&summary));
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert!(ran.stdout.lines().all(|line| line.starts_with("::")), "{ran:#?}");
    assert!(ran.stdout.contains(&regressed("error")) && ran.stdout.contains("00.0 %25)"), "{ran:#?}");
    assert_eq!(fs::read_to_string(&summary).unwrap(), format!("before\n{markdown}\n"));
    // The verdict counts, whatever becomes of the summary.
    let ran = github("--fail-on regressed", Some(Path::new("/nowhere/summary")));
    assert!(ran.code == Some(3) && ran.stderr.contains("cannot append to GITHUB_STEP_SUMMARY"), "{ran:#?}");

    // Names are text: of no command, no markup, no other row.
    for file in same.split(' ').chain(slower.split(' ')) {
        let text = fs::read_to_string(file).unwrap().replace("\"total\"", HOSTILE);
        fs::write(file, text.replacen('{', &format!("{{ \"label\": {HOSTILE},"), 1)).unwrap();
    }
    let judged = "--figures cluster --fail-on regressed";
    for format in ["text", "md", "github"] {
        let mut command = rig.command(&format!("compare --format {format} {judged} {sides}"));
        command.env_remove("GITHUB_STEP_SUMMARY");
        let ran = Running::start(command).end();
        assert_eq!(ran.code, Some(3), "{ran:#?}");
        for line in ran.stdout.lines().chain(ran.stderr.lines()) {
            assert!(!line.contains(['\u{1b}', '\u{202e}']), "{line}");
            let is_ours = ["::error title=pgrig", "::warning title=pgrig", "::notice title=pgrig"];
            let is_command = format != "text" && line.trim_start().starts_with("::");
            assert!(!is_command || is_ours.iter().any(|begin| line.starts_with(begin)), "{line}");
            if line.starts_with("| ") {
                assert!(
                    !line.contains("<script>") && !line.contains("`<") && !line.contains("@team"),
                    "{line}"
                );
                assert_eq!(line.matches(" | ").count(), 5, "{line}");
            }
        }
        let is_inert = ran.stderr.lines().all(|line| !line.contains("##["));
        assert!(is_inert, "{format}: {ran:#?}");
    }
}
