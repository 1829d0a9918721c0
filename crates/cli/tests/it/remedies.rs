//! Remedies of errors, pasted: each statement that an error names is run, and the command then works.

use std::process::{Command, Stdio};

use crate::support::{Ran, Rig};

/// The statement that follows these words, up to a comma, ` or ` or the end of the line.
fn statement(said: &str, words: &str) -> String {
    let rest = said.split(words).nth(1).unwrap_or_else(|| panic!("no \"{words}\": {said}"));
    let end = [", or", ", give", " or ", ": ", "\n"].iter().filter_map(|end| rest.find(end)).min();
    rest[..end.unwrap_or(rest.len())].to_owned()
}

/// Runs a command of pgrig's that an error names.
fn paste(rig: &Rig, command: &str) -> Ran {
    let words = shlex::split(command).unwrap();
    assert_eq!(words[0], "pgrig", "{command}");
    let mut pasted = rig.command("");
    Ran::from(pasted.args(&words[1..]).stdin(Stdio::null()).output().unwrap())
}

#[test]
fn a_role_without_rights_gets_the_statement_that_grants_them() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE ROLE \"Odd One\" LOGIN; CREATE TABLE free (id int)");
    server.execute("CREATE SCHEMA closed; CREATE TABLE closed.t AS SELECT 1 AS id; ANALYZE closed.t");
    server.execute("CREATE DATABASE shut");
    server.execute("REVOKE CONNECT ON DATABASE shut FROM public");
    let url = server.url.replace("postgres@", "Odd%20One@");
    let shut = url.replace("/postgres?", "/shut?");
    let model = rig.home.path().join("m.toml");
    for (arguments, words) in [
        (format!("fill 1MB -d {url}"), "run GRANT"),
        (format!("fill 1MB --schema new -d {url}"), "run GRANT"),
        (format!("fill --table free --rows 5 -d {url}"), "run GRANT"),
        (format!("model capture -d {url} -o {}", model.display()), "run GRANT"),
        (format!("fill 1MB -d {shut} --explain --schema public"), "run GRANT"),
    ] {
        let refused = rig.run(&arguments);
        assert_ne!(refused.code, Some(0), "pgrig {arguments}: {refused:#?}");
        let verb = words.trim_start_matches("run ");
        server.execute(&format!("{verb}{}", statement(&refused.stderr, words)));
        let ran = rig.run(&arguments);
        let is_shut = arguments.contains(&shut);
        // To connect is not yet to create tables.
        assert!(ran.code == Some(0) || is_shut && ran.stderr.contains("may not create"), "{ran:#?}");
    }
}

/// No server listens on port 1.
#[test]
fn without_a_local_server_the_way_to_pgrigs_own_is_one_that_the_command_has() {
    let rig = Rig::new();
    let all = "or leave out all connection options and database names";
    for (arguments, told, has_all) in [
        ("tps -T 1 -p 1", "give --instance default instead of -h, -p and -U (-d then names", true),
        (
            "tps -T 1 -d port=1",
            "give --instance default instead of -h, -p, -U and a URI (-d then names",
            true,
        ),
        ("testdb list -p 1", "give --instance default instead of -h, -p and -U (-d then names", true),
        ("testdb unlog -p 1", "give --instance default instead of -h, -p and -U (-d then names", false),
        ("model check a b -p 1", "(ORIGINAL and COPY then name its databases)", false),
    ] {
        let ran = rig.run(arguments);
        assert_eq!(ran.code, Some(1), "pgrig {arguments}: {ran:#?}");
        assert!(ran.stderr.contains("no PostgreSQL socket .s.PGSQL.1 in "), "pgrig {arguments}: {ran:#?}");
        assert!(ran.stderr.contains(told), "pgrig {arguments}: {ran:#?}");
        assert_eq!(ran.stderr.contains(all), has_all, "pgrig {arguments}: {ran:#?}");
        assert!(!ran.stderr.contains("unset"), "no variable is set: {ran:#?}");
    }
    let ran = rig.command("tps -T 1").env("PGPORT", "1").env("PGDATABASE", "shop").output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(said.contains("database names, and unset PGPORT and PGDATABASE"), "{said}");
}

