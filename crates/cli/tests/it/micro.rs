//! `pgrig micro` as people use it: tables, documents, exit status, the database's schema benchmark, and nothing
//! left behind.

use std::process::Stdio;

use crate::support::{NEWEST, OLDEST, Ran, Rig, Server};
use serde_json::Value;

/// Runs `pgrig micro` with arguments that have blanks in them.
pub(super) fn micro(rig: &Rig, arguments: &[&str]) -> Ran {
    let mut command = rig.command("micro");
    Ran::from(command.args(arguments).stdin(Stdio::null()).output().unwrap())
}

pub(super) fn done(rig: &Rig, arguments: &[&str]) -> Ran {
    let ran = micro(rig, arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:#?}");
    ran
}

/// Runs with a larger and larger budget until it prints all of `said` to standard output: a busy machine needs longer
/// for as many rounds.
#[track_caller]
fn says(rig: &Rig, arguments: &[&str], said: &[&str]) -> Ran {
    let mut last = None;
    for budget in ["1s", "5s", "25s"] {
        let ran = done(rig, &[arguments, &["--budget", budget]].concat());
        if said.iter().all(|said| ran.stdout.contains(said)) {
            return ran;
        }
        last = Some(ran);
    }
    panic!("not all of {said:?}: {last:#?}")
}

fn document(rig: &Rig, arguments: &[&str]) -> Value {
    let ran = done(rig, &[arguments, &["--json", "-"]].concat());
    let document =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stdout));
    assert_valid(&document);
    document
}

pub(super) fn assert_valid(document: &Value) {
    let schema: Value = serde_json::from_str(measure::SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

fn of_config<'d>(document: &'d Value, config: &str) -> Vec<&'d Value> {
    document["trials"].as_array().unwrap().iter().filter(|trial| trial["config"] == config).collect()
}

fn names(trial: &Value) -> Vec<&str> {
    let observations = trial["observations"].as_array().unwrap();
    observations.iter().map(|observation| observation["name"].as_str().unwrap()).collect()
}

pub(super) fn assert_nothing_left(server: &Server) {
    let left = "SELECT (SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pgrig%') \
                     + (SELECT count(*) FROM pg_class WHERE relname LIKE 'pgrig%')";
    assert_eq!(server.number(left), 0);
}

#[test]
fn the_document_has_every_sample_and_the_table_the_verdict() {
    for version in [NEWEST, OLDEST] {
        let rig = Rig::new();
        let _server = rig.server(version);
        let dear = "md5(md5(md5(md5(i::text))))";
        let found = document(&rig, &["abs(i)", dear, "--budget", "3s", "--rows", "2000"]);
        assert_eq!(found["status"], "done");
        assert_eq!((&found["plan"]["rows"], &found["request"]["threshold"]), (&2000.into(), &0.01.into()));
        assert_eq!(of_config(&found, "cold").len(), 1);
        let rounds = of_config(&found, "round");
        assert!(rounds.len() >= 15, "{}", rounds.len());
        for round in &rounds {
            let mut names = names(round);
            names.sort_unstable();
            assert_eq!(names, ["abs(i)", "empty", dear, "repeat", "rows"]);
        }
        assert!(rounds.iter().any(|round| names(round) != names(rounds[0])), "the order is theirs");
        let verdicts = of_config(&found, "verdicts")[0]["events"].as_array().unwrap();
        let verdict = &verdicts.iter().find(|event| event["what"]["event"] == "verdict").unwrap()["what"];
        assert_eq!((&verdict["verdict"], &verdict["candidate"]), (&"regressed".into(), &dear.into()));
        assert!(verdict["difference"]["low"].as_f64().unwrap() > 0.0, "{verdict}");

        let said = [
            "ns per row",
            "slower",
            "noise: ",
            "the empty loop's",
            "cold round",
            "ns per row + loop",
            "trimmed: mean",
            "these times include the empty loop; those of the table above do not",
        ];
        let ran = says(&rig, &["abs(i)", dear, "-q"], &said);
        assert_eq!(ran.stderr, "", "quiet");
        // One alone is measured against the empty loop.
        let ran = done(&rig, &["abs(i)", "--budget", "500ms"]);
        assert!(!ran.stdout.contains("  verdict") && ran.stdout.contains("abs(i)"), "{ran:#?}");
        assert!(ran.stderr.contains("run document: "), "{ran:#?}");
    }
}

