//! The migration as statements, cut where psql cuts them.

use dump::{DumpError, Piece, Reader};
use serde::Serialize;
use sql::Kind;

use crate::directions::Directions;
use crate::encoding;
use crate::exchanged::Exchanged;
use crate::idle;
use crate::outside::{Outside, two_phase};
use crate::script_error::ScriptError;
pub(crate) use crate::statement::tokens;
pub use crate::statement::{Statement, StatementKind};
use crate::statement::{kind, place};
use crate::strings::Strings;

/// A migration, cut into its statements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Script {
    /// Its statements, at least one.
    pub statements: Vec<Statement>,
    /// A sentence each about work that the text does not have, and about statements that are skipped.
    #[serde(skip)]
    pub warnings: Vec<String>,
    /// A sentence each about the way in which pgrig reads the text.
    #[serde(skip)]
    pub notes: Vec<String>,
    /// The advice to run it in one transaction.
    #[serde(skip)]
    advice: Option<String>,
}

/// Django's comment in the place of an operation that has no SQL (django/db/migrations/migration.py).
const UNWRITTEN: &str = "CANNOT BE WRITTEN AS SQL";

impl Script {
    /// Reads a migration, without the part that takes it back. `file` is the name of its file, if it is from one.
    ///
    /// # Errors
    /// If the text ends within something, has a command of psql's or data for COPY, or only a part that takes a migration back.
    pub fn read(text: &str, file: Option<&str>) -> Result<Self, ScriptError> {
        let directions = Directions::of(text);
        let mut script = Self::read_whole(&directions.up, file)?;
        directions.check(&script.statements)?;
        script.notes.extend(directions.left_out(|line| place(file, line)));
        script.advice = directions.advice(file, &script.statements);
        Ok(script)
    }

    /// Reads SQL, all of it. `file` is the name of its file, if it is from one.
    ///
    /// # Errors
    /// If the text ends within something, or has a command of psql's or data for COPY.
    pub(crate) fn read_whole(text: &str, file: Option<&str>) -> Result<Self, ScriptError> {
        let mut reader = Reader::new(text.as_bytes());
        let (mut script, mut strings) = (Self::default(), Strings::default());
        loop {
            let piece = match reader.next() {
                Ok(Some(piece)) => Owned::of(piece),
                Ok(None) => return Ok(script),
                Err(error) => return Err(refusal(&error, reader.line(), text)),
            };
            let line = reader.line();
            match piece {
                Owned::Nothing => {}
                Owned::Between(text) => {
                    let lines = unwritten(&text, line).into_iter();
                    script.warnings.extend(lines.map(|line| of_unwritten(&place(file, line))));
                }
                Owned::Statement(sql) => {
                    let sql = strings.standard(sql);
                    if let Some(kind) = kind(&sql) {
                        let one = Statement { sql, file: file.map(str::to_owned), line, kind };
                        if encoding::is_another(&one.sql) {
                            script.warnings.push(encoding::warning(&one));
                        } else {
                            script.statements.push(one);
                        }
                    }
                }
                Owned::Command(command) => return Err(ScriptError::Command { command, line }),
                Owned::Data => return Err(ScriptError::Data { line }),
            }
        }
    }

    /// The migration in one transaction, as psql's --single-transaction runs it.
    ///
    /// # Errors
    /// If it has transactions of its own.
    pub fn in_one_transaction(mut self) -> Result<Self, ScriptError> {
        let is_edge = |one: &&Statement| one.kind == StatementKind::Transaction;
        if let Some(edge) = self.statements.iter().find(is_edge) {
            return Err(ScriptError::Transaction { command: edge.in_one_line(), line: edge.line });
        }
        let (Some(first), Some(last)) = (self.statements.first(), self.statements.last()) else {
            return Ok(self);
        };
        let edge = |sql: &str, of: &Statement| Statement {
            sql: sql.to_owned(),
            kind: StatementKind::Transaction,
            ..of.clone()
        };
        let (begin, commit) = (edge("BEGIN;", first), edge("COMMIT;", last));
        self.advice = None;
        self.statements.insert(0, begin);
        self.statements.push(commit);
        Ok(self)
    }