/// A --scratch without a host, whose port has no server.
#[test]
fn without_a_local_server_for_the_measurement_ddl_leaves_out_scratch() {
    let rig = Rig::new();
    let schema = rig.home.path().join("schema.sql");
    std::fs::write(&schema, "CREATE TABLE t (id int)").unwrap();
    let ddl = format!("ddl -c VACUUM --schema-file {} --scratch", schema.display());
    for (scratch, port) in [("foo", "1"), ("port=1", "5432")] {
        let ran = rig.command(&format!("{ddl} {scratch}")).env("PGPORT", port).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("--scratch {scratch}: no PostgreSQL server listens")), "{said}");
        assert!(said.contains("leave out --scratch") && !said.contains("--instance"), "{said}");
    }
}

#[test]
fn tables_of_pgbench_are_made_where_tps_looks_for_them() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE DATABASE shop");
    server.execute("CREATE DATABASE store");
    let shop = server.url.replace("/postgres?", "/shop?");
    for database in [format!("-d {shop}"), "--instance default -d store".to_owned()] {
        let tps = format!("tps -t 1 {database}");
        let refused = rig.run(&tps);
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        let command = refused.stderr.split("fill it first (").nth(1).unwrap().split(')').next().unwrap();
        let filled = paste(&rig, &command.replace("--scale 10", "--scale 1"));
        assert_eq!(filled.code, Some(0), "{filled:#?}");
        let again = rig.run(&tps);
        assert_eq!(again.code, Some(0), "{again:#?}");
    }
}

#[test]
fn a_new_instance_gets_its_tables_before_a_measurement() {
    let rig = Rig::new();
    let refused = rig.run("tps -t 1 --instance nope");
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(!rig.home.path().join("instances/nope").exists(), "{refused:#?}");
    let command = refused.stderr.split("; ").nth(1).unwrap().split(" creates").next().unwrap();
    let filled = paste(&rig, &command.replace("--scale 10", "--scale 1"));
    assert_eq!(filled.code, Some(0), "{filled:#?}");
    rig.done("tps -t 1 --instance nope");
}

#[test]
fn an_instance_that_is_stopped_is_started_by_the_command_that_the_error_names() {
    let rig = Rig::new();
    let server = rig.server("");
    rig.done("fill --scale 1 -q");
    rig.done("server stop");
    let tps = format!("tps -t 1 -d {}", server.url);
    let refused = rig.run(&tps);
    assert_eq!(refused.code, Some(1), "{refused:#?}");
    let command = refused.stderr.split("is stopped: run ").nth(1).unwrap().split(" (").next().unwrap();
    let started = paste(&rig, command);
    assert_eq!(started.code, Some(0), "{started:#?}");
    rig.done(&tps);
}

#[test]
fn tables_in_another_schema_are_searched_by_what_the_error_names() {
    if !testkit::require(testkit::Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let server = rig.server("");
    rig.done("fill --scale 1 --schema trial -q");
    let tps = format!("tps -t 1 -d {}", server.url);
    let refused = rig.run(&tps);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    let said = "in schema trial, which is not in the search path: write PGOPTIONS='-c search_path=trial' before the command";
    assert!(refused.stderr.contains(said), "{refused:#?}");
    let ran = rig.command(&tps).env("PGOPTIONS", "-c search_path=trial").output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let refused = rig.run("tps -t 1");
    let command = refused.stderr.split("in the search path: run ").nth(1).unwrap();
    let searched = paste(&rig, command.split(", or make").next().unwrap());
    assert_eq!(searched.code, Some(0), "{searched:#?}");
    rig.done("tps -t 1");
}

#[test]
fn a_model_of_a_database_with_a_closed_schema_names_the_schema() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE ROLE clerk LOGIN; CREATE SCHEMA closed; CREATE TABLE closed.t AS SELECT 1 AS id");
    let url = server.url.replace("postgres@", "clerk@");
    let ran = rig.run(&format!("ddl -c SELECT -d {url}"));
    assert!(ran.stderr.contains("run GRANT USAGE ON SCHEMA closed TO clerk"), "{ran:#?}");
    assert!(!ran.stderr.contains("--table"), "{ran:#?}");
    let capture = format!("model capture -o - -d {url}");
    let ran = rig.run(&capture);
    let said = "TO clerk, or connect as another role, or give --schema NAME for a schema that it may use";
    assert!(ran.stderr.contains(said), "{ran:#?}");
    // One statement is enough for all schemas.
    server.execute("CREATE SCHEMA shut; CREATE TABLE shut.t AS SELECT 1 AS id");
    let ran = rig.run(&capture);
    assert!(ran.stderr.contains("role clerk may not use the schemas closed, shut: run GRANT "), "{ran:#?}");
    server.execute(&statement(&ran.stderr, "closed, shut: run "));
    let ran = rig.run(&capture);
    assert!(ran.stderr.contains("no table has statistics"), "{ran:#?}");
}