#[test]
fn what_is_refused_can_be_measured_anyway() {
    let rig = Rig::new();
    let _server = rig.server("");
    let ran = micro(&rig, &["md5('x')", "md5(i::text)"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(
        ran.stderr.contains("md5('x'): the planner computes this expression once, as the constant")
            && ran.stderr.contains("--anyway"),
        "{ran:#?}"
    );
    let ran = done(&rig, &["md5('x')", "md5(i::text)", "--anyway", "--budget", "500ms"]);
    assert!(
        ran.stderr.contains("warning: md5('x'): the planner computes this expression once, as the constant"),
        "{ran:#?}"
    );
}

#[test]
fn explain_shows_what_is_executed_and_stops() {
    let rig = Rig::new();
    let server = rig.server("");
    let setup = "CREATE FUNCTION square(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * $1'";
    let ran = done(
        &rig,
        &["square(i)", "md5('x')", "--setup", setup, "--teardown", "DROP FUNCTION square", "--explain"],
    );
    for said in [
        "executed   (i * i)",
        "square() is inlined",
        "refused    the planner computes this expression once, as the constant",
        "jit = off",
    ] {
        assert!(ran.stdout.contains(said), "{said}: {ran:#?}");
    }
    assert!(!ran.stderr.contains("run document"), "{ran:#?}");
    let ran = done(&rig, &["--suite", "uuid-keys", "--explain", "--json", "-"]);
    let plan: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(plan["arms"][0]["name"], "bigint identity");
    assert_eq!(server.number("SELECT count(*) FROM pg_proc WHERE proname = 'square'"), 0);
    assert_nothing_left(&server);
}

#[test]
fn the_calibration_has_every_number_of_rows() {
    let rig = Rig::new();
    let _server = rig.server("");
    let found = document(&rig, &["--calibrate", "--rows", "500", "i % 7", "--budget", "2s"]);
    let trial = of_config(&found, "calibration")[0];
    assert_eq!(trial["series"][0]["name"], "rows-500");
    assert!(trial["series"][0]["points"].as_array().unwrap().len() > 10);
    let file = rig.home.path().join("calibration.json");
    let ran = done(&rig, &["--calibrate", "--budget", "3s", "--json", file.to_str().unwrap()]);
    for rows in ["10", "100", "1,000"] {
        assert!(
            ran.stdout.lines().any(|line| line.split_whitespace().next() == Some(rows)),
            "{rows}: {ran:#?}"
        );
    }
    // No conclusion from a few samples, and none that end long after the budget.
    assert!(ran.stdout.contains("too few samples of ") && !ran.stdout.contains("least at"), "{ran:#?}");
    assert!(
        ran.stdout.contains("10,000,000 rows to find the number of rows at which the times vary least"),
        "{ran:#?}"
    );
    let found: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let series = of_config(&found, "calibration")[0]["series"].as_array().unwrap();
    let points = |series: &Value| -> Vec<f64> {
        series["points"].as_array().unwrap().iter().map(|point| point[1].as_f64().unwrap()).collect()
    };
    let is_one_round = points(&series[0]).len() <= 10;
    let seconds: Vec<f64> = series.iter().flat_map(points).collect();
    // Whatever takes long, only the last sample may end after the budget, once each number of rows has had its first.
    let longest = seconds.iter().copied().fold(0.0, f64::max);
    let begun: f64 = seconds.iter().sum::<f64>() - longest;
    assert!(is_one_round || begun < 3.0, "{seconds:?}: {ran:#?}");
}

/// Fields of a line of CSV that may have line breaks in it.
fn csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field, mut is_quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => field.extend(characters.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(std::mem::take(&mut field)),
            '\n' if !is_quoted => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            other => field.push(other),
        }
    }
    assert!(!is_quoted && row.is_empty() && field.is_empty(), "{text}");
    rows
}