    /// One migration of several, in order.
    ///
    /// # Errors
    /// If there is no statement, or one with effects outside of the databases in which pgrig runs the migration, or beyond its sessions, or one
    /// that exchanges rows with its client.
    pub fn of(scripts: impl IntoIterator<Item = Self>) -> Result<Self, ScriptError> {
        let mut all = Self::default();
        for script in scripts {
            all.statements.extend(script.statements);
            all.warnings.extend(script.warnings);
            all.notes.extend(script.notes.into_iter().chain(script.advice));
        }
        all.leave_out_limits();
        for one in &all.statements {
            if let Some(command) = two_phase(&one.sql) {
                return Err(ScriptError::TwoPhase { place: one.place(), command });
            }
            if let Some(outside) = Outside::of_migration(&one.sql) {
                return Err(outside.refusal(one.place()));
            }
            match Exchanged::of(&one.sql) {
                Some(Exchanged::Sent) => return Err(ScriptError::Sent { place: one.place() }),
                Some(Exchanged::Awaited) => return Err(ScriptError::Data { line: one.line }),
                None => {}
            }
        }
        if all.statements.is_empty() { Err(ScriptError::Empty) } else { Ok(all) }
    }

    /// Leaves out the statements that let the server end a session which pauses, each with a warning.
    fn leave_out_limits(&mut self) {
        let warnings = &mut self.warnings;
        self.statements.retain(|one| {
            let limited = idle::limited(one);
            warnings.extend(limited.map(|setting| idle::warning(&one.place(), setting)));
            limited.is_none()
        });
    }
}

/// SQL without the statements that are skipped, by their texts and the lines on which they begin. Lines keep their numbers. None if the SQL
/// cannot be cut.
pub(crate) fn without(sql: &str, mut is_skipped: impl FnMut(&str, u64) -> bool) -> Option<String> {
    let mut reader = Reader::new(sql.as_bytes());
    let mut kept = String::with_capacity(sql.len());
    loop {
        let Some(piece) = reader.next().ok()? else { return Some(kept) };
        let is_statement = matches!(piece, Piece::Statement(_));
        let text = String::from_utf8_lossy(piece.bytes()).into_owned();
        if is_statement && is_skipped(&text, reader.line()) {
            kept.extend(std::iter::repeat_n('\n', text.matches('\n').count()));
        } else {
            kept.push_str(&text);
        }
    }
}

/// A piece, apart from the reader's buffer.
enum Owned {
    Nothing,
    /// Blanks and comments.
    Between(String),
    Statement(String),
    Command(String),
    Data,
}

impl Owned {
    fn of(piece: Piece<'_>) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        match piece {
            Piece::Between(bytes) => Self::Between(String::from_utf8_lossy(bytes).into_owned()),
            Piece::Statement(bytes) => Self::Statement(text(bytes)),
            Piece::CopyData(_) | Piece::CopyEnd(_) => Self::Data,
            Piece::Meta(bytes) => {
                let command = text(bytes);
                let word = command.split_whitespace().next().unwrap_or_default();
                // pg_dump's, which mean nothing to the server.
                if word == "\\restrict" || word == "\\unrestrict" {
                    Self::Nothing
                } else {
                    Self::Command(word.to_owned())
                }
            }
        }
    }
}

fn refusal(error: &DumpError, line: u64, text: &str) -> ScriptError {
    match error {
        DumpError::EndsWithin { within: dump::Within::CopyData, line } | DumpError::AfterCopy { line } => {
            ScriptError::Data { line: *line }
        }
        DumpError::EndsWithin { within, line } => {
            ScriptError::EndsWithin { within: within.to_string(), line: *line }
        }
        DumpError::MetaWithinStatement { line } => {
            ScriptError::Command { command: command_on(text, *line), line: *line }
        }
        DumpError::DataOfCommand { line } => {
            ScriptError::Command { command: "\\copy".to_owned(), line: *line }
        }
        other => ScriptError::EndsWithin { within: other.to_string(), line },
    }
}

