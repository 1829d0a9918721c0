//! The statements that a script sends, compared with those that pgbench logs.

use crate::support::{File, pgbench_on_server};
use script::{Action, Client, Scripts, Source, Start};

/// Statements that end where psql's lexer ends them; a server accepts them all.
const STATEMENTS: &str = r#"-- first
  SELECT 1;
SELECT 'a;b', 'it''s;', '\'; SELECT E'a\';b\\', e'''', N'c;', B'01', X'1F', U&'d\0061;t';
SELECT E'one'
  -- in between;
  'two\';three';
SELECT $$;$$, $x$ ; $y$ ; $ $1 $x$; SELECT 1 AS a$b$c; SELECT 1 AS "q;""r";
/* comment; */ SELECT /* /* nested; */ ; */ 1 + /*x*/ 1 --comment;
  ; SELECT 1 -- last;
;
SELECT 1 \; SELECT 2 \; ;
SELECT (SELECT count(*) FROM generate_series(1, 3)), 5 - -5, 3 * /**/ 1, @ -5, 1 < -1;
CREATE OR REPLACE FUNCTION f(x int DEFAULT (1)) RETURNS int BEGIN ATOMIC
  SELECT 1; SELECT CASE WHEN true THEN 2 END; END; SELECT f();
CREATE OR REPLACE PROCEDURE p() LANGUAGE sql AS 'SELECT 1;'; CALL p(); BEGIN; END; SELECT 1.5e3, 0x1F::text || 'b', 1_0
;
\set x 5
SELECT :x, :x::int + :y , 'a::b', '12:30:00', (ARRAY[1,2,3])[1:2], 'd\:ata';
SELECT :x - 1 \set x :x + 1
SELECT :x;;
/* before a meta command */
\set x null
SELECT :x \; SELECT :x;
\set x 1.5
SELECT :x;
\set x :x = 1.5
SELECT :x
"#;

/// Where variables stand is no matter: also in quotes and comments, if they are defined.
const QUOTED: &str =
    "\\set x 5\nSELECT ':x', ':nothing', 'a:y:x', $$:x$$, \":x\" /* :x */ FROM (SELECT 1) t(\":x\");\n";

/// The statements that pgbench sends.
fn theirs(script: &str, mode: &str) -> Option<Vec<String>> {
    let file = File::of(script);
    let options = ["--debug", "-t", "1", "-M", mode, "-D", "y=7", "-f", &file.path()];
    let ran = pgbench_on_server(&options)?;
    assert!(ran.succeeded, "{}", ran.said);
    let said = ran.said.split("pgbench: client 0 ").filter_map(|said| said.strip_prefix("sending "));
    // Behind a statement come its line's end and what pgbench says in the end.
    Some(said.map(|said| said.split("\npgbench: ").next().unwrap().trim_end().to_owned()).collect())
}

fn ours(script: &str, statement: fn(&script::Sql, &Client) -> String) -> Vec<String> {
    let scripts =
        Scripts::parse(&[Source::file("x.sql", script, 1)]).unwrap_or_else(|error| panic!("{error}"));
    let definitions = [script::Definition::parse("y=7").unwrap()];
    let start = Start { definitions: &definitions, ..Start::default() };
    let mut client = scripts.start(&start).clients.remove(0);
    let mut sent = Vec::new();
    let mut at = 0;
    while let Some(command) = scripts[0].proceed(at, &mut client).unwrap() {
        let Action::Sql(sql) = scripts[0].commands()[command].action() else { panic!("only SQL") };
        sent.push(statement(sql, &client).trim_end().to_owned());
        at = command + 1;
    }
    sent
}

fn simple(sql: &script::Sql, client: &Client) -> String {
    let mut text = Vec::new();
    sql.write(&client.variables, &mut text);
    String::from_utf8(text).unwrap()
}

#[test]
fn with_values() {
    for script in [STATEMENTS, QUOTED] {
        let Some(theirs) = theirs(script, "simple") else { return };
        let ours = ours(script, simple);
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours, theirs);
        }
        assert_eq!(ours.len(), theirs.len());
    }
}

/// The extended protocol takes no two statements at once, no empty one, and cannot tell what type a bare
/// parameter is.
#[test]
fn with_parameters() {
    let script = "\\set x 5\nSELECT :x::int + :y::int, :x::text, 'a::b' -- more\n;\n\
                  SELECT 1::int WHERE :nothing::int IS NULL;\n\\set x 6\nSELECT :y::int LIMIT :x\n";
    let ours = ours(script, |sql, _| sql.parameterised().to_owned());
    assert_eq!(ours[0], "SELECT $1::int + $2::int, $3::text, 'a::b' -- more\n;");
    let Some(theirs) = theirs(script, "extended") else { return };
    assert_eq!(ours, theirs);
}

#[test]
fn builtin_scripts_are_pgbenchs() {
    for (name, _) in Source::builtins() {
        let Some(ran) = crate::support::pgbench(&[&format!("--show-script={name}")]) else { return };
        let source = Source::builtin(name).unwrap();
        assert_eq!(ran.said, format!("-- {name}: {}\n{}\n", source.name(), source.text()));
        assert!(Scripts::parse(&[source]).is_ok());
    }
}

#[test]
fn results_are_received() {
    let text = "SELECT 1 AS a \\; SELECT 2 AS b \\aset\nSELECT 3; \\gset p_\nSELECT 4;\n\\set c :b + :p_a\n";
    let scripts = Scripts::parse(&[Source::file("x.sql", text, 1)]).unwrap();
    let receives: Vec<_> = scripts[0]
        .commands()
        .iter()
        .filter_map(|command| match command.action() {
            Action::Sql(sql) => Some(sql.receive().map(|receive| (receive.prefix.as_str(), receive.every))),
            _ => None,
        })
        .collect();
    assert_eq!(receives, [Some(("", true)), Some(("p_", false)), None]);

    let mut client = scripts.start(&Start::default()).clients.remove(0);
    for (prefix, column, value) in [("", "b", "2"), ("p_", "a", "3")] {
        let slot = client.variables.names().receiving(prefix, column).unwrap().unwrap();
        client.variables.set_text(slot, value);
    }
    assert_eq!(scripts[0].proceed(3, &mut client), Ok(None));
    let slot = scripts.names().slot("c").unwrap();
    assert_eq!(client.variables.value(slot), Ok(script::Value::Integer(5)));
}

#[test]
fn commands_know_where_they_are() {
    let text = "-- first\n\nSELECT 1,\n  2;\n\\if 1\n\\elif \\\n 0\n\\endif\n";
    let scripts = Scripts::parse(&[Source::file("x.sql", text, 1)]).unwrap();
    let commands = scripts[0].commands().iter();
    let places: Vec<_> = commands.map(|c| (c.number(), c.line(), c.text())).collect();
    let elif = "\\elif \\\n 0";
    assert_eq!(
        places,
        [(1, 3, "SELECT 1,\n  2;"), (2, 5, "\\if 1"), (3, 6, elif), (3, 6, elif), (4, 8, "\\endif")]
    );
}

#[test]
fn sleeps_and_shells() {
    let text = "\\sleep 5\n\\sleep 20ms\n\\sleep -1 us\n\\sleep :n us\n\\sleep :s\n\\shell echo :n ::n\n\\setshell n echo\n";
    let text = format!("{text}\\shell :nothing\n\\sleep :nothing\n\\sleep :blue\n");
    let scripts = Scripts::parse(&[Source::file("x.sql", text, 1)]).unwrap();
    let definitions =
        ["n=7 or so", "s= 2", "blue=blue"].map(|option| script::Definition::parse(option).unwrap());
    let start = Start { definitions: &definitions, ..Start::default() };
    let client = scripts.start(&start).clients.remove(0);
    let said: Vec<String> = scripts[0]
        .commands()
        .iter()
        .map(|command| match command.action() {
            Action::Sleep(sleep) => match sleep.duration(&client.variables) {
                Ok(duration) => format!("{duration:?}"),
                Err(error) => error.to_string(),
            },
            Action::Shell(shell) | Action::SetShell { shell, .. } => match shell.command(&client.variables) {
                Ok(command) => command,
                Err(error) => error.to_string(),
            },
            _ => panic!("only these"),
        })
        .collect();
    assert_eq!(
        said,
        [
            "5s",
            "20ms",
            "0ns",
            "7µs",
            "2s",
            "echo 7 or so :n",
            "echo",
            "undefined variable \"nothing\"",
            "sleep: undefined variable \"nothing\"",
            "sleep: invalid sleep time \"blue\" for variable \"blue\"",
        ]
    );
}
