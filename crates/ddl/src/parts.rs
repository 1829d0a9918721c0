//! The parts of a statement's text, as far as a better way is made of them.

use sql::Kind;

use crate::script::tokens;

/// A statement's tokens, without blanks and comments.
pub(crate) struct Parts<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
}

#[derive(Clone, Copy)]
struct Token<'a> {
    kind: Kind,
    text: &'a str,
    at: usize,
}

/// An action of ALTER TABLE.
pub(crate) enum Action<'a> {
    /// ADD UNIQUE or PRIMARY KEY, the columns in parentheses.
    Key { name: Option<&'a str>, kind: &'static str, columns: &'a str, rest: &'a str },
    /// ADD CHECK or FOREIGN KEY.
    Rule { name: Option<&'a str>, rule: &'a str },
    /// ALTER COLUMN … SET NOT NULL.
    SetNotNull { column: &'a str },
    /// ADD COLUMN with a default.
    AddColumn { column: &'a str, typed: &'a str, default: &'a str, is_not_null: bool },
}

/// The parts of ALTER TABLE.
pub(crate) struct Alter<'a> {
    /// The table.
    pub(crate) table: &'a str,
    /// Whether tables that inherit from it stay as they are.
    pub(crate) is_only: bool,
    pub(crate) action: Action<'a>,
}

/// The parts of CREATE INDEX.
pub(crate) struct Create<'a> {
    pub(crate) is_unique: bool,
    pub(crate) name: Option<&'a str>,
    /// The table.
    pub(crate) table: &'a str,
    /// All after the table.
    pub(crate) rest: &'a str,
}

/// The words and names of a text, as the server has them.
pub(crate) fn names(text: &str) -> impl Iterator<Item = String> {
    let name = |(kind, token): (Kind, &str)| String::from_utf8(sql::name(kind, token.as_bytes())?).ok();
    tokens(text).into_iter().filter_map(name)
}

