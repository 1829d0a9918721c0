//! Two runs beside each other: what hinders, what is only named, which figures are judged.

use measure::compare::{Better, Comparison, FigureUnit};
use measure::{
    Disk, Environment, FORMAT_VERSION, Machine, Run, Server, Setting, Status, Trial, Unit, Verdict,
};
use serde_json::json;

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
        started_at: "2026-11-21T12:00:00Z".into(),
        status: Status::Done,
        request: json!({ "size": 8192, "trials": 4, "options": { "mode": "own" } }),
        plan: json!({ "rows": 61 }),
        environment: Environment {
            pgrig: "0.1.0".into(),
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

fn compared(baseline: &Run, candidate: &Run) -> Comparison {
    Comparison::of(baseline, candidate, 0.05)
}

#[test]
fn the_same_compares_without_a_word() {
    let comparison = compared(&run(1.0), &run(1.0));
    assert_eq!(comparison.differences, []);
    let told: Vec<(&str, Verdict)> =
        comparison.compared.iter().map(|one| (one.figure.name.as_str(), one.change.verdict)).collect();
    // Sizes and rows say what was done, waits why it took so long: they are not judged.
    assert_eq!(told, [("create", Verdict::NoChange), ("create-wal", Verdict::NoChange)]);
}

#[test]
fn better_and_worse_have_a_direction() {
    let of_create = |times: f64| compared(&run(1.0), &run(times)).compared[0].change;
    assert_eq!(of_create(0.8).verdict, Verdict::Improved);
    assert_eq!(of_create(1.2).verdict, Verdict::Regressed);
    assert!((of_create(1.2).ratio - 1.2).abs() < 1e-9);
}

#[test]
fn transactions_per_second_are_derived_and_more_is_better() {
    let tps = |succeeded: f64| {
        let mut run = run(1.0);
        for (number, trial) in run.trials.iter_mut().enumerate() {
            trial.observations.clear();
            trial.observe("elapsed", 10.0, Unit::Seconds);
            trial.observe("succeeded", succeeded + number as f64, Unit::Count);
            trial.observe("latency-p99", 1.0 / succeeded, Unit::Seconds);
        }
        run
    };
    let comparison = compared(&tps(1000.0), &tps(2000.0));
    let [tps, latency] = &comparison.compared[..] else { panic!("{comparison:#?}") };
    assert_eq!((tps.figure.name.as_str(), tps.figure.unit), ("tps", FigureUnit::PerSecond));
    assert_eq!((tps.figure.better(), latency.figure.better()), (Better::More, Better::Less));
    assert_eq!((tps.change.verdict, latency.change.verdict), (Verdict::Improved, Verdict::Improved));
    assert!((tps.baseline.median() - 100.15).abs() < 1e-9, "{tps:#?}");
}

#[test]
fn samples_of_micro_are_by_row() {
    let micro = |rows: f64| {
        let mut run = run(1.0);
        run.verb = "micro".into();
        for (number, trial) in run.trials.iter_mut().enumerate() {
            trial.config = if number == 0 { "cold".into() } else { "round".into() };
            trial.observations.clear();
            trial.observe("md5", 1e-7 * rows, Unit::Seconds);
            trial.observe("md5-wal", 72.0 * rows, Unit::Bytes);
            trial.observe("rows", rows, Unit::Rows);
        }
        run.trials.extend(run.trials[1..].to_vec());
        run
    };
    let comparison = compared(&micro(1e5), &micro(3e5));
    let [time, wal] = &comparison.compared[..] else { panic!("{comparison:#?}") };
    assert!((time.candidate.median() - 1e-7).abs() < 1e-12 && (wal.candidate.median() - 72.0).abs() < 1e-9);
    assert_eq!((time.figure.config.as_str(), time.candidate.count()), ("round", 6));
    assert_eq!((time.change.verdict, wal.change.verdict), (Verdict::NoChange, Verdict::NoChange));
}

/// What is told of a run that was changed, and whether that hinders.
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
    hinders("request.size was 8192, now it is 9000", &|run| run.request["size"] = 9000.into());
    hinders("request.options.mode was own, now it is compat", &|run| {
        run.request["options"]["mode"] = "compat".into();
    });
    hinders("status was done, now it is interrupted", &|run| run.status = Status::Interrupted);
    hinders("server version was PostgreSQL 18.6, now it is PostgreSQL 17.2", &|run| {
        run.environment.server.version = "PostgreSQL 17.2 on x86_64".into();
        run.environment.server.version_num = 170_002;
    });
    hinders("setting wal_level was minimal, now it is default", &|run| {
        run.environment.server.settings.remove(0);
    });
    hinders("setting fsync was default, now it is off", &|run| {
        run.environment.server.settings.push(setting("fsync", "off"));
    });
    hinders("setting max_wal_size was 6839MB, now it is 5GB", &|run| {
        run.environment.server.settings[2].value = "5GB".into();
    });
    hinders("processors was 2, now it is 8", &|run| run.environment.client.cores = 8);
    hinders("memory was 1073741824, now it is 2147483648", &|run| run.environment.client.memory *= 2);
    hinders("the server's place was on the client's machine, now it is not known", &|run| {
        run.environment.server_is_local = None;
    });
    hinders("transport was a unix socket, now it is tcp db:5432", &|run| {
        run.environment.transport = "tcp db:5432".into();
    });
    hinders("data volume was ext4 of 100 bytes, now it is xfs of 100 bytes", &|run| {
        run.environment.data_volume.as_mut().unwrap().file_system = "xfs".into();
    });
}

#[test]
fn what_does_not_is_only_named() {
    let named = |said: &str, change: &dyn Fn(&mut Run)| assert_eq!(told(change), (said.to_owned(), false));
    named("request.trials was 4, now it is 9", &|run| run.request["trials"] = 9.into());
    named("plan.rows was 61, now it is 62", &|run| run.plan["rows"] = 62.into());
    named("setting data_directory was /one, now it is /two", &|run| {
        run.environment.server.settings[1].value = "/two".into();
    });
    named("setting max_wal_size was 6839MB, now it is 7GB", &|run| {
        run.environment.server.settings[2].value = "7GB".into();
    });
    named("role was postgres, now it is me", &|run| run.environment.role = "me".into());
    named("pgrig was 0.1.0, now it is 0.2.0", &|run| run.environment.pgrig = "0.2.0".into());
}

#[test]
fn another_verb_hinders_and_its_own_fields_are_no_news() {
    let fill = |run: &mut Run| {
        run.verb = "fill".into();
        run.request = json!({ "amount": "nothing" });
    };
    assert_eq!(told(fill), ("verb was blockio, now it is fill".to_owned(), true));
}

#[test]
fn where_a_socket_is_and_a_little_memory_are_no_differences() {
    let mut other = run(1.0);
    other.environment.transport = "unix socket /home/me".into();
    other.environment.client.memory += 4096;
    other.environment.data_volume.as_mut().unwrap().free = 7;
    assert_eq!(compared(&run(1.0), &other).differences, []);
}

#[test]
fn documents_of_others_are_not_read() {
    let error = |text: &str| Run::read(text).unwrap_err().to_string();
    assert!(error("{}").contains("no run document of pgrig"), "{}", error("{}"));
    assert!(error("select").contains("no run document of pgrig"));
    assert_eq!(error(r#"{ "format_version": 9 }"#), "its format is version 9, this pgrig reads 1");
    let text = serde_json::to_string(&run(1.0)).unwrap();
    assert_eq!(Run::read(&text).unwrap(), run(1.0));
}
