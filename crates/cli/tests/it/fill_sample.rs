//! The sample of a fill tells how well its rows compress: it is compared with dumps of all rows.

use std::process::{Command, Stdio};

use crate::support::{NEWEST, OLDEST, Rig, observed};
use testkit::{Need, require};

/// How many times smaller zstd -3 makes the output of this program.
fn ratio(mut program: Command) -> f64 {
    let mut running = program.stdout(Stdio::piped()).spawn().unwrap();
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    let plain = std::io::copy(running.stdout.as_mut().unwrap(), &mut encoder).unwrap();
    assert!(running.wait().unwrap().success(), "{program:?}");
    plain as f64 / encoder.finish().unwrap().len() as f64
}

/// Fills, and compares the sample's ratio with the one of a whole dump.
#[track_caller]
fn assert_ratio(rig: &Rig, fill: &str, dump: Command) {
    let document = rig.document(&format!("fill {fill}"));
    let told = observed(&document, "sample-rows") / observed(&document, "sample-rows-compressed");
    let real = ratio(dump);
    assert!((told / real - 1.0).abs() < 0.1, "{fill}: {told} of the sample, {real} of all");
}

#[test]
fn the_sample_shrinks_like_the_output_of_pg_dump() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server(OLDEST);
    for payload in ["blank", "text", "random"] {
        for size in ["20MB", "40MB"] {
            let mut dump = Command::new("pg_dump");
            dump.args(["-d", &server.url]);
            assert_ratio(&rig, &format!("{size} --drop --payload {payload}"), dump);
        }
    }
}

/// pg_dump writes rows as COPY does, but it refuses a server that is newer than itself.
#[test]
fn the_sample_shrinks_like_the_output_of_copy() {
    if !require(Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server(NEWEST);
    let rows = |table: &str| {
        let mut psql = Command::new("psql");
        psql.args([
            "-X",
            "-q",
            "-c",
            "SET datestyle = ISO",
            "-c",
            &format!("COPY {table} TO STDOUT"),
            &server.url,
        ]);
        psql
    };
    for options in [
        "40MB --payload blank",
        "40MB --payload text",
        "40MB --payload random",
        "40MB --partitions 8",
        "40MB --fillfactor 10 --data-only --method copy --streams 1",
    ] {
        assert_ratio(&rig, &format!("{options} --drop"), rows("(TABLE pgbench_accounts)"));
    }
    // pg_dump leaves generated columns out; it reads values that are stored out of line; its dates are ISO's.
    server.execute(
        "ALTER DATABASE postgres SET datestyle = 'SQL, DMY';
         CREATE TABLE own (id bigint, at timestamp, note text, code text,
                           codes text GENERATED ALWAYS AS (repeat(code, 9)) STORED);
         ALTER TABLE own ALTER note SET STORAGE EXTERNAL",
    );
    let columns =
        "--column at=timeseries(2024-01-01,1s) --column note=text(100,3000) --column code=random(20)";
    assert_ratio(&rig, &format!("--rows 30000 --table own {columns}"), rows("own"));
}
