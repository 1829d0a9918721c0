//! The parts of a statement's text, as far as a better way is made of them.

mod acts;
mod calls;
mod computed;
mod concurrent;
mod copied;
mod method;
mod several;
mod writes;

use sql::Kind;

pub(crate) use acts::{Act, Acts};
pub(crate) use calls::Call;
pub(crate) use several::{Part, Several};
pub(crate) use writes::Write;

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
    /// ADD CHECK, FOREIGN KEY or NOT NULL.
    Rule { name: Option<&'a str>, kind: RuleKind<'a>, rule: &'a str },
    /// ALTER COLUMN … SET NOT NULL.
    SetNotNull { column: &'a str },
    /// ADD COLUMN with a default. `typed` is the type with its collation.
    AddColumn { column: &'a str, typed: String, default: &'a str, is_not_null: bool },
}

/// Kinds of constraints without an index.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleKind<'a> {
    Check,
    Reference,
    /// NOT NULL of this column.
    NotNull(&'a str),
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
        let word = if self.creates_index() {
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

    /// Whether it is CREATE INDEX.
    pub(crate) fn creates_index(&self) -> bool {
        self.begins(0, &["create", "index"]) || self.begins(0, &["create", "unique", "index"])
    }

    /// The options of REINDEX with their parentheses, empty without any, and whether it names a single index; none for other statements.
    pub(crate) fn reindex(&self) -> Option<(&'a str, bool)> {
        if !self.begins(0, &["reindex"]) {
            return None;
        }
        let word = self.find(1, &["table", "index", "schema", "database", "system"])?;
        Some((self.slice(1, word), self.begins(word, &["index"])))
    }

    /// The materialized view that REFRESH names; none for other statements.
    pub(crate) fn refreshed(&self) -> Option<&'a str> {
        if !self.begins(0, &["refresh", "materialized", "view"]) {
            return None;
        }
        Some(self.qualified(3 + usize::from(self.begins(3, &["concurrently"])))?.0)
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
        if !self.begins(at, &["on"]) {
            // Its name.
            self.name(at)?;
            at += 1;
        }
        if !self.begins(at, &["on"]) {
            return None;
        }
        at += 1;
        at += usize::from(self.begins(at, &["only"]));
        let (table, after) = self.qualified(at)?;
        Some(Create { is_unique, table, rest: self.slice(after, self.tokens.len()) })
    }

    /// The name of a table there, and the place after it.
    fn qualified(&self, first: usize) -> Option<(&'a str, usize)> {
        let mut at = first;
        self.name(at)?;
        while self.tokens.get(at + 1).is_some_and(|part| part.text == ".") {
            at += 2;
            self.name(at)?;
        }
        Some((self.slice(first, at + 1), at + 1))
    }

    /// The table and the action of ALTER TABLE, if it has a single one that is known.
    pub(crate) fn alter_table(&self) -> Option<Alter<'a>> {
        let (table, is_only) = self.altered()?;
        let [(from, to)] = self.actions(0)[..] else { return None };
        Some(Alter { table, is_only, action: self.action(from, to)? })
    }

    /// The table that ALTER TABLE names, and whether it says ONLY; none for other statements.
    fn altered(&self) -> Option<(&'a str, bool)> {
        if !self.begins(0, &["alter", "table"]) {
            return None;
        }
        let at = if self.begins(2, &["if", "exists"]) { 4 } else { 2 };
        let is_only = self.begins(at, &["only"]);
        Some((self.qualified(at + usize::from(is_only))?.0, is_only))
    }

    /// The action of ALTER TABLE that is there, if it is known.
    fn action(&self, from: usize, to: usize) -> Option<Action<'a>> {
        if self.begins(from, &["alter"]) { self.alter_column(from + 1, to) } else { self.add(from, to) }
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

    /// The columns of the primary key that ALTER TABLE adds, also beside other actions, by their names as the server has them; none for
    /// other statements.
    pub(crate) fn primary_key(&self) -> Option<Vec<String>> {
        let mut actions = self.actions(0).into_iter().filter_map(|(from, to)| self.action(from, to));
        actions.find_map(|action| match action {
            Action::Key { kind: "PRIMARY KEY", columns, .. } => Some(names(columns).collect()),
            _ => None,
        })
    }

    fn alter_column(&self, at: usize, end: usize) -> Option<Action<'a>> {
        let at = at + usize::from(self.begins(at, &["column"]));
        let column = self.name(at)?;
        let is_all = end == at + 4;
        (self.begins(at + 1, &["set", "not", "null"]) && is_all).then_some(Action::SetNotNull { column })
    }

    fn add(&self, at: usize, end: usize) -> Option<Action<'a>> {
        if !self.begins(at, &["add"]) {
            return None;
        }
        let mut at = at + 1;
        let mut name = None;
        if self.begins(at, &["constraint"]) {
            name = Some(self.name(at + 1)?);
            at += 2;
        }
        if let Some(kind) = self.rule_kind(at) {
            return Some(Action::Rule { name, kind, rule: self.slice(at, end) });
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
        if name.is_some() { None } else { self.add_column(at, end) }
    }

    fn rule_kind(&self, at: usize) -> Option<RuleKind<'a>> {
        if self.begins(at, &["check"]) {
            Some(RuleKind::Check)
        } else if self.begins(at, &["foreign", "key"]) {
            Some(RuleKind::Reference)
        } else if self.begins(at, &["not", "null"]) {
            Some(RuleKind::NotNull(self.name(at + 2)?))
        } else {
            None
        }
    }

    /// The clauses after the type come in any order (gram.y: ColQualList); none if one is not known.
    fn add_column(&self, at: usize, end: usize) -> Option<Action<'a>> {
        let mut at = at + usize::from(self.begins(at, &["column"]));
        if self.begins(at, &["if", "not", "exists"]) {
            at += 3;
        }
        let column = self.name(at)?;
        let mut place = self.clause_after(at + 1, end);
        let plain = self.slice(at + 1, place);
        let (mut collation, mut default, mut is_not_null) = (None, None, false);
        while place < end {
            place = if self.begins(place, &["default"]) {
                let after = self.clause_after(place + 1, end);
                default = Some(self.slice(place + 1, after));
                after
            } else if self.begins(place, &["collate"]) {
                let (_, after) = self.qualified(place + 1)?;
                collation = Some(self.slice(place, after));
                after
            } else if self.begins(place, &["not", "null"]) {
                is_not_null = true;
                place + 2
            } else if self.begins(place, &["null"]) {
                place + 1
            } else {
                return None;
            };
        }
        let typed = collation.map_or_else(|| plain.to_owned(), |collation| format!("{plain} {collation}"));
        Some(Action::AddColumn { column, typed, default: default?, is_not_null })
    }

    /// The place of the first clause of a column definition after the type or expression that begins there; else the end.
    fn clause_after(&self, first: usize, end: usize) -> usize {
        let words = [
            "default",
            "collate",
            "not",
            "null",
            "check",
            "constraint",
            "references",
            "unique",
            "primary",
            "generated",
        ];
        let is_clause =
            |place: &usize| *place > first && words.iter().any(|word| self.begins(*place, &[word]));
        self.outer(first).take_while(|place| *place < end).find(is_clause).unwrap_or(end)
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
    fn the_clauses_of_a_new_column_are_told_apart_in_any_order() {
        for (sql, wanted) in [
            (
                "a text DEFAULT f(1)::text COLLATE \"C\" NOT NULL",
                Some(("text COLLATE \"C\"", "f(1)::text", true)),
            ),
            (
                "a text NOT NULL COLLATE s.\"C\" DEFAULT (f() || 'x')",
                Some(("text COLLATE s.\"C\"", "(f() || 'x')", true)),
            ),
            ("COLUMN a text DEFAULT f() COLLATE \"C\"", Some(("text COLLATE \"C\"", "f()", false))),
            ("a varchar(5) NULL DEFAULT f()", Some(("varchar(5)", "f()", false))),
            ("a text COMPRESSION pglz DEFAULT f()", Some(("text COMPRESSION pglz", "f()", false))),
            (
                "a timestamp(3) with time zone DEFAULT f() NOT NULL",
                Some(("timestamp(3) with time zone", "f()", true)),
            ),
            ("a int DEFAULT f() CHECK (a > 0)", None),
            ("a int DEFAULT f() UNIQUE", None),
            ("a int PRIMARY KEY DEFAULT f()", None),
            ("a int DEFAULT f() CONSTRAINT n NOT NULL", None),
            ("a int DEFAULT f() REFERENCES u", None),
            ("a int NOT NULL NO INHERIT DEFAULT f()", None),
            ("a int DEFAULT CASE WHEN f() IS NULL THEN 1 END", None),
            ("a int GENERATED BY DEFAULT AS IDENTITY", None),
            ("a int NOT NULL", None),
        ] {
            let sql = format!("ALTER TABLE t ADD {sql}");
            let found = match Parts::of(&sql).alter_table().map(|alter| alter.action) {
                Some(Action::AddColumn { typed, default, is_not_null, .. }) => {
                    Some((typed, default.to_owned(), is_not_null))
                }
                _ => None,
            };
            let wanted = wanted.map(|(typed, default, is)| (typed.to_owned(), default.to_owned(), is));
            assert_eq!(found, wanted, "{sql}");
        }
    }

    #[test]
    fn the_objects_of_reindex_and_refresh_are_found() {
        let reindex = |sql: &str| Parts::of(sql).reindex().map(|(options, is)| (options.to_owned(), is));
        for (sql, wanted) in [
            ("REINDEX INDEX i", Some((String::new(), true))),
            ("reindex (VERBOSE, TABLESPACE x) table t;", Some(("(VERBOSE, TABLESPACE x)".to_owned(), false))),
            ("REINDEX SYSTEM", Some((String::new(), false))),
            ("CREATE INDEX ON reindex (a)", None),
        ] {
            assert_eq!(reindex(sql), wanted, "{sql}");
        }
        for (sql, wanted) in [
            ("REFRESH MATERIALIZED VIEW m", Some("m")),
            ("REFRESH MATERIALIZED VIEW CONCURRENTLY s.\"M v\" WITH DATA", Some("s.\"M v\"")),
            ("ALTER TABLE refresh ADD a int", None),
        ] {
            assert_eq!(Parts::of(sql).refreshed(), wanted, "{sql}");
        }
    }

    #[test]
    fn the_columns_of_a_primary_key_are_found() {
        for (sql, wanted) in [
            (
                "ALTER TABLE ONLY s.t ADD CONSTRAINT k PRIMARY KEY (A, \"B c\") DEFERRABLE",
                Some(&["a", "B c"][..]),
            ),
            ("ALTER TABLE t ADD b int DEFAULT 1, ADD PRIMARY KEY (a), ADD UNIQUE (b)", Some(&["a"][..])),
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
