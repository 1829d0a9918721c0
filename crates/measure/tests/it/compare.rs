//! Two runs beside each other: what hinders, what is only named, which figures are judged.

use measure::compare::{Comparison, Needed, NoPairs, Options, Sides};
use measure::{
    Better, Disk, Environment, Event, FORMAT_VERSION, Figure, FigureUnit, Machine, Run, Server, Setting,
    Status, Trial, Unit, Verdict,
};
use serde_json::{Value, json};

fn setting(name: &str, value: &str) -> Setting {
    Setting { name: name.into(), value: value.into(), source: "configuration file".into() }
}

/// Four trials that take as many times as long as usual.
fn run(times: f64) -> Run {
    let trial = |noise: f64| {
        let mut trial = Trial { config: "total".into(), ..Trial::default() };
        trial.observe("create", noise * times, Unit::Seconds);
        trial.observe("create-read-time", noise, Unit::Seconds);
        trial.observe("create-wal", noise * 1e6, Unit::Bytes);
        trial.observe("heap", 8192.0, Unit::Bytes);
        trial.observe("rows", 61.0, Unit::Rows);
        trial
    };
    Run {
        format_version: FORMAT_VERSION,
        id: "20261121T120000Z-blockio-1a2b".into(),
        verb: "blockio".into(),
        label: None,
        started_at: "2026-11-21T12:00:00Z".into(),
        command: vec!["pgrig".into(), "blockio".into()],
        status: Status::Done,
        request: json!({ "size": 8192, "trials": 4, "options": { "mode": "own" } }),
        plan: json!({ "rows": 61 }),
        environment: Environment {
            pgrig: "0.1.0 (commit 0123456789ab)".into(),
            server: Server {
                version: "PostgreSQL 18.6 on x86_64".into(),
                version_num: 180_006,
                block_size: 8192,
                settings: vec![
                    setting("wal_level", "minimal"),
                    setting("data_directory", "/one"),
                    setting("max_wal_size", "6839MB"),
                ],
            },
            database: "postgres".into(),
            role: "postgres".into(),
            transport: "unix socket /tmp".into(),
            client: Machine { system: "Linux".into(), cpu: "a CPU".into(), cores: 2, memory: 1 << 30 },
            server_is_local: Some(true),
            data_volume: Some(Disk { mount: "/".into(), file_system: "ext4".into(), size: 100, free: 50 }),
        },
        trials: [1.0, 1.01, 0.99, 1.02].map(trial).into(),
        notes: Vec::new(),
    }
}

fn comparison(baseline: Vec<Run>, candidate: Vec<Run>, options: &Options) -> Comparison {
    Comparison::of(&Sides::new(baseline, candidate).unwrap(), options)
}

fn compared(baseline: &Run, candidate: &Run) -> Comparison {
    comparison(vec![baseline.clone()], vec![candidate.clone()], &Options::default())
}

/// So many runs that take as many times as long as usual, each a little longer than the one before. One begins every
/// second minute, `after` minutes after noon.
fn runs(count: u32, times: f64, after: u32) -> Vec<Run> {
    let noisy = |number: u32| {
        let mut run = run(times * (1.0 + f64::from(number) / 100.0));
        run.started_at = format!("2026-11-21T12:{:02}:00Z", after + 2 * number);
        run.id = format!("{}{number}", run.id);
        run
    };
    (0..count).map(noisy).collect()
}

fn verdicts(comparison: &Comparison) -> Vec<(&str, Option<Verdict>)> {
    comparison.compared.iter().map(|one| (one.figure.name.as_str(), one.verdict)).collect()
}

#[test]
fn one_run_tells_nothing_however_many_trials_it_has() {
    let found = compared(&run(1.0), &run(9.0));
    let expected = [
        ("total", Some(Verdict::Inconclusive)),
        ("create", Some(Verdict::Inconclusive)),
        // Reads explain a step, sizes say how much was done.
        ("create-wal", None),
    ];
    assert_eq!(verdicts(&found), expected);
    assert_eq!(found.needed, Some(Needed::Runs(5)));
    assert!((found.compared[0].ratio - 9.0).abs() < 1e-9 && found.compared[0].interval.is_none());
}