#[test]
fn tables_for_pasting_hold_awkward_names() {
    let rig = Rig::new();
    let server = rig.server("");
    let names = ["a | \\\"b\\\", c", "two\\nlines", "`code` \\\\| *x*"];
    let expressions = ["md5(i::text)", "i + 1", "md5(md5(i::text))"];
    let candidates = names
        .iter()
        .zip(expressions)
        .map(|(name, expression)| format!("[[candidate]]\nname = \"{name}\"\nexpression = '{expression}'\n"));
    let suite = rig.home.path().join("suite.toml");
    std::fs::write(&suite, format!("title = 'x'\n{}", candidates.collect::<String>())).unwrap();
    let run = |more: &[&str]| {
        let arguments = ["--suite", suite.to_str().unwrap(), "--rows", "1000"];
        says(&rig, &[&arguments, more].concat(), &["two"])
    };
    let ran = run(&["--format", "csv"]);
    let rows = csv(&ran.stdout);
    let column = |name: &str| rows[0].iter().position(|title| title == name).unwrap();
    let mut found: Vec<&str> = rows[1..].iter().map(|row| row[0].as_str()).collect();
    let first = found.iter().position(|name| *name == "a | \"b\", c").unwrap();
    found.sort_unstable();
    assert_eq!(found, ["`code` \\| *x*", "a | \"b\", c", "two\nlines"], "{ran:#?}");
    // The fastest first, whatever noise makes of them.
    let differences: Vec<f64> = rows[1..]
        .iter()
        .map(|row| row[column("difference_from_first_ns_per_row")].parse().unwrap_or(0.0))
        .collect();
    assert!(differences.is_sorted() && differences[first].abs() < 1e-12, "{ran:#?}");
    for (number, row) in rows[1..].iter().enumerate() {
        assert!(row[column("ns_per_row")].parse::<f64>().is_ok(), "{ran:#?}");
        assert_eq!(row[column("verdict")].is_empty(), number == first, "{ran:#?}");
    }
    assert!(ran.stderr.contains("noise: "), "{ran:#?}");

    let ran = run(&["--format", "md", "-q"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 5, "{ran:#?}");
    for line in &lines {
        let line = line.replace("\\\\", "").replace("\\|", "");
        assert_eq!(line.matches('|').count(), 7, "{ran:#?}");
        assert!(line.starts_with("| ") && line.ends_with(" |"), "{ran:#?}");
    }
    let marks = "| <code>&#96;code&#96; &#92;&#124; &#42;x&#42;</code> | ";
    for name in ["| two lines | ", r#"| `a \| "b", c` | "#, marks] {
        assert!(lines[2..].iter().any(|line| line.starts_with(name)), "{name}: {ran:#?}");
    }

    let ran = micro(&rig, &["i + 1", "--format", "md", "--json", "-"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert_nothing_left(&server);
}

#[test]
fn a_candidate_cheaper_than_the_empty_one_is_not_measurable() {
    let rig = Rig::new();
    let _server = rig.server("");
    let cheap = "SELECT count(*) FROM generate_series(1, {rows})";
    let dear = "SELECT count(md5(repeat(i::text, 3000))) FROM generate_series(1, {rows}) AS i";
    let empty = "SELECT count(md5(repeat(i::text, 1500))) FROM generate_series(1, {rows}) AS i";
    let arguments = ["--statement", dear, "--statement", cheap, "--empty", empty, "--rows", "300"];
    let ran = says(&rig, &arguments, &["…  not measurable  -", "faster ("]);
    let line = ran.stdout.lines().find(|line| line.starts_with("SELECT count(*)")).unwrap();
    assert!(line.contains("…  not measurable  -") && line.contains("faster ("), "{ran:#?}");
    // A ratio would mean nothing.
    assert!(line.contains(")  -  "), "{ran:#?}");
    assert!(ran.stdout.contains("it is faster than the --empty statement"), "{ran:#?}");
}

#[test]
fn tables_compete_and_wal_is_told() {
    let rig = Rig::new();
    let server = rig.server(OLDEST);
    let (int, uuid) = (
        "CREATE TABLE {table} (id int)",
        "CREATE TABLE {table} (id uuid DEFAULT gen_random_uuid() PRIMARY KEY)",
    );
    let found = document(&rig, &["--ddl", int, "--ddl", uuid, "--rows", "500", "--budget", "1s"]);
    let round = of_config(&found, "round")[0];
    assert!(names(round).contains(&format!("{uuid}-wal").as_str()), "{round}");
    assert_nothing_left(&server);
    says(&rig, &["--suite", "integer-keys", "--rows", "500"], &["WAL bytes", "bigint"]);
    assert_nothing_left(&server);
}

#[test]
fn a_role_without_rights_measures() {
    for version in [NEWEST, OLDEST] {
        let rig = Rig::new();
        let server = rig.server(version);
        server.execute(
            "REVOKE CREATE ON SCHEMA public FROM PUBLIC; CREATE ROLE guest LOGIN; CREATE SCHEMA lent",
        );
        let guest = server.url.replace("postgres@", "guest@");
        done(&rig, &["abs(i)", "i + 1", "--budget", "300ms", "-d", &guest]);
        let ddl = ["--ddl", "CREATE TABLE {table} (n int)", "--rows", "100", "--budget", "1s", "-d", &guest];
        let ran = micro(&rig, &ddl);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains("GRANT CREATE ON DATABASE"), "{ran:#?}");
        server.execute("GRANT USAGE, CREATE ON SCHEMA lent TO guest");
        let ran = done(&rig, &[&ddl[..], &["--schema", "lent"]].concat());
        assert!(
            ran.stderr.contains("may not run CHECKPOINT") && !ran.stderr.contains("the role"),
            "{ran:#?}"
        );
        assert_eq!(
            server.number("SELECT count(*) FROM pg_class WHERE relnamespace = 'lent'::regnamespace"),
            0
        );
        let ran = micro(&rig, &["abs(i)", "--save-in-database", "-d", &guest]);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains("GRANT CREATE ON DATABASE postgres TO guest"), "{ran:#?}");
        // The message names the extension that its candidates need.
        let ran = done(&rig, &["--suite", "uuid", "--budget", "300ms", "-d", &guest, "--schema", "lent"]);
        assert!(ran.stderr.contains("run CREATE EXTENSION \"uuid-ossp\" first"), "{ran:#?}");
    }
}

#[test]
fn results_go_into_schema_benchmark() {
    for version in [NEWEST, OLDEST] {
        let rig = Rig::new();
        let server = rig.server(version);
        let arguments = ["abs(i)", "i + 1", "--save-in-database", "--rows", "1000", "--budget", "500ms"];
        let ran = done(&rig, &arguments);
        for made in
            ["schema benchmark", "table benchmark.outcome", "view benchmark.compare_outcome_threshold"]
        {
            assert!(ran.stderr.contains(made), "{made}: {ran:#?}");
        }
        // The article's own query, and its figures by hand.
        let rows = server.rows(
            "SELECT * FROM benchmark.compare_outcome UNION ALL SELECT * FROM benchmark.compare_outcome_threshold",
        );
        assert_eq!(rows.len(), 8, "four arms, all and cut");
        let differ = "SELECT count(*) FROM benchmark.compare_outcome c WHERE abs(avg_ns_per_row - \
                      (SELECT avg(seconds) / 1000 * 1e9 FROM benchmark.outcome o WHERE o.candidate = c.candidate)) > 1e-6";
        assert_eq!(server.number(differ), 0);
        let cut = "SELECT count(*) FROM benchmark.compare_outcome a JOIN benchmark.compare_outcome_threshold t \
                   USING (run_id, candidate) WHERE t.sample_count <> a.sample_count - 2 * ((a.sample_count + 8) / 10) \
                      OR t.max_ns_per_row > a.max_ns_per_row OR t.min_ns_per_row < a.min_ns_per_row";
        assert_eq!(server.number(cut), 0);

        let ran = done(&rig, &arguments);
        assert!(!ran.stderr.contains("made schema"), "{ran:#?}");
        assert_eq!(server.number("SELECT count(DISTINCT run_id) FROM benchmark.outcome"), 2);

        // Somebody else's is refused before anything is measured, and stays.
        server.execute("DROP SCHEMA benchmark CASCADE; CREATE SCHEMA benchmark; CREATE TABLE benchmark.outcome (mine int)");
        let ran = micro(&rig, &arguments);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains("rename it") && ran.stdout.is_empty(), "{ran:#?}");
        assert_eq!(server.number("SELECT count(mine) FROM benchmark.outcome"), 0);
    }
}