/// psql's command within a statement on this line.
fn command_on(text: &str, line: u64) -> String {
    let (mut at, mut current) = (0, 1);
    for (kind, token) in tokens(text) {
        if kind == Kind::Backslash && current == line {
            let rest = &text[at + 1..];
            let end = rest.find(|c: char| c.is_whitespace() || c == '\\').unwrap_or(rest.len());
            return format!("\\{}", &rest[..end]);
        }
        at += token.len();
        current += token.matches('\n').count() as u64;
    }
    "\\".to_owned()
}

/// The lines of Django's comments in the place of operations, in a text that begins on line `first`.
fn unwritten(between: &str, first: u64) -> Vec<u64> {
    let mut line = first;
    let mut lines = Vec::new();
    for (kind, token) in tokens(between) {
        if kind == Kind::Comment && token.contains(UNWRITTEN) {
            lines.push(line);
        }
        line += token.matches('\n').count() as u64;
    }
    lines
}

/// The warning about such a comment.
fn of_unwritten(place: &str) -> String {
    format!(
        "{place}: Django has no SQL for this operation (for example RunPython), so pgrig does not measure it: write its SQL there"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_with_effects_outside_of_the_database_are_refused_with_the_remedy() {
        let of = |text: &str| Script::of([Script::read(text, None).unwrap()]);
        let role = "create the role on the server that measures (CREATE ROLE NAME)";
        for (text, says, has_role) in [
            ("CREATE ROLE app", "line 1: CREATE ROLE concerns the whole server", true),
            ("SELECT 1;\nALTER/* */USER app LOGIN", "line 2: ALTER USER concerns the whole server", true),
            ("GRANT CONNECT ON DATABASE shop TO app", "line 1: GRANT ON DATABASE concerns the whole", false),
            ("DROP OWNED BY app", "line 1: DROP OWNED concerns the whole server", false),
            (
                "CREATE USER MAPPING FOR app SERVER other",
                "line 1: CREATE USER MAPPING lets foreign tables connect",
                false,
            ),
            ("COPY t TO '/tmp/t'", "line 1: COPY … TO a file acts on files or programs", false),
            ("SELECT pg_switch_wal()", "line 1: pg_switch_wal() concerns the whole server", false),
        ] {
            let error = of(text).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("remove this statement"), "{error}");
            assert_eq!(error.contains(role), has_role, "{error}");
        }
        assert!(of("GRANT SELECT ON t TO app").is_ok());
    }

    #[test]
    fn copies_to_the_client_are_refused_with_the_remedy() {
        let of = |text: &str| Script::of([Script::read(text, Some("1.sql")).unwrap()]);
        for statement in
            ["COPY (SELECT id FROM orders) TO STDOUT", "copy orders (id) to stdout (FORMAT csv);"]
        {
            let error = of(&format!("SELECT 1;\n{statement}")).unwrap_err().to_string();
            assert!(error.starts_with("1.sql, line 2: COPY … TO STDOUT writes to the client"), "{error}");
            assert!(error.ends_with("remove this statement"), "{error}");
        }
        let awaited = of("SELECT 1;\nCOPY orders FROM stdout").unwrap_err();
        assert!(matches!(awaited, ScriptError::Data { line: 2 }), "{awaited}");
        assert!(of("COPY orders FROM '/tmp/orders.csv'").is_ok());
    }

    #[test]
    fn prepared_transactions_are_refused_with_the_remedy() {
        let of = |text: &str| Script::of([Script::read(text, Some("1.sql")).unwrap()]);
        for (statement, command) in [
            ("prepare /* */ transaction 'x'", "PREPARE TRANSACTION"),
            ("COMMIT PREPARED 'x'", "COMMIT PREPARED"),
            ("Rollback Prepared 'x';", "ROLLBACK PREPARED"),
        ] {
            let error = of(&format!("SELECT 1;\n{statement}")).unwrap_err().to_string();
            let begins = format!("1.sql, line 2: {command} is for transactions that outlive their session");
            assert!(error.starts_with(&begins) && error.contains("write COMMIT"), "{error}");
        }
        assert!(of("BEGIN; PREPARE x AS SELECT 1; COMMIT; COMMIT; ROLLBACK TO prepared").is_ok());
    }

    fn read(text: &str) -> Result<Vec<(String, u64, StatementKind)>, String> {
        let script = Script::read(text, None).map_err(|error| error.to_string())?;
        Ok(script.statements.into_iter().map(|one| (one.sql, one.line, one.kind)).collect())
    }

    #[test]
    fn semicolons_in_quotes_and_bodies_end_nothing() {
        for statement in [
            "ALTER TABLE t ADD c text DEFAULT ';';",
            "DO $$ BEGIN PERFORM 1; END $$;",
            "COMMENT ON TABLE \"a;b\" IS E'\\';';",
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END;",
            "CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2);",
            "/* ; */ SELECT 1 -- ;\n;",
        ] {
            let two = read(&format!("{statement}\nSELECT 2")).unwrap();
            assert_eq!(two.len(), 2, "{two:?}");
            assert_eq!(
                two[1],
                (
                    "SELECT 2".to_owned(),
                    1 + statement.matches('\n').count() as u64 + 1,
                    StatementKind::Measured
                )
            );
        }
    }

    #[test]
    fn first_words_decide_on_the_kind() {
        for (sql, wanted) in [
            ("begin", StatementKind::Transaction),
            ("/* x */ START TRANSACTION", StatementKind::Transaction),
            ("END", StatementKind::Transaction),
            ("PREPARE TRANSACTION 'x'", StatementKind::Transaction),
            ("PREPARE x AS SELECT 1", StatementKind::Session),
            ("SET lock_timeout = '2s'", StatementKind::Session),
            ("LOCK TABLE t", StatementKind::MeasuredAlone),
            ("SET CONSTRAINTS ALL IMMEDIATE", StatementKind::Measured),
            ("DECLARE c CURSOR FOR SELECT 1", StatementKind::MeasuredAlone),
            ("DECLARE c NO SCROLL CURSOR WITH HOLD FOR SELECT 1", StatementKind::Measured),
            ("ALTER TABLE t RENAME TO begin", StatementKind::Measured),
        ] {
            assert_eq!(read(sql).unwrap()[0].2, wanted, "{sql}");
        }
        assert_eq!(read(";;; -- nothing\n;").unwrap(), []);
    }

    #[test]
    fn what_the_server_cannot_read_is_refused_by_name_and_line() {
        for (text, says) in [
            ("SELECT 1;\n\\set x 1\n", "line 2: \\set"),
            ("SELECT 1;\n\\i other.sql\n", "line 2: \\i"),
            ("SELECT 1 \\gexec\n", "line 1: \\gexec is a command of psql"),
            ("SELECT 1;\nSELECT '\\d',\n  2 \\gset x_\n", "line 3: \\gset is a command of psql"),
            ("SELECT 1 \\g", "line 1: \\g is a command of psql"),
            ("SELECT 1 \\; SELECT 2;", "line 1: \\; is a command of psql"),
            ("COPY t FROM stdin;\n1\n\\.\n", "COPY"),
            ("SELECT 'a", "a string"),
            ("DO $$ BEGIN", "dollar"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(says), "{text:?}: {error}");
        }
        assert!(read("\\restrict x\nSELECT 1;\n\\unrestrict x\n").is_ok());
    }

    #[test]
    fn operations_of_django_that_have_no_sql_are_named_with_their_lines() {
        // Since 4.1, and before.
        let text = "BEGIN;\n--\n-- Raw Python operation\n--\n-- THIS OPERATION CANNOT BE WRITTEN AS SQL\nCOMMIT;\n\n--\n\
                    -- MIGRATION NOW PERFORMS OPERATION THAT CANNOT BE WRITTEN AS SQL:\n-- Raw Python operation\n";
        let of = |file: Option<&str>| Script::of([Script::read(text, file).unwrap()]).unwrap().warnings;
        let warnings = of(Some("0002.sql"));
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].starts_with("0002.sql, line 5: Django has no SQL"), "{warnings:?}");
        assert!(of(None)[1].starts_with("line 9: Django has no SQL"), "{warnings:?}");
        // A text of the migration's own.
        let own = Script::read("SELECT '-- CANNOT BE WRITTEN AS SQL'; SELECT 1 /* CANNOT */", None).unwrap();
        assert_eq!(own.warnings, [""; 0]);
    }

    #[test]
    fn variables_of_psql_are_found_outside_of_quotes_and_brackets() {
        for (sql, variable) in [
            ("ALTER TABLE :name ADD a int", Some(":name")),
            ("UPDATE t SET n = :'value', m = :other", Some(":'value'")),
            ("ALTER TABLE public.:\"T\" ADD a int", Some(":\"T\"")),
            ("SELECT a::int, b::\"T\", '1'::text", None),
            ("SELECT f(a := 1)", None),
            ("SELECT a[1:n], a[:n], a[f(1):m]", None),
            ("SELECT ':x', \":x\", $$ :x $$ -- :x", None),
            ("SELECT a[1:n], :x", Some(":x")),
        ] {
            let script = Script::read(sql, None).unwrap();
            assert_eq!(script.statements[0].variable().as_deref(), variable, "{sql}");
        }
    }

    #[test]
    fn the_target_of_alter_table_is_found() {
        for (sql, target) in [
            ("alter table t add c int", Some("t")),
            ("ALTER TABLE IF EXISTS ONLY s.\"T x\" ADD c int", Some("s.\"T x\"")),
            ("ALTER TABLE /* the */ a . b RENAME TO c", Some("a.b")),
            ("ALTER INDEX i RENAME TO j", None),
            ("SELECT 1", None),
        ] {
            let script = Script::read(sql, None).unwrap();
            assert_eq!(script.statements[0].target().as_deref(), target, "{sql}");
        }
    }

    #[test]
    fn one_transaction_is_around_all() {
        let of = |text: &str| Script::read(text, None).unwrap().in_one_transaction();
        let texts: Vec<String> =
            of("SELECT 1; SELECT 2").unwrap().statements.into_iter().map(|one| one.sql).collect();
        assert_eq!(texts, ["BEGIN;", "SELECT 1;", "SELECT 2", "COMMIT;"]);
        assert!(of("SELECT 1;\nCOMMIT").unwrap_err().to_string().starts_with("line 2: COMMIT"));
        assert_eq!(of("").unwrap().statements, []);
    }

    #[test]
    fn a_rollback_to_a_savepoint_ends_no_transaction() {
        for (sql, ends) in [
            ("COMMIT;", true),
            ("end work", true),
            ("ROLLBACK TO SAVEPOINT a", false),
            ("ROLLBACK", true),
            ("SAVEPOINT a", false),
            ("BEGIN", false),
            ("PREPARE q AS SELECT 1", false),
        ] {
            assert_eq!(Script::read(sql, None).unwrap().statements[0].ends_transaction(), ends, "{sql}");
        }
    }

    #[test]
    fn vacuum_skips_locked_tables_where_it_says_so() {
        for (sql, skips) in [
            ("VACUUM (SKIP_LOCKED) t", true),
            ("vacuum(verbose, skip_locked on)", true),
            ("ANALYZE (SKIP_LOCKED TRUE) t", true),
            ("VACUUM (SKIP_LOCKED off) t", false),
            ("VACUUM t", false),
            ("SELECT 1 AS skip_locked", false),
        ] {
            assert_eq!(Script::read(sql, None).unwrap().statements[0].skips_locked(), skips, "{sql}");
        }
    }

    #[test]
    fn options_that_are_off_do_not_count() {
        for (sql, is_full, runs_code) in [
            ("VACUUM FULL t", true, false),
            ("VACUUM (FULL false, VERBOSE) t", false, false),
            ("EXPLAIN UPDATE t SET a = 1", false, false),
            ("EXPLAIN (ANALYZE, VERBOSE) UPDATE t SET a = 1", false, true),
            ("EXPLAIN (ANALYZE off) DELETE FROM t", false, false),
            ("SET CONSTRAINTS ALL IMMEDIATE", false, true),
        ] {
            let one = Script::read(sql, None).unwrap().statements.remove(0);
            assert_eq!((one.is_full_vacuum(), one.runs_code()), (is_full, runs_code), "{sql}");
        }
    }

    #[test]
    fn one_line_has_no_comments_and_single_blanks() {
        let script = Script::read("ALTER  TABLE t -- why\n\tADD c int;", None).unwrap();
        assert_eq!(script.statements[0].in_one_line(), "ALTER TABLE t ADD c int");
    }
}
