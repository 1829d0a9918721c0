//! The actions of ALTER TABLE, told apart by their own words. Names, comments and text in quotes do not count, because they may have any
//! words.

use sql::Kind;

use super::{Parts, RuleKind};

/// An element of an action on which a better way depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// UNIQUE or PRIMARY KEY of the table or of a new column, with a B-tree that the statement builds.
    Key,
    /// ADD PRIMARY KEY USING INDEX.
    PrimaryOfIndex,
    /// CHECK of the table or of a new column.
    Check,
    /// A foreign key of the table or of a new column.
    Reference,
    /// ADD NOT NULL, from PostgreSQL 18 on.
    NotNull,
    /// NOT NULL of a new column, or its PRIMARY KEY.
    NewNotNull,
    /// VALIDATE CONSTRAINT.
    Validate,
    /// ALTER COLUMN … SET NOT NULL.
    SetNotNull,
    /// ALTER COLUMN … TYPE.
    Type,
    /// A new column that gets numbers from a sequence: an identity, or a serial.
    Numbered,
    /// A new column with a default.
    Default,
    /// A change that writes the table anew, whatever the other actions do: SET LOGGED, UNLOGGED, ACCESS METHOD, TABLESPACE or EXPRESSION, or a
    /// new column whose values are computed and stored.
    Rewriting,
}

/// The actions of the ALTER TABLE that a statement is, or of all in the body of a DO.
pub(crate) struct Acts {
    acts: Vec<Act>,
    /// Number of all actions, with those without an [`Act`].
    actions: usize,
}

impl Acts {
    pub(crate) fn of(sql: &str) -> Self {
        let parts = Parts::of(sql);
        let mut all = Self { acts: Vec::new(), actions: 0 };
        if parts.begins(0, &["do"]) {
            let body = Parts::of(body(&parts).unwrap_or_default());
            for place in 0..body.tokens.len() {
                all.read(&body, place);
            }
        } else {
            all.read(&parts, 0);
        }
        all
    }

    pub(crate) fn has(&self, act: Act) -> bool {
        self.acts.contains(&act)
    }

    /// Number of constraints that may be NOT VALID at first.
    pub(crate) fn rules(&self) -> usize {
        let rules = [Act::Check, Act::Reference, Act::NotNull];
        self.acts.iter().filter(|act| rules.contains(act)).count()
    }

    pub(crate) fn are_several(&self) -> bool {
        self.actions > 1
    }

    /// Reads the ALTER TABLE that begins there, if one does.
    fn read(&mut self, parts: &Parts<'_>, place: usize) {
        for (from, to) in parts.actions(place) {
            self.acts.extend(of_action(parts, from, to));
            self.actions += 1;
        }
    }
}

impl Parts<'_> {
    /// The actions of the ALTER TABLE that begins there, each with its first place and the place after it; none if none begins there.
    pub(super) fn actions(&self, place: usize) -> Vec<(usize, usize)> {
        let Some(first) = first_action(self, place) else { return Vec::new() };
        let is = |place: &usize, text: &str| self.tokens[*place].text == text;
        let end = self.outer(first).find(|place| is(place, ";")).unwrap_or(self.tokens.len());
        let commas = self.outer(first).take_while(|place| *place < end).filter(|place| is(place, ","));
        let (mut actions, mut from) = (Vec::new(), first);
        for to in commas.chain([end]) {
            actions.push((from, to));
            from = to + 1;
        }
        actions
    }

    /// Whether a constraint there says that the rows are not checked: it is NOT VALID, or NOT ENFORCED (from PostgreSQL 18 on).
    pub(super) fn is_unchecked(&self, from: usize, to: usize) -> bool {
        let mut places = self.outer(from).take_while(|place| *place < to);
        places.any(|place| self.begins(place, &["not", "valid"]) || self.begins(place, &["not", "enforced"]))
    }

    /// The columns to which ALTER TABLE gives a type, by their names as the server has them.
    pub(crate) fn typed_columns(&self) -> Vec<String> {
        let column = |(from, _): (usize, usize)| {
            let at = from + 1 + usize::from(self.begins(from + 1, &["column"]));
            if self.begins(from, &["alter"]) && self.sets_type(at + 1) { self.folded(at) } else { None }
        };
        self.actions(0).into_iter().filter_map(column).collect()
    }

    /// Whether a column gets another type there, after its name.
    pub(super) fn sets_type(&self, at: usize) -> bool {
        self.begins(at, &["type"]) || self.begins(at, &["set", "data", "type"])
    }
}