#[test]
fn ddl_that_creates_no_table_is_refused() {
    let rig = Rig::new();
    let server = rig.server("");
    for ddl in
        ["SELECT '{table}'", "CREATE VIEW {table} AS SELECT 1 AS n", "CREATE TABLE {table} (n int); COMMIT"]
    {
        let ran = micro(&rig, &["--ddl", ddl, "--rows", "9"]);
        assert_eq!(ran.code, Some(2), "{ddl}: {ran:#?}");
        assert!(ran.stderr.contains("its DDL "), "{ddl}: {ran:#?}");
        // DDL that ends pgrig's transaction leaves a table without the mark.
        server.execute("DROP SCHEMA IF EXISTS pgrig_micro CASCADE");
    }
    assert_nothing_left(&server);
}

#[test]
fn a_read_only_session_is_enough_for_expressions() {
    let rig = Rig::new();
    let server = rig.server("");
    let url = format!("{}&options=-c%20default_transaction_read_only%3Don", server.url);
    let run = |arguments: &[&str]| {
        let mut command = rig.command("");
        command.args(arguments).args(["-d", &url]);
        crate::support::Ran::from(command.output().unwrap())
    };
    let ran = run(&["micro", "md5(i::text)", "--rows", "9", "--budget", "200ms"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    for arguments in [
        &["micro", "--ddl", "CREATE TABLE {table} (n int)", "--statement", "INSERT INTO {table} VALUES (1)"]
            [..],
        &["fill", "1MB"],
    ] {
        let ran = run(arguments);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains("the options in the connection string or PGOPTIONS say so"), "{ran:#?}");
    }
}

#[test]
fn a_suite_is_read_from_a_file() {
    let rig = Rig::new();
    let _server = rig.server(OLDEST);
    let file = rig.home.path().join("mine.toml");
    let text = "title = 'mine'\n[[candidate]]\nname = 'sign'\nexpression = 'abs(i)'\n\
                [[candidate]]\nexpression = 'uuidv7()'\noptional = true\n";
    std::fs::write(&file, text).unwrap();
    let found = document(&rig, &["--suite", file.to_str().unwrap(), "--budget", "300ms"]);
    assert_eq!(found["plan"]["arms"][0]["name"], "sign");
    assert_eq!(found["plan"]["left_out"][0]["name"], "uuidv7()");
    let sql = rig.home.path().join("one.sql");
    std::fs::write(&sql, "SELECT count(*) FROM pg_class").unwrap();
    let ran = micro(&rig, &["--suite", sql.to_str().unwrap()]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("this is SQL, not a suite in TOML: to measure the statement"), "{ran:#?}");
    let ran = micro(&rig, &["--suite", "nonsuch"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("uuid-keys"), "{ran:#?}");
}