/// The server runs only as long as each command, so createdb would not reach it.
#[test]
fn a_missing_database_of_pgrigs_own_server_is_created_by_the_command_that_the_error_names() {
    if !testkit::require(testkit::Need::Clients) {
        return;
    }
    let rig = Rig::new();
    for (arguments, other) in [
        ("fill 1MB --instance default -d Shop -q", "or give another database with -d"),
        ("model check nosuch postgres --instance default", "or give another ORIGINAL"),
        ("model check Shop copy --instance default", "or give another COPY"),
    ] {
        let refused = rig.run(arguments);
        assert_eq!(refused.code, Some(1), "pgrig {arguments}: {refused:#?}");
        assert!(refused.stderr.contains(other), "pgrig {arguments}: {refused:#?}");
        let created = paste(&rig, &format!("pgrig {}", statement(&refused.stderr, "run pgrig ")));
        assert_eq!(created.code, Some(0), "pgrig {arguments}: {created:#?}");
        let again = rig.run(arguments);
        assert!(!again.stderr.contains("does not exist"), "pgrig {arguments}: {again:#?}");
    }
}

#[test]
fn an_archive_of_pg_dump_becomes_sql_by_the_command_that_the_error_names() {
    if !testkit::require(testkit::Need::Clients) {
        return;
    }
    let rig = Rig::new();
    // A release that every pg_dump knows.
    let server = rig.server("--pg-version 13");
    server.execute("CREATE TABLE item (id int PRIMARY KEY, name text)");
    server.execute("CREATE DATABASE copy");
    let home = rig.home.path();
    for format in ["custom", "tar"] {
        let dump = home.join(format!("{format}.dump"));
        let mut dumping = Command::new("pg_dump");
        dumping.arg(format!("--format={format}")).arg("-f").arg(&dump).arg(&server.url);
        assert!(dumping.status().unwrap().success());
        let dump = dump.display();
        let refused = rig.run(&format!("fill --ddl {dump} --rows 5"));
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        for arguments in ["ddl -c SELECT --schema-file", "backup rehearse --size 1GB --schema-file"] {
            let also = rig.run(&format!("{arguments} {dump}"));
            assert!(also.stderr.contains("it is an archive of pg_dump: to write"), "{also:#?}");
        }
        for (arguments, said) in [
            ("report", ", not a run: pgrig runs list shows the runs"),
            ("runs import", ", not a run: pgrig runs list shows the runs"),
            ("fill --model", ", not a model: restore it, then run pgrig model capture"),
            ("ddl -c SELECT --model", ", not a model: restore it, then run pgrig model capture"),
            ("tps -f", "it is an archive of pg_dump"),
        ] {
            let other = rig.run(&format!("{arguments} {dump}"));
            assert_eq!(other.code, Some(2), "{other:#?}");
            assert!(other.stderr.contains(said), "{other:#?}");
            assert!(!other.stderr.contains("pg_restore"), "{other:#?}");
        }
        let command = statement(&refused.stderr, "as SQL, run ");
        let ran = Command::new("sh").args(["-c", &command]).current_dir(home).status().unwrap();
        assert!(ran.success(), "{command}");
    }
    let schema = home.join("schema.sql");
    rig.done(&format!("fill --ddl {} --rows 5 --instance default -d copy", schema.display()));
    assert_eq!(server.database("copy").number("SELECT count(*) FROM item"), 5);
}