impl<'a> Parts<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        let text = text.trim_end().trim_end_matches(';').trim_end();
        let mut at = 0;
        let mut parts = Vec::new();
        for (kind, token) in tokens(text) {
            if !matches!(kind, Kind::Blank | Kind::Comment) {
                parts.push(Token { kind, text: token, at });
            }
            at += token.len();
        }
        Self { text, tokens: parts }
    }

    /// The statement with CONCURRENTLY, if it is CREATE INDEX, REINDEX or REFRESH MATERIALIZED VIEW without it.
    pub(crate) fn concurrently(&self) -> Option<String> {
        let word = if self.begins(0, &["create", "index"]) || self.begins(0, &["create", "unique", "index"]) {
            self.find(0, &["index"])
        } else if self.begins(0, &["reindex"]) {
            self.find(1, &["table", "index", "schema", "database"])
        } else if self.begins(0, &["refresh", "materialized", "view"]) {
            Some(2)
        } else {
            None
        }?;
        if self.begins(word + 1, &["concurrently"]) {
            return None;
        }
        let end = self.end(word);
        Some(format!("{} CONCURRENTLY{}", &self.text[..end], &self.text[end..]))
    }

    /// The parts of CREATE INDEX; none for other statements.
    pub(crate) fn create_index(&self) -> Option<Create<'a>> {
        let is_unique = self.begins(1, &["unique"]);
        let mut at = 1 + usize::from(is_unique);
        if !(self.begins(0, &["create"]) && self.begins(at, &["index"])) {
            return None;
        }
        at += 1;
        at += usize::from(self.begins(at, &["concurrently"]));
        if self.begins(at, &["if", "not", "exists"]) {
            at += 3;
        }
        let name = if self.begins(at, &["on"]) { None } else { Some(self.name(at)?) };
        at += usize::from(name.is_some());
        if !self.begins(at, &["on"]) {
            return None;
        }
        at += 1;
        at += usize::from(self.begins(at, &["only"]));
        let (table, after) = self.qualified(at)?;
        Some(Create { is_unique, name, table, rest: self.slice(after, self.tokens.len()) })
    }

    /// The name of a table there, and the place after it.
    fn qualified(&self, first: usize) -> Option<(&'a str, usize)> {
        let mut at = first;
        self.name(at)?;
        while self.tokens.get(at + 1)?.text == "." {
            at += 2;
            self.name(at)?;
        }
        Some((self.slice(first, at + 1), at + 1))
    }

    /// The table and the action of ALTER TABLE, if it has a single one that is known.
    pub(crate) fn alter_table(&self) -> Option<Alter<'a>> {
        if !self.begins(0, &["alter", "table"]) {
            return None;
        }
        let mut at = 2;
        if self.begins(at, &["if", "exists"]) {
            at += 2;
        }
        let is_only = self.begins(at, &["only"]);
        at += usize::from(is_only);
        let (table, at) = self.qualified(at)?;
        if self.outer(at).any(|place| self.tokens[place].text == ",") {
            return None;
        }
        let action = if self.begins(at, &["alter"]) { self.alter_column(at + 1) } else { self.add(at) };
        Some(Alter { table, is_only, action: action? })
    }

    /// Whether ALTER TABLE has several actions.
    pub(crate) fn has_several_actions(&self) -> bool {
        self.begins(0, &["alter", "table"]) && self.outer(2).any(|place| self.tokens[place].text == ",")
    }

    /// Whether ALTER TABLE changes the type of a column.
    pub(crate) fn changes_type(&self) -> bool {
        let is_change = |place: usize| {
            let column = place + 1 + usize::from(self.begins(place + 1, &["column"]));
            self.begins(place, &["alter"])
                && (self.begins(column + 1, &["type"]) || self.begins(column + 1, &["set", "data", "type"]))
        };
        self.begins(0, &["alter", "table"]) && self.outer(2).any(is_change)
    }

    /// The table that ALTER TABLE attaches as a partition.
    pub(crate) fn attached(&self) -> Option<&'a str> {
        if !self.begins(0, &["alter", "table"]) {
            return None;
        }
        let at = self.outer(2).find(|place| self.begins(*place, &["attach", "partition"]))?;
        Some(self.qualified(at + 2)?.0)
    }

    /// The columns that ALTER TABLE adds, by their names as the server has them.
    pub(crate) fn added_columns(&self) -> Vec<String> {
        self.added().into_iter().filter_map(|at| self.folded(at)).collect()
    }

    /// Whether ALTER TABLE adds a column of a type that is a number with a sequence (parse_utilcmd.c: transformColumnDefinition).
    pub(crate) fn adds_serial(&self) -> bool {
        let types = ["serial", "bigserial", "smallserial", "serial2", "serial4", "serial8"];
        let is_serial =
            |column: usize| self.folded(column + 1).is_some_and(|name| types.contains(&name.as_str()));
        self.added().into_iter().any(is_serial)
    }

    /// The places of the names of the columns that ALTER TABLE adds.
    fn added(&self) -> Vec<usize> {
        if !self.begins(0, &["alter", "table"]) {
            return Vec::new();
        }
        // Words after ADD that begin no column.
        let others = ["constraint", "check", "unique", "primary", "foreign", "exclude", "not", "generated"];
        let column = |place: usize| {
            let mut at = place + 1;
            if others.iter().any(|word| self.begins(at, &[word])) {
                return None;
            }
            at += usize::from(self.begins(at, &["column"]));
            if self.begins(at, &["if", "not", "exists"]) {
                at += 3;
            }
            Some(at)
        };
        self.outer(2).filter(|place| self.begins(*place, &["add"])).filter_map(column).collect()
    }

    /// The columns of the primary key that ALTER TABLE adds, by their names as the server has them; none for other statements.
    pub(crate) fn primary_key(&self) -> Option<Vec<String>> {
        let Action::Key { kind: "PRIMARY KEY", columns, .. } = self.alter_table()?.action else {
            return None;
        };
        Some(names(columns).collect())
    }

    fn alter_column(&self, at: usize) -> Option<Action<'a>> {
        let at = at + usize::from(self.begins(at, &["column"]));
        let column = self.name(at)?;
        let is_all = self.tokens.len() == at + 4;
        (self.begins(at + 1, &["set", "not", "null"]) && is_all).then_some(Action::SetNotNull { column })
    }

    fn add(&self, at: usize) -> Option<Action<'a>> {
        if !self.begins(at, &["add"]) {
            return None;
        }
        let mut at = at + 1;
        let mut name = None;
        if self.begins(at, &["constraint"]) {
            name = Some(self.name(at + 1)?);
            at += 2;
        }
        let end = self.tokens.len();
        if self.begins(at, &["check"]) || self.begins(at, &["foreign", "key"]) {
            return Some(Action::Rule { name, rule: self.slice(at, end) });
        }
        for (kind, words) in [("UNIQUE", &["unique"][..]), ("PRIMARY KEY", &["primary", "key"])] {
            if self.begins(at, words) {
                let open = at + words.len();
                let close = self.closing(open)?;
                // Its index is not of a kind that CREATE UNIQUE INDEX makes.
                if (open..close).any(|place| self.begins(place, &["without", "overlaps"])) {
                    return None;
                }
                let known = ["deferrable", "not", "initially"];
                if close + 1 < end && !known.iter().any(|word| self.begins(close + 1, &[word])) {
                    return None;
                }
                let (columns, rest) = (self.slice(open, close + 1), self.slice(close + 1, end));
                return Some(Action::Key { name, kind, columns, rest });
            }
        }
        if name.is_some() { None } else { self.add_column(at) }
    }

    fn add_column(&self, at: usize) -> Option<Action<'a>> {
        let mut at = at + usize::from(self.begins(at, &["column"]));
        if self.begins(at, &["if", "not", "exists"]) {
            at += 3;
        }
        let column = self.name(at)?;
        let default = self.outer(at).find(|place| self.begins(*place, &["default"]))?;
        // Words that may follow an expression. The text before DEFAULT is the type, and perhaps NOT NULL.
        let ends = ["not", "null", "check", "constraint", "references", "unique", "primary", "generated"];
        let is_end = |place: &usize| ends.iter().any(|word| self.begins(*place, &[word]));
        let typed = self.outer(at + 1).find(is_end).map_or(default, |place| place.min(default));
        let end = self.tokens.len();
        let after = self.outer(default + 1).find(is_end).unwrap_or(end);
        let is_not_null = |from: usize, to: usize| match to - from {
            0 => Some(false),
            2 if self.begins(from, &["not", "null"]) => Some(true),
            _ => None,
        };
        let is_not_null = is_not_null(typed, default)? | is_not_null(after, end)?;
        Some(Action::AddColumn {
            column,
            typed: self.slice(at + 1, typed),
            default: self.slice(default + 1, after),
            is_not_null,
        })
    }

    /// Whether these words are there.
    fn begins(&self, at: usize, words: &[&str]) -> bool {
        let is = |(place, word): (usize, &&str)| {
            self.tokens
                .get(at + place)
                .is_some_and(|part| part.kind == Kind::Word && part.text.eq_ignore_ascii_case(word))
        };
        words.iter().enumerate().all(is)
    }

    /// The place of the first of these words outside of parentheses.
    fn find(&self, from: usize, words: &[&str]) -> Option<usize> {
        self.outer(from).find(|place| words.iter().any(|word| self.begins(*place, &[word])))
    }

    fn name(&self, at: usize) -> Option<&'a str> {
        let part = self.tokens.get(at)?;
        matches!(part.kind, Kind::Word | Kind::QuotedName).then_some(part.text)
    }

    /// The name there as the server has it.
    fn folded(&self, at: usize) -> Option<String> {
        let part = self.tokens.get(at)?;
        String::from_utf8(sql::name(part.kind, part.text.as_bytes())?).ok()
    }

    /// Places from there on that are outside of parentheses.
    fn outer(&self, from: usize) -> impl Iterator<Item = usize> + '_ {
        let mut depth = 0_i32;
        (from..self.tokens.len()).filter(move |place| {
            let text = self.tokens[*place].text;
            depth -= i32::from(text == ")" || text == "]");
            let is_outer = depth == 0;
            depth += i32::from(text == "(" || text == "[");
            is_outer
        })
    }

    /// The place of the parenthesis that closes the one there.
    fn closing(&self, open: usize) -> Option<usize> {
        (self.tokens.get(open)?.text == "(").then_some(())?;
        self.outer(open).nth(1)
    }

    fn end(&self, at: usize) -> usize {
        self.tokens[at].at + self.tokens[at].text.len()
    }

    fn slice(&self, from: usize, to: usize) -> &'a str {
        if from >= to { "" } else { &self.text[self.tokens[from].at..self.end(to - 1)] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_that_a_statement_adds_are_found() {
        for (sql, wanted) in [
            ("ALTER TABLE t ADD a int NOT NULL", &["a"][..]),
            ("alter table only s.t add column if not exists \"B c\" text unique default ''", &["B c"]),
            ("ALTER TABLE t ADD A int, ALTER b TYPE text, ADD COLUMN c numeric(8, 2)", &["a", "c"]),
            ("ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0), ADD UNIQUE (a), ADD PRIMARY KEY (a)", &[]),
            ("ALTER TABLE t ALTER a ADD GENERATED ALWAYS AS IDENTITY", &[]),
            ("ALTER TYPE mood ADD VALUE 'mixed'", &[]),
        ] {
            assert_eq!(Parts::of(sql).added_columns(), wanted, "{sql}");
        }
    }

    #[test]
    fn actions_are_told_apart() {
        for (sql, is_several, is_type) in [
            ("ALTER TABLE t ADD a int DEFAULT 0 NOT NULL, ALTER COLUMN b TYPE bigint", true, true),
            ("alter table s.t alter b set data type numeric(8, 2)", false, true),
            ("ALTER TABLE t ADD type text DEFAULT f(1, 2)", false, false),
            ("ALTER TABLE t ALTER type SET DEFAULT 1", false, false),
            ("ALTER TABLE t ALTER \"Type\" TYPE text", false, true),
            ("DO $$ BEGIN ALTER TABLE t ALTER b TYPE text, ADD c int; END $$", false, false),
        ] {
            let parts = Parts::of(sql);
            assert_eq!((parts.has_several_actions(), parts.changes_type()), (is_several, is_type), "{sql}");
        }
    }

    #[test]
    fn the_table_that_becomes_a_partition_is_found() {
        for (sql, wanted) in [
            ("ALTER TABLE t ATTACH PARTITION p DEFAULT;", Some("p")),
            ("ALTER TABLE s.t ATTACH PARTITION s . \"P q\" FOR VALUES IN (1)", Some("s . \"P q\"")),
            ("ALTER TABLE t DETACH PARTITION p", None),
            ("ALTER INDEX i ATTACH PARTITION j", None),
        ] {
            assert_eq!(Parts::of(sql).attached(), wanted, "{sql}");
        }
    }

    #[test]
    fn a_serial_is_a_type_and_not_a_name() {
        for (sql, wanted) in [
            ("ALTER TABLE t ADD serial text DEFAULT 'serial'", false),
            ("ALTER TABLE t ADD a text, ADD b int DEFAULT serial()", false),
            ("ALTER TABLE serial ADD a bigint", false),
            ("ALTER TABLE t ADD a", false),
            ("ALTER TABLE t ADD serial SERIAL", true),
            ("ALTER TABLE t ADD a int, ADD COLUMN b bigserial PRIMARY KEY", true),
            ("ALTER TABLE t ADD a serial2", true),
        ] {
            assert_eq!(Parts::of(sql).adds_serial(), wanted, "{sql}");
        }
    }

    #[test]
    fn the_columns_of_a_primary_key_are_found() {
        for (sql, wanted) in [
            (
                "ALTER TABLE ONLY s.t ADD CONSTRAINT k PRIMARY KEY (A, \"B c\") DEFERRABLE",
                Some(&["a", "B c"][..]),
            ),
            ("ALTER TABLE t ADD UNIQUE (a)", None),
            ("ALTER TABLE t ADD PRIMARY KEY (a, at WITHOUT OVERLAPS)", None),
            ("ALTER TABLE t ADD PRIMARY KEY USING INDEX i", None),
            ("SELECT 1", None),
        ] {
            let found = Parts::of(sql).primary_key();
            let wanted = wanted.map(|names| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
            assert_eq!(found, wanted, "{sql}");
        }
    }
}