#[test]
fn enough_runs_have_verdicts_and_a_direction() {
    let verdict = |times: f64, count: u32| {
        let found = comparison(runs(count, 1.0, 0), runs(count, times, 1), &Options::default());
        assert_eq!(found.needed.is_some(), count < 5, "{found:#?}");
        found.compared[1].verdict
    };
    assert_eq!(verdict(1.3, 5), Some(Verdict::Regressed));
    assert_eq!(verdict(0.7, 5), Some(Verdict::Improved));
    assert_eq!(verdict(1.3, 4), Some(Verdict::Inconclusive));
    assert_eq!(verdict(1.0, 5), Some(Verdict::NoChange));
}

#[test]
fn paired_runs_are_judged_round_by_round() {
    // Each round is slower than the one before by more than the candidate is.
    let slow = |side: Vec<Run>| {
        side.into_iter()
            .enumerate()
            .map(|(round, mut run)| {
                for observation in run.trials.iter_mut().flat_map(|trial| &mut trial.observations) {
                    observation.value *= f64::powi(2.0, i32::try_from(round).unwrap());
                }
                run
            })
            .collect::<Vec<_>>()
    };
    let sides = Sides::new(slow(runs(8, 1.0, 0)), slow(runs(8, 1.2, 1))).unwrap();
    let verdict = |sides: &Sides| Comparison::of(sides, &Options::default()).compared[0].verdict;
    assert_eq!(verdict(&sides), Some(Verdict::Inconclusive));
    let found = Comparison::of(&sides.clone().paired().unwrap(), &Options::default());
    assert_eq!(found.compared[0].verdict, Some(Verdict::Regressed));
    // The ratio shown agrees with the columns beside it.
    for one in &found.compared {
        assert!((one.typical[1] / one.typical[0] - one.ratio).abs() < 1e-9, "{one:#?}");
    }
}

#[test]
fn runs_that_were_not_measured_in_turn_are_no_rounds() {
    let sides = |baseline, candidate| Sides::new(baseline, candidate).unwrap();
    assert_eq!(sides(runs(3, 1.0, 0), runs(2, 1.0, 1)).paired().unwrap_err(), NoPairs::Counts(3, 2));
    let apart = sides(runs(3, 1.0, 0), runs(3, 1.0, 20));
    assert!(apart.is_apart());
    assert!(matches!(apart.paired().unwrap_err(), NoPairs::Order(..)));
    assert!(!sides(runs(5, 1.0, 0), runs(5, 1.0, 1)).is_apart());
    // Mostly before.
    assert!(sides(runs(5, 1.0, 0), runs(5, 1.0, 7)).is_apart());
}

#[test]
fn other_figures_are_judged_if_they_are_asked_for() {
    let options = |names: &[&str]| Options {
        figures: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Options::default()
    };
    let found = comparison(runs(5, 1.0, 0), runs(5, 2.0, 1), &options(&["create-wal"]));
    assert_eq!(verdicts(&found)[0], ("create-wal", Some(Verdict::NoChange)));
    assert_eq!(found.judged().count(), 1);
    let mut candidate = runs(5, 2.0, 1);
    candidate[2]
        .trials
        .iter_mut()
        .for_each(|trial| trial.observations.retain(|one| one.name != "create-wal"));
    let found = comparison(runs(5, 1.0, 0), candidate, &options(&["create-wal"]));
    let unmeasured: Vec<String> = found.unmeasured.iter().map(Figure::full_name).collect();
    assert_eq!((unmeasured, found.compared.len()), (vec!["total: create-wal".to_owned()], 2));
}

#[test]
fn differences_within_a_side_are_named() {
    let mut baseline = runs(5, 1.0, 0);
    baseline[3].request["size"] = 9000.into();
    let found = comparison(baseline, runs(5, 1.0, 1), &Options::default());
    let said: Vec<String> = found.hindrances().map(ToString::to_string).collect();
    assert_eq!(said, ["request.size within the baseline: 8192 → 9000"]);
}