#[test]
fn tables_with_rows_are_emptied_or_left_out_by_what_the_error_names() {
    if !testkit::require(testkit::Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let created = "CREATE TABLE a (id int); CREATE TABLE b (id int); INSERT INTO b VALUES (1)";
    for instance in ["default", "old"] {
        rig.done(&format!("server start --instance {instance}"));
        let psql = rig.command(&format!("server psql --instance {instance} -- -q -c")).arg(created).output();
        assert!(psql.unwrap().status.success(), "{instance}");
        let fill = format!("pgrig fill --all-tables --rows 5 --instance {instance}");
        let refused = paste(&rig, &fill);
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        let excluded = statement(&refused.stderr, "to fill only the other tables, give ");
        let filled = paste(&rig, &format!("{fill} {excluded}"));
        assert_eq!(filled.code, Some(0), "{filled:#?}");
        let refused = paste(&rig, &fill);
        assert!(!refused.stderr.contains("--exclude-table"), "no table is empty: {refused:#?}");
        let emptied = refused.stderr.split("or run ").nth(1).unwrap().split(" first").next().unwrap();
        assert_eq!(paste(&rig, emptied).code, Some(0), "{emptied}");
        let filled = paste(&rig, &fill);
        assert_eq!(filled.code, Some(0), "{filled:#?}");
    }
}

#[test]
fn tables_that_exist_are_created_elsewhere_by_the_options_that_the_error_names() {
    if !testkit::require(testkit::Need::Clients) {
        return;
    }
    let rig = Rig::new();
    let script = rig.home.path().join("shop.sql");
    std::fs::write(&script, "CREATE TABLE shop (id int PRIMARY KEY)").unwrap();
    let fill = format!("pgrig fill --ddl {} --rows 5", script.display());
    for instance in ["default", "old"] {
        let fill = format!("{fill} --instance {instance}");
        assert_eq!(paste(&rig, &fill).code, Some(0));
        let refused = paste(&rig, &fill);
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        let instead = "To fill tables that exist, give --all-tables or --table NAME instead of --ddl";
        assert!(refused.stderr.contains(instead), "{refused:#?}");
        let filled = paste(&rig, &format!("pgrig fill --table shop --append --rows 5 --instance {instance}"));
        assert_eq!(filled.code, Some(0), "{filled:#?}");
        let way = refused.stderr.split("another database: run ").nth(1).unwrap();
        let way = way.split(". To fill").next().unwrap();
        let (created, options) = way.split_once(", and give ").unwrap();
        let created = paste(&rig, created);
        assert_eq!(created.code, Some(0), "{created:#?}");
        let filled = paste(&rig, &format!("{fill} {options}"));
        assert_eq!(filled.code, Some(0), "{filled:#?}");
        let filled = paste(&rig, &format!("{fill} --schema other"));
        assert_eq!(filled.code, Some(0), "{filled:#?}");
    }
}

#[test]
fn a_database_that_is_misspelt_or_quoted_is_named_as_it_has_to_be_given() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE DATABASE shop");
    server.execute("CREATE DATABASE \"UPPER\"");
    for (name, said) in [
        ("shp", "did you mean shop? Otherwise, run pgrig server psql "),
        ("upper", "did you mean UPPER? Otherwise, run pgrig server psql "),
        ("\"UPPER\"", "; give the name without the quotes of SQL: UPPER"),
    ] {
        for arguments in ["fill 1MB --instance default -d", "server psql"] {
            let ran = Ran::from(rig.command(arguments).arg(name).output().unwrap());
            assert_eq!(ran.code, Some(1), "pgrig {arguments} {name}: {ran:#?}");
            assert!(ran.stderr.contains(said), "pgrig {arguments} {name}: {ran:#?}");
        }
        let url = server.url.replace("/postgres?", &format!("/{}?", name.replace('"', "%22")));
        let ran = rig.run(&format!("fill 1MB -d {url}"));
        let said = said.trim_end_matches("run pgrig server psql ");
        assert!(ran.stderr.contains(said), "{name}: {ran:#?}");
    }
}

/// As an unset variable, it would lead to pgrig's own server.
#[test]
fn a_variable_that_is_not_utf_8_is_refused() {
    use std::os::unix::ffi::OsStringExt;
    let rig = Rig::new();
    for name in ["PGHOST", "PGDATABASE", "PGUSER"] {
        let odd = std::ffi::OsString::from_vec(vec![0xff]);
        let ran = Ran::from(rig.command("fill 1MB").env(name, odd).output().unwrap());
        assert_eq!(ran.code, Some(2), "{name}: {ran:#?}");
        assert!(ran.stderr.contains(&format!("{name} is not UTF-8: set it in UTF-8")), "{name}: {ran:#?}");
    }
    assert!(!rig.home.path().join("instances").exists());
}

