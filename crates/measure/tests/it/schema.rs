//! The run document against its JSON Schema; `cli`'s tests check documents of real runs.

use std::time::Duration;

use measure::{
    Disk, Environment, FORMAT_VERSION, Histogram, Latencies, Machine, Note, Run, SCHEMA, Series, Server,
    Setting, Status, Trial, Unit,
};
use serde_json::{Value, json};

fn run() -> Run {
    let mut trial = Trial { config: "fill".into(), ..Trial::default() };
    trial.observe("generate", 1.25, Unit::Seconds);
    trial.observe("heap", 8192.0, Unit::Bytes);
    let mut sent = Series::new("rows-sent", Unit::Seconds, Unit::Rows);
    sent.points.extend([(1.0, 610.0), (1.25, 122.0)]);
    trial.series.push(sent);
    let mut latencies = Latencies::default();
    latencies.record(Duration::from_micros(118));
    trial.histograms.push(Histogram { name: "latency".into(), latencies });
    Run {
        format_version: FORMAT_VERSION,
        id: "20261121T120000Z-fill-1a2b".into(),
        verb: "fill".into(),
        label: Some("before the index".into()),
        started_at: "2026-11-21T12:00:00Z".into(),
        command: vec!["pgrig".into(), "fill".into()],
        status: Status::Done,
        request: json!({ "size": 8192 }),
        plan: json!({ "rows": 61 }),
        environment: Environment {
            pgrig: "0.1.0 (commit 0123456789ab, dirty)".into(),
            server: Server {
                version: "PostgreSQL 18.6 on x86_64".into(),
                version_num: 180_006,
                block_size: 8192,
                settings: vec![Setting {
                    name: "wal_level".into(),
                    value: "minimal".into(),
                    source: "configuration file".into(),
                }],
            },
            database: "postgres".into(),
            role: "postgres".into(),
            transport: "unix socket /tmp".into(),
            client: Machine { system: "Linux".into(), cpu: "a CPU".into(), cores: 2, memory: 1 << 30 },
            server_is_local: Some(true),
            data_volume: Some(Disk { mount: "/".into(), file_system: "ext4".into(), size: 100, free: 50 }),
        },
        trials: vec![trial],
        notes: vec![Note { text: "a checkpoint ran".into() }],
    }
}

fn is_valid(document: &Value) -> bool {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    jsonschema::validator_for(&schema).unwrap().is_valid(document)
}

#[test]
fn a_run_fits_the_schema_and_reads_back_the_same() {
    let document: Value = serde_json::from_str(&run().document().unwrap()).unwrap();
    assert!(is_valid(&document));
    assert_eq!(serde_json::from_value::<Run>(document).unwrap(), run());
}

#[test]
fn documents_from_before_there_were_series_and_histograms_are_read() {
    let mut document = serde_json::to_value(run()).unwrap();
    for field in ["series", "events", "histograms"] {
        document["trials"][0].as_object_mut().unwrap().remove(field);
    }
    assert!(is_valid(&document));
    let read = serde_json::from_value::<Run>(document).unwrap().trials.remove(0);
    assert_eq!((read.series, read.events, read.histograms), (vec![], vec![], vec![]));
}

#[test]
fn the_schema_refuses_what_a_reader_could_not_use() {
    let spoil = |pointer: &str, value: Value| {
        let mut document = serde_json::to_value(run()).unwrap();
        *document.pointer_mut(pointer).unwrap() = value;
        assert!(!is_valid(&document), "{pointer} was accepted");
    };
    spoil("/format_version", json!(2));
    spoil("/status", json!("ok"));
    spoil("/trials/0/observations/0/unit", json!("ms"));
    spoil("/trials/0/observations/0/value", json!("1"));
    spoil("/trials/0/series/0/y_unit", json!("MB/s"));
    spoil("/trials/0/series/0/points/1", json!([1.25]));
    spoil("/trials/0/histograms/0/latencies", json!("no base64!"));
    spoil("/trials/0/histograms/0", json!({ "name": "latency" }));
    spoil("/environment/server/version_num", json!(90_600));
    spoil("/environment/transport", json!("carrier pigeon"));
}