#[test]
fn more_transactions_are_better_and_cost_no_more_for_that() {
    let tps = |count: u32, succeeded: f64, after: u32| {
        let mut runs = runs(count, 1.0, after);
        for (number, run) in runs.iter_mut().enumerate() {
            run.verb = "tps".into();
            for trial in &mut run.trials {
                trial.observations.clear();
                let succeeded = succeeded + number as f64;
                trial.observe("elapsed", 10.0, Unit::Seconds);
                trial.observe("succeeded", succeeded, Unit::Count);
                trial.observe("latency-p95", 1.0 / succeeded, Unit::Seconds);
                trial.observe("wal", 500.0 * succeeded, Unit::Bytes);
            }
        }
        runs
    };
    let found = comparison(tps(5, 1000.0, 0), tps(5, 2500.0, 1), &Options::default());
    let [tps, latency, wal] = &found.compared[..] else { panic!("{found:#?}") };
    assert_eq!((tps.figure.name.as_str(), tps.figure.unit), ("tps", FigureUnit::PerSecond));
    assert_eq!((tps.figure.better(), latency.figure.better()), (Better::More, Better::Less));
    assert_eq!((tps.verdict, latency.verdict), (Some(Verdict::Improved), Some(Verdict::Improved)));
    assert!((tps.baseline[0] - 100.0).abs() < 1e-9, "{tps:#?}");
    assert!((wal.ratio - 1.0).abs() < 1e-9 && wal.verdict.is_none(), "{wal:#?}");
}

#[test]
fn candidates_of_micro_are_multiples_of_the_first() {
    let micro = |times: f64, after: u32| {
        let mut runs = runs(5, 1.0, after);
        for run in &mut runs {
            run.verb = "micro".into();
            run.request = json!({ "candidates": [{ "name": "one" }, { "name": "two" }, { "name": "free" }] });
            for (number, trial) in run.trials.iter_mut().enumerate() {
                trial.config = if number == 0 { "cold".into() } else { "round".into() };
                trial.observations.clear();
                let rows = 1000.0 * times;
                for (name, each) in [("two", 1.0 + 4.0 * times), ("empty", 1.0), ("one", 3.0), ("free", 0.9)]
                {
                    trial.observe(name, each * rows, Unit::Seconds);
                }
                trial.observe("two-wal", 72.0 * rows, Unit::Bytes);
                trial.observe("rows", rows, Unit::Rows);
            }
        }
        runs
    };
    let found = comparison(micro(1.0, 0), micro(1.5, 1), &Options::default());
    assert_eq!(found.judged().count(), 1, "{found:#?}");
    let two = &found.compared[0];
    assert_eq!((two.figure.config.as_str(), two.figure.unit), ("two", FigureUnit::Times));
    assert!((two.baseline[0] - 2.0).abs() < 1e-9 && (two.candidate[0] - 3.0).abs() < 1e-9, "{two:#?}");
    assert_eq!(two.verdict, Some(Verdict::Regressed));
    let wal = found.compared.iter().find(|one| one.figure.name == "two-wal").unwrap();
    assert!((wal.ratio - 1.0).abs() < 1e-9 && wal.figure.unit == FigureUnit::BytesPerRow, "{wal:#?}");
}

#[test]
fn the_multiple_is_the_one_that_the_run_reports() {
    let mut run = run(1.0);
    run.verb = "micro".into();
    run.request = json!({ "candidates": [{ "name": "one" }, { "name": "two" }, { "name": "free" }] });
    for trial in &mut run.trials {
        trial.config = "round".into();
        trial.observations.clear();
        for (name, seconds) in [("one", 3.0), ("two", 5.0), ("free", 1.1), ("empty", 1.0)] {
            trial.observe(name, seconds, Unit::Seconds);
        }
        trial.observe("rows", 1.0, Unit::Rows);
    }
    let multiples = |run: &Run| -> Vec<(String, f64)> {
        let all = measure::figures(run).into_iter().filter(|(figure, _)| figure.unit == FigureUnit::Times);
        all.map(|(figure, value)| (figure.config, (value * 100.0).round() / 100.0)).collect()
    };
    let named = |name: &str, value: f64| (name.to_owned(), value);
    assert_eq!(multiples(&run), [named("two", 2.0), named("free", 0.05)]);
    let what = [
        json!({ "event": "own-time", "candidate": "free", "measurable": false }),
        json!({ "event": "verdict", "candidate": "two", "baseline": "one", "relative": { "value": 1.5 } }),
    ];
    let events = what.map(|what| Event { at: 0.0, text: String::new(), what });
    run.trials.push(Trial { config: "verdicts".into(), events: Vec::from(events), ..Trial::default() });
    assert_eq!(multiples(&run), [named("two", 2.5)]);
    assert_eq!(measure::unmeasurable(&run), ["free"]);
}