#[test]
fn psql_of_an_instance_or_an_address_is_refused_with_the_option() {
    let rig = Rig::new();
    rig.done("server start --instance old");
    rig.done("server stop --instance old");
    let ran = rig.run("server psql old");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("to name an instance, give --instance old"), "{ran:#?}");
    let ran = rig.run("server psql postgresql://u:secret@db/shop");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("takes no connection string"), "{ran:#?}");
    assert!(!ran.stderr.contains("secret"), "{ran:#?}");
}

#[test]
fn words_that_are_no_commands_get_the_one_that_is_meant() {
    let rig = Rig::new();
    for (word, said) in [
        ("FILL", "there is no command FILL: did you mean pgrig fill?"),
        ("capture", "use pgrig model capture -d DBNAME -o FILE"),
        ("uninstall", "delete the program, and the directory that pgrig doctor shows as home"),
        ("import", "pgrig testdb new --from FILE loads a dump"),
        ("show", "use pgrig runs show RUN, or pgrig model show FILE"),
    ] {
        let ran = rig.run(word);
        assert!(ran.code == Some(2) && ran.stderr.contains(said), "{word}: {ran:#?}");
    }
    let ran = Ran::from(rig.command("").arg("").output().unwrap());
    assert!(ran.stderr.contains("pgrig has no command '': give one of fill, "), "{ran:#?}");
}

#[test]
fn the_value_of_a_setting_after_a_space_gets_an_equals_sign() {
    let rig = Rig::new();
    for command in ["server start --set work_mem 64MB", "fill 1GB --set work_mem 64MB"] {
        let ran = rig.run(command);
        assert_eq!(ran.code, Some(2), "{command}: {ran:#?}");
        assert!(
            ran.stderr.contains("unexpected argument 64MB: write --set work_mem=64MB"),
            "{command}: {ran:#?}"
        );
    }
    let ran = rig.run("tps --matrix work_mem=4MB 64MB -d shop");
    let said = "unexpected argument 64MB: to add a level, give --matrix work_mem=4MB,64MB";
    assert!(ran.code == Some(2) && ran.stderr.contains(said), "{ran:#?}");
    let ran = rig.run("server start --set work_mem=64MB old");
    assert!(ran.stderr.contains("to name an instance, give --instance old"), "{ran:#?}");
}

#[test]
fn a_part_by_variables_names_them() {
    let rig = Rig::new();
    let mut command = rig.command("tps -S -t 1");
    let ran = command
        .env("SLURM_ARRAY_TASK_ID", "1")
        .env("SLURM_ARRAY_TASK_COUNT", "4")
        .env("SLURM_ARRAY_TASK_MIN", "1");
    let ran = Ran::from(ran.output().unwrap());
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("make this run part 1 of 4"), "{ran:#?}");
    assert!(ran.stderr.contains("give -n; for a run of its own, unset SLURM_ARRAY_TASK_ID"), "{ran:#?}");
}

#[test]
fn the_template_of_new_databases_is_not_filled() {
    let rig = Rig::new();
    let ran = rig.run("fill 1MB --instance default -d template1");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("template1 is the template of every new database"), "{ran:#?}");
}

#[test]
fn a_misspelt_placeholder_of_micro_is_named() {
    let rig = Rig::new();
    let ran = Ran::from(rig.command("micro").args(["--statement", "SELECT {row}"]).output().unwrap());
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("the placeholder of the number of rows is {rows}"), "{ran:#?}");
}

#[test]
fn values_that_the_encoding_lacks_are_named() {
    let rig = Rig::new();
    let server = rig.server("");
    server.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    server.database("latin").execute("CREATE TABLE city (name text)");
    let mut command = rig.command("fill --table city --rows 5 --instance default -d latin --column");
    let ran = Ran::from(command.arg("name=list(日本)").output().unwrap());
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("Give values that the encoding of the database has, or fill"), "{ran:#?}");
}
