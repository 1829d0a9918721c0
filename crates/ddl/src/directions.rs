//! Migrations of goose, dbmate and sql-migrate: comments divide a file into a part that migrates, Up, and a part that takes this back, Down.
//!
//! These tools read the comments line by line, before they split the file into statements. So does pgrig.

use std::borrow::Cow;

use crate::script::{Statement, StatementKind};
use crate::script_error::ScriptError;

/// A tool whose files have both parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    Goose,
    Dbmate,
    SqlMigrate,
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Self::Goose => "goose",
            Self::Dbmate => "dbmate",
            Self::SqlMigrate => "sql-migrate",
        }
    }

    /// The comments at the beginning of the part that migrates and of the one that takes this back, and the text that lets the tool begin no
    /// transaction.
    fn comments(self) -> [&'static str; 3] {
        match self {
            Self::Goose => ["-- +goose Up", "-- +goose Down", "-- +goose NO TRANSACTION"],
            Self::Dbmate => ["-- migrate:up", "-- migrate:down", "-- migrate:up transaction:false"],
            Self::SqlMigrate => ["-- +migrate Up", "-- +migrate Down", "-- +migrate Up notransaction"],
        }
    }
}

/// The meaning of a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// The part that migrates begins. With false, it runs without a transaction of the tool's.
    Up(bool),
    Down,
    /// The whole file runs without a transaction of the tool's.
    NoTransaction,
}

/// The meaning of a line; none if it is no such comment.
fn mark(line: &str) -> Option<(Tool, Mark)> {
    let comment = line.trim().strip_prefix("--")?.to_ascii_lowercase();
    let words: Vec<&str> = comment.split_whitespace().collect();
    Some(match &words[..] {
        ["+goose", "up"] => (Tool::Goose, Mark::Up(true)),
        ["+goose", "down"] => (Tool::Goose, Mark::Down),
        ["+goose", "no", "transaction"] => (Tool::Goose, Mark::NoTransaction),
        ["migrate:up", options @ ..] => (Tool::Dbmate, Mark::Up(!options.contains(&"transaction:false"))),
        ["migrate:down", ..] => (Tool::Dbmate, Mark::Down),
        ["+migrate", "up", options @ ..] => (Tool::SqlMigrate, Mark::Up(!options.contains(&"notransaction"))),
        ["+migrate", "down", ..] => (Tool::SqlMigrate, Mark::Down),
        _ => return None,
    })
}

/// A file with its parts.
pub(crate) struct Directions<'a> {
    /// The text without the parts that take the migration back. Their lines are empty, so that the others keep their numbers.
    pub(crate) up: Cow<'a, str>,
    tool: Option<Tool>,
    has_up: bool,
    /// The line on which the first Down part begins, from 1.
    down: Option<u64>,
    /// Whether the tool runs the part that migrates in a transaction.
    in_transaction: bool,
}

impl<'a> Directions<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        let mut this = Self { up: text.into(), tool: None, has_up: false, down: None, in_transaction: true };
        let (mut up, mut is_down) = (String::new(), false);
        for (line, number) in text.split_inclusive('\n').zip(1..) {
            if let Some((tool, mark)) = mark(line) {
                this.tool.get_or_insert(tool);
                match mark {
                    Mark::Up(in_transaction) => {
                        (is_down, this.has_up) = (false, true);
                        this.in_transaction &= in_transaction;
                    }
                    Mark::Down => {
                        is_down = true;
                        this.down.get_or_insert(number);
                    }
                    Mark::NoTransaction => this.in_transaction = false,
                }
            }
            up.push_str(match (is_down, line.ends_with('\n')) {
                (false, _) => line,
                (true, true) => "\n",
                (true, false) => "",
            });
        }
        if this.down.is_some() {
            this.up = up.into();
        }
        this
    }

    /// Refuses a file whose only part takes a migration back. `statements` are those of the other part.
    ///
    /// # Errors
    /// If it is one.
    pub(crate) fn check(&self, statements: &[Statement]) -> Result<(), ScriptError> {
        match (self.tool, self.down) {
            (Some(tool), Some(line)) if !self.has_up && statements.is_empty() => {
                let [up, down, _] = tool.comments();
                Err(ScriptError::OnlyDown { line, up, down })
            }
            _ => Ok(()),
        }
    }

    /// The note about the part that pgrig leaves out. `place` is a line, with its file.
    pub(crate) fn left_out(&self, place: impl Fn(u64) -> String) -> Option<String> {
        let place = place(self.down?);
        let [_, down, _] = self.tool?.comments();
        Some(format!("{place}: the Down part begins here ({down}): pgrig measures only the Up part"))
    }

    /// The advice for a file that the tool, but not pgrig, runs in a transaction of its own. `statements` are those of the part that migrates.
    pub(crate) fn advice(&self, file: Option<&str>, statements: &[Statement]) -> Option<String> {
        let tool = self.tool.filter(|_| self.in_transaction && statements.len() > 1)?;
        if statements.iter().any(|one| one.kind == StatementKind::Transaction) {
            return None;
        }
        let (name, [.., without]) = (tool.name(), tool.comments());
        let file = file.unwrap_or("the migration");
        Some(format!(
            "{name} runs {file} in one transaction, which keeps the lock of each statement to its end, and pgrig runs each statement in its own: give \
             --single-transaction (without {name}'s transaction: {without})"
        ))
    }
}