/// The reported difference of a changed run, and whether it hinders the comparison.
fn told(change: impl Fn(&mut Run)) -> (String, bool) {
    let mut candidate = run(1.0);
    change(&mut candidate);
    let comparison = compared(&run(1.0), &candidate);
    let [difference] = &comparison.differences[..] else { panic!("{:#?}", comparison.differences) };
    assert_eq!(comparison.hindrances().count(), usize::from(difference.hinders));
    (difference.to_string(), difference.hinders)
}

#[test]
fn what_changes_the_work_or_the_place_hinders() {
    let hinders = |said: &str, change: &dyn Fn(&mut Run)| assert_eq!(told(change), (said.to_owned(), true));
    hinders("request.size: 8192 → 9000", &|run| run.request["size"] = 9000.into());
    hinders("request.options.mode: own → compat", &|run| {
        run.request["options"]["mode"] = "compat".into();
    });
    hinders("status: done → interrupted", &|run| run.status = Status::Interrupted);
    hinders("server version: PostgreSQL 18.6 → PostgreSQL 17.2", &|run| {
        run.environment.server.version = "PostgreSQL 17.2 on x86_64".into();
        run.environment.server.version_num = 170_002;
    });
    hinders("setting wal_level: minimal → default", &|run| {
        run.environment.server.settings.remove(0);
    });
    hinders("setting fsync: default → off", &|run| {
        run.environment.server.settings.push(setting("fsync", "off"));
    });
    hinders("setting max_wal_size: 6839MB → 5GB", &|run| {
        run.environment.server.settings[2].value = "5GB".into();
    });
    hinders("processors: 2 → 8", &|run| run.environment.client.cores = 8);
    hinders("memory: 1073741824 → 2147483648", &|run| run.environment.client.memory *= 2);
    hinders("location of the server: on the client's machine → not known", &|run| {
        run.environment.server_is_local = None;
    });
    hinders("transport: a unix socket → tcp db:5432", &|run| {
        run.environment.transport = "tcp db:5432".into();
    });
    hinders("data volume: ext4 of 100 bytes → xfs of 100 bytes", &|run| {
        run.environment.data_volume.as_mut().unwrap().file_system = "xfs".into();
    });
}

#[test]
fn what_does_not_is_only_named() {
    let named = |said: &str, change: &dyn Fn(&mut Run)| assert_eq!(told(change), (said.to_owned(), false));
    named("request.trials: 4 → 9", &|run| run.request["trials"] = 9.into());
    named("request.network: absent → true", &|run| run.request["network"] = true.into());
    named("plan.rows: 61 → 62", &|run| run.plan["rows"] = 62.into());
    named("setting data_directory: /one → /two", &|run| {
        run.environment.server.settings[1].value = "/two".into();
    });
    named("setting max_wal_size: 6839MB → 7GB", &|run| {
        run.environment.server.settings[2].value = "7GB".into();
    });
    named("role: postgres → me", &|run| run.environment.role = "me".into());
    named("pgrig: 0.1.0 (commit 0123456789ab) → 0.2.0 (commit unknown)", &|run| {
        run.environment.pgrig = "0.2.0 (commit unknown)".into();
    });
    named("pgrig: 0.1.0 (commit 0123456789ab) → 0.1.0 (commit 0123456789ab, dirty)", &|run| {
        run.environment.pgrig = "0.1.0 (commit 0123456789ab, dirty)".into();
    });
}

#[test]
fn a_load_of_backups_hinders_only_where_one_is_recovered_under_it() {
    let hindrances = |recovers: bool, change: &dyn Fn(&mut Run)| {
        let backups = |run: &mut Run| {
            run.verb = "backup".into();
            if recovers {
                run.trials[0].observe("replayed", 1.0, Unit::Bytes);
            }
        };
        let (mut baseline, mut candidate) = (run(1.0), run(1.0));
        backups(&mut baseline);
        backups(&mut candidate);
        change(&mut candidate);
        compared(&baseline, &candidate).hindrances().map(ToString::to_string).collect::<Vec<_>>()
    };
    let load: &dyn Fn(&mut Run) = &|run| run.request["load"] = json!({ "rate": 5.0, "clients": 2 });
    assert_eq!(hindrances(false, load), [""; 0]);
    assert_eq!(
        hindrances(true, load),
        ["request.load.clients: absent → 2", "request.load.rate: absent → 5.0"]
    );
    for name in ["rto", "price"] {
        assert_eq!(hindrances(true, &|run| run.request[name] = 0.5.into()), [""; 0], "{name}");
    }
    assert_eq!(hindrances(false, &|run| run.request["rate"] = 0.5.into()).len(), 1);
}