/// The place after the table of the ALTER TABLE that begins there; none if none does.
fn first_action(parts: &Parts<'_>, place: usize) -> Option<usize> {
    if !parts.begins(place, &["alter", "table"]) {
        return None;
    }
    let mut at = place + 2;
    at += if parts.begins(at, &["if", "exists"]) { 2 } else { 0 };
    at += usize::from(parts.begins(at, &["only"]));
    let (_, after) = parts.qualified(at)?;
    let is_with_children = parts.tokens.get(after).is_some_and(|part| part.text == "*");
    Some(after + usize::from(is_with_children))
}

/// The text within the quotes of a DO's body: of the longest one, since the name of the language may be in quotes, too.
pub(super) fn body<'a>(parts: &Parts<'a>) -> Option<&'a str> {
    let literals = parts.tokens.iter().filter(|part| part.kind == Kind::Literal);
    let quoted = literals.map(|part| part.text).max_by_key(|text| text.len())?;
    let Some(tag) = quoted.strip_prefix('$').and_then(|rest| rest.find('$')) else {
        return Some(quoted.trim_matches('\''));
    };
    quoted.get(tag + 2..quoted.len() - tag - 2)
}

pub(super) fn of_action(parts: &Parts<'_>, at: usize, end: usize) -> Vec<Act> {
    if parts.begins(at, &["validate", "constraint"]) {
        return vec![Act::Validate];
    }
    if parts.begins(at, &["alter"]) {
        return of_column(parts, at + 1).into_iter().collect();
    }
    let rewriting =
        [&["set", "logged"][..], &["set", "unlogged"], &["set", "access"], &["set", "tablespace"]];
    if rewriting.iter().any(|words| parts.begins(at, words)) {
        return vec![Act::Rewriting];
    }
    if !parts.begins(at, &["add"]) {
        return Vec::new();
    }
    let is_named = parts.begins(at + 1, &["constraint"]);
    let at = at + if is_named { 3 } else { 1 };
    let indexed = ["unique", "primary", "exclude"];
    if let Some(kind) = parts.rule_kind(at) {
        if parts.is_unchecked(at, end) { Vec::new() } else { vec![kind.into()] }
    } else if is_named || indexed.iter().any(|word| parts.begins(at, &[word])) {
        of_index(parts, at, end).into_iter().collect()
    } else {
        of_new_column(parts, at, end)
    }
}

impl From<RuleKind<'_>> for Act {
    fn from(kind: RuleKind<'_>) -> Self {
        match kind {
            RuleKind::Check => Self::Check,
            RuleKind::Reference => Self::Reference,
            RuleKind::NotNull(_) => Self::NotNull,
        }
    }
}

/// After ALTER.
fn of_column(parts: &Parts<'_>, at: usize) -> Option<Act> {
    if parts.begins(at, &["constraint"]) {
        return None;
    }
    let after = at + 1 + usize::from(parts.begins(at, &["column"]));
    if parts.begins(after, &["set", "not", "null"]) {
        Some(Act::SetNotNull)
    } else if parts.begins(after, &["set", "expression"]) {
        Some(Act::Rewriting)
    } else {
        parts.sets_type(after).then_some(Act::Type)
    }
}

/// Of a constraint with an index. That of an exclusion constraint, or of a key WITHOUT OVERLAPS, is none that CREATE UNIQUE INDEX makes.
fn of_index(parts: &Parts<'_>, at: usize, end: usize) -> Option<Act> {
    let is_primary = parts.begins(at, &["primary", "key"]);
    if !is_primary && !parts.begins(at, &["unique"]) {
        return None;
    }
    let after = at + 1 + usize::from(is_primary);
    if parts.begins(after, &["using", "index"]) {
        return is_primary.then_some(Act::PrimaryOfIndex);
    }
    let is_btree = !(after..end).any(|place| parts.begins(place, &["without", "overlaps"]));
    is_btree.then_some(Act::Key)
}