#[cfg(test)]
mod tests {
    use crate::script::Script;

    const GOOSE: &str = "-- +goose Up\n-- +goose StatementBegin\nDO $$ BEGIN PERFORM 1; END $$;\n-- +goose StatementEnd\n\
                         ALTER TABLE t ADD a int;\n\n-- +goose Down\nDROP TABLE t CASCADE;\n\\garbage 'x\n";

    fn statements(script: &Script) -> Vec<(&str, u64)> {
        script.statements.iter().map(|one| (one.sql.as_str(), one.line)).collect()
    }

    #[test]
    fn only_the_part_that_migrates_is_read() {
        let script = Script::read(GOOSE, Some("1.sql")).unwrap();
        let wanted = [("DO $$ BEGIN PERFORM 1; END $$;", 3), ("ALTER TABLE t ADD a int;", 5)];
        assert_eq!(statements(&script), wanted);
        assert!(
            script.notes[0].starts_with("1.sql, line 7: the Down part begins here"),
            "{:?}",
            script.notes
        );
        // The last statement lacks its semicolon; the parts come in turn; line ends are those of Windows.
        for text in [
            "-- migrate:up\nSELECT 1\n-- migrate:down transaction:false\nSELECT 2",
            "--migrate:up\r\nSELECT 1\r\n--  migrate:down\r\nSELECT 2;\r\n",
            "-- +migrate Down\nSELECT 2;\n-- +migrate Up\nSELECT 1",
        ] {
            assert_eq!(statements(&Script::read(text, None).unwrap())[0].0, "SELECT 1", "{text}");
            assert_eq!(Script::read(text, None).unwrap().statements.len(), 1, "{text}");
        }
        let other = Script::read("-- down\nSELECT 1; -- +goose Down\nSELECT 2", None).unwrap();
        assert_eq!((other.statements.len(), &other.notes[..]), (2, &[][..]));
    }

    #[test]
    fn a_file_with_only_a_down_part_is_refused() {
        for (text, up) in [
            ("-- +goose Down\nSELECT 1;", "-- +goose Up"),
            ("-- x\n-- migrate:down\nSELECT 1;", "-- migrate:up"),
            ("-- +migrate Down\n", "-- +migrate Up"),
        ] {
            let error = Script::read(text, None).unwrap_err().to_string();
            assert!(error.starts_with("line ") && error.contains(up), "{error}");
        }
    }

    #[test]
    fn the_tool_s_transaction_is_advised_where_it_makes_a_difference() {
        let two = "ALTER TABLE t ADD a int; ALTER TABLE t ADD b int;";
        for (begin, is_advised) in [
            ("-- +goose Up", true),
            ("-- +goose NO TRANSACTION\n-- +goose Up", false),
            ("-- migrate:up", true),
            ("-- migrate:up transaction:false", false),
            ("-- +migrate Up", true),
            ("-- +migrate Up notransaction", false),
            ("-- +goose Up\nBEGIN;", false),
            ("-- up", false),
        ] {
            let read = || Script::read(&format!("{begin}\n{two}"), None).unwrap();
            let notes = |script: Script| Script::of([script]).unwrap().notes;
            let found = notes(read());
            assert_eq!(
                found.iter().any(|note| note.contains("--single-transaction")),
                is_advised,
                "{found:?}"
            );
            if is_advised {
                assert_eq!(notes(read().in_one_transaction().unwrap()), [""; 0], "{begin}");
            }
        }
        let one = Script::read("-- +goose Up\nALTER TABLE t ADD a int;", None).unwrap();
        assert_eq!(Script::of([one]).unwrap().notes, [""; 0]);
    }
}