/// Their texts can be long.
#[test]
fn different_scripts_hinder_and_are_named() {
    let script =
        |name: &str, weight: u32, text: &str| json!({ "name": name, "weight": weight, "text": text });
    let of = |scripts: &[Value]| {
        let plan = json!({ "scripts": scripts });
        let request = json!({ "scripts": scripts });
        Run { verb: "tps".into(), request, plan, ..run(1.0) }
    };
    let one = script("a.sql", 1, "SELECT 1");
    for (candidate, said) in [
        (vec![script("b.sql", 1, "SELECT 1")], "request.scripts: a.sql → b.sql"),
        (vec![script("a.sql", 1, "SELECT 2")], "request.scripts: a.sql → a.sql with another text"),
        (
            vec![script("a.sql", 9, "SELECT 1"), script("b.sql", 1, "SELECT 2")],
            "request.scripts: a.sql → a.sql@9, b.sql",
        ),
    ] {
        let differences = compared(&of(std::slice::from_ref(&one)), &of(&candidate)).differences;
        let said_of: Vec<String> = differences.iter().map(ToString::to_string).collect();
        assert_eq!(said_of, [said]);
        assert!(differences[0].hinders, "{said}");
    }
    assert_eq!(compared(&of(std::slice::from_ref(&one)), &of(std::slice::from_ref(&one))).differences, []);
}

#[test]
fn another_verb_hinders_and_its_own_fields_are_no_news() {
    let fill = |run: &mut Run| {
        run.verb = "fill".into();
        run.request = json!({ "amount": "nothing" });
    };
    assert_eq!(told(fill), ("verb: blockio → fill".to_owned(), true));
}

#[test]
fn two_incomplete_runs_have_a_status_in_common() {
    let failed = Run { status: Status::Failed, ..run(1.0) };
    let comparison = compared(&failed, &failed);
    let hindrances: Vec<String> = comparison.hindrances().map(ToString::to_string).collect();
    assert_eq!(hindrances, ["status: both failed"]);
}

#[test]
fn where_a_socket_is_how_long_the_server_runs_and_a_little_memory_are_no_differences() {
    let mut other = run(1.0);
    other.environment.server.settings.push(setting("restart_after_crash", "off"));
    other.environment.transport = "unix socket /home/me".into();
    other.environment.client.memory += 4096;
    other.environment.data_volume.as_mut().unwrap().free = 7;
    assert_eq!(compared(&run(1.0), &other).differences, []);
}

/// The statements of a plan have the number of rows, too.
#[test]
fn another_number_of_rows_that_micro_chose_is_no_difference() {
    let plan = |rows: u64, shape: &str| {
        json!({"rows": rows, "fixed": 0.001, "notes": [format!("{rows} rows")], "arms": [
            {"name": "a", "sql": format!("SELECT count(md5(i::text)) FROM generate_series(1, {rows}) i"), "sample": 0.1,
             "shape": shape}]})
    };
    let of = |plan| Run { verb: "micro".to_owned(), plan, ..run(1.0) };
    let (first, second) = (of(plan(1000, "Aggregate")), of(plan(4000, "Aggregate")));
    assert_eq!(compared(&first, &second).differences, []);
    let other = compared(&first, &of(plan(1000, "Result"))).differences;
    assert_eq!(other.len(), 1, "{other:#?}");
    assert_eq!(other[0].to_string(), "plan.arms.a: Aggregate → Result");
}

#[test]
fn documents_of_others_are_not_read() {
    let error = |text: &str| Run::read(text).unwrap_err().to_string();
    assert!(error("{}").contains("not a run document of pgrig"), "{}", error("{}"));
    assert!(error("select").contains("not a run document of pgrig"));
    let newer = "the run document has format 9, and this pgrig reads format 1: use a newer pgrig";
    assert_eq!(error(r#"{ "format_version": 9 }"#), newer);
    let text = serde_json::to_string(&run(1.0)).unwrap();
    assert_eq!(Run::read(&text).unwrap(), run(1.0));
}