/// Of a column definition, from its name or a word before it on. Its words are reserved, or have a place that no name takes.
fn of_new_column(parts: &Parts<'_>, at: usize, end: usize) -> Vec<Act> {
    let serials = ["serial", "bigserial", "smallserial", "serial2", "serial4", "serial8"];
    let mut at = at + usize::from(parts.begins(at, &["column"]));
    at += if parts.begins(at, &["if", "not", "exists"]) { 3 } else { 0 };
    // A serial is a type (parse_utilcmd.c: transformColumnDefinition).
    let is_serial = parts.folded(at + 1).is_some_and(|name| serials.contains(&name.as_str()));
    let mut acts = if is_serial { vec![Act::Numbered] } else { Vec::new() };
    for place in parts.outer(at + 1).take_while(|place| *place < end) {
        let is = |words: &[&str]| parts.begins(place, words);
        if is(&["as", "identity"]) {
            acts.push(Act::Numbered);
        } else if is(&["default"]) && !parts.begins(place - 1, &["by"]) {
            acts.push(Act::Default);
        } else if is(&["unique"]) {
            acts.push(Act::Key);
        } else if is(&["primary", "key"]) {
            acts.extend([Act::Key, Act::NewNotNull]);
        } else if is(&["not", "null"]) && !parts.begins(place - 1, &["is"]) {
            acts.push(Act::NewNotNull);
        } else if is(&["references"]) {
            acts.push(Act::Reference);
        } else if is(&["check"]) {
            acts.push(Act::Check);
        } else if is(&["stored"]) && parts.tokens[place - 1].text == ")" {
            acts.push(Act::Rewriting);
        }
    }
    acts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_told_apart_by_their_own_words() {
        for (sql, are_several, wanted) in [
            ("ALTER TABLE t ADD CONSTRAINT k UNIQUE NULLS NOT DISTINCT (a)", false, &[Act::Key][..]),
            ("alter table only s.t add primary key (a, b) deferrable", false, &[Act::Key]),
            ("ALTER TABLE t ADD PRIMARY KEY USING INDEX i", false, &[Act::PrimaryOfIndex]),
            ("ALTER TABLE t ADD UNIQUE USING INDEX i", false, &[]),
            ("ALTER TABLE t ADD CONSTRAINT k PRIMARY KEY (a, at WITHOUT OVERLAPS)", false, &[]),
            ("ALTER TABLE t ADD CONSTRAINT room_unique EXCLUDE USING gist (room WITH =)", false, &[]),
            ("ALTER TABLE t ADD EXCLUDE USING gist (room WITH =)", false, &[]),
            ("ALTER TABLE t ALTER COLUMN unique_code TYPE text COLLATE \"C\"", false, &[Act::Type]),
            ("ALTER TABLE pt ADD CONSTRAINT pc CHECK (preferences <> 'zz')", false, &[Act::Check]),
            ("ALTER TABLE t * ADD FOREIGN KEY (a) REFERENCES u", false, &[Act::Reference]),
            ("ALTER TABLE t ADD CONSTRAINT nn NOT NULL checked_at", false, &[Act::NotNull]),
            ("ALTER TABLE t ADD CHECK (a > 0) NOT VALID, ADD CHECK (b > 0) NOT ENFORCED", true, &[]),
            ("ALTER TABLE t VALIDATE CONSTRAINT unique_check", false, &[Act::Validate]),
            ("ALTER TABLE t ALTER checked_at SET NOT NULL", false, &[Act::SetNotNull]),
            ("ALTER TABLE t ALTER CONSTRAINT type DEFERRABLE", false, &[]),
            ("ALTER TABLE t ALTER a SET DEFAULT 'check'", false, &[]),
            ("ALTER TABLE t ALTER \"Type\" TYPE text", false, &[Act::Type]),
            ("ALTER TABLE t ALTER type SET DEFAULT 1", false, &[]),
            ("alter table s.t alter b set data type numeric(8, 2)", false, &[Act::Type]),
            ("ALTER TABLE t SET LOGGED, SET (fillfactor = 90)", true, &[Act::Rewriting]),
            ("ALTER TABLE t SET ACCESS METHOD heap", false, &[Act::Rewriting]),
            ("ALTER TABLE t ALTER g SET EXPRESSION AS (n + 2)", false, &[Act::Rewriting]),
            ("ALTER TABLE t ADD type text DEFAULT f(1, 2)", false, &[Act::Default]),
            (
                "ALTER TABLE t ADD a int DEFAULT 0 NOT NULL, ALTER b TYPE bigint",
                true,
                &[Act::Default, Act::NewNotNull, Act::Type],
            ),
            (
                "ALTER TABLE t ADD a uuid DEFAULT CASE WHEN f() IS NOT NULL THEN g() END UNIQUE",
                false,
                &[Act::Default, Act::Key],
            ),
            (
                "ALTER TABLE t ADD a int CHECK (a > 0) UNIQUE REFERENCES u",
                false,
                &[Act::Check, Act::Key, Act::Reference],
            ),
            ("ALTER TABLE checks /* unique */ ADD \"references\" text", false, &[]),
            ("CREATE INDEX ON t (a)", false, &[]),
            ("ALTER DOMAIN positive ADD CHECK (VALUE > 0)", false, &[]),
        ] {
            let acts = Acts::of(sql);
            assert_eq!((acts.are_several(), &acts.acts[..]), (are_several, wanted), "{sql}");
        }
    }

    #[test]
    fn a_column_with_numbers_is_known_by_its_type_or_identity() {
        for (sql, wanted) in [
            ("ALTER TABLE t ADD serial text DEFAULT 'serial'", &[Act::Default][..]),
            ("ALTER TABLE t ADD a text, ADD b int DEFAULT serial()", &[Act::Default]),
            ("ALTER TABLE serial ADD a bigint", &[]),
            ("ALTER TABLE t ADD a", &[]),
            ("ALTER TABLE t ADD serial SERIAL", &[Act::Numbered]),
            ("ALTER TABLE t ADD a int, ADD b bigserial UNIQUE", &[Act::Numbered, Act::Key]),
            ("ALTER TABLE t ADD COLUMN b bigserial PRIMARY KEY", &[Act::Numbered, Act::Key, Act::NewNotNull]),
            ("ALTER TABLE t ADD a serial2", &[Act::Numbered]),
            ("ALTER TABLE t ADD a int GENERATED BY DEFAULT AS IDENTITY", &[Act::Numbered]),
            ("ALTER TABLE t ADD COLUMN IF NOT EXISTS a int GENERATED ALWAYS AS IDENTITY", &[Act::Numbered]),
            ("ALTER TABLE t ADD stored int GENERATED ALWAYS AS (n + 1) STORED", &[Act::Rewriting]),
            ("ALTER TABLE t ADD stored stored DEFAULT f(1)", &[Act::Default]),
            ("ALTER TABLE t ADD a int GENERATED ALWAYS AS (n + 1) VIRTUAL", &[]),
            ("ALTER TABLE t ALTER a ADD GENERATED ALWAYS AS IDENTITY", &[]),
        ] {
            assert_eq!(Acts::of(sql).acts, wanted, "{sql}");
        }
    }

    /// Migrations that may run twice have ALTER TABLE in a DO.
    #[test]
    fn the_body_of_a_do_is_read() {
        let body = "BEGIN IF NOT EXISTS (SELECT) THEN ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0); END IF; ALTER TABLE u ADD b int; END";
        for sql in [
            format!("DO $$ {body} $$"),
            format!("DO LANGUAGE 'plpgsql' $it${body}$it$;"),
            format!("do '{body}'"),
        ] {
            let acts = Acts::of(&sql);
            assert_eq!((&acts.acts[..], acts.are_several()), (&[Act::Check][..], true), "{sql}");
        }
        assert_eq!(Acts::of("DO $$ BEGIN RAISE NOTICE 'ALTER TABLE t ADD CHECK (a > 0)'; END $$").acts, []);
        assert_eq!(Acts::of("DO").acts, []);
    }
}
