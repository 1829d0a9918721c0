//! ALTER TABLE with several actions.

use super::acts::of_action;
use super::{Act, Action, Parts, RuleKind};

/// The parts of an ALTER TABLE with several actions.
pub(crate) struct Several<'a> {
    /// The table.
    pub(crate) table: &'a str,
    /// Whether tables that inherit from it stay as they are.
    pub(crate) is_only: bool,
    /// The actions, each with its text.
    pub(crate) parts: Vec<(&'a str, Part<'a>)>,
}

/// An action, by the way in which it can be made without a scan that blocks others.
#[derive(Clone, Copy)]
pub(crate) enum Part<'a> {
    /// A constraint that may be NOT VALID at first.
    Rule { name: Option<&'a str>, kind: RuleKind<'a>, rule: &'a str },
    /// A constraint whose rows are not checked.
    Unchecked { kind: RuleKind<'a> },
    /// VALIDATE CONSTRAINT of this one.
    Validate { name: &'a str },
    /// It reads no rows, if the statement neither writes the table anew nor builds an index.
    Plain,
    /// It needs another way.
    Other,
}

impl<'a> Part<'a> {
    /// The kind of the constraint that it adds; none for other actions.
    pub(crate) fn adds(self) -> Option<RuleKind<'a>> {
        match self {
            Self::Rule { kind, .. } | Self::Unchecked { kind } => Some(kind),
            Self::Validate { .. } | Self::Plain | Self::Other => None,
        }
    }
}

impl<'a> Parts<'a> {
    /// The parts of an ALTER TABLE with several actions; none for other statements.
    pub(crate) fn several(&self) -> Option<Several<'a>> {
        let (table, is_only) = self.altered()?;
        let actions = self.actions(0);
        let part = |(from, to): (usize, usize)| (self.slice(from, to), self.part(from, to));
        (actions.len() > 1).then(|| Several {
            table,
            is_only,
            parts: actions.into_iter().map(part).collect(),
        })
    }

    /// Whether ALTER TABLE adds a foreign key of the table, with a check of the rows.
    pub(crate) fn adds_foreign_key(&self) -> bool {
        let is_key = |(from, to)| matches!(self.part(from, to), Part::Rule { kind: RuleKind::Reference, .. });
        self.actions(0).into_iter().any(is_key)
    }

    fn part(&self, from: usize, to: usize) -> Part<'a> {
        if self.begins(from, &["validate", "constraint"]) {
            return self.name(from + 2).map_or(Part::Other, |name| Part::Validate { name });
        }
        match self.action(from, to) {
            Some(Action::Rule { kind, .. }) if self.is_unchecked(from, to) => Part::Unchecked { kind },
            Some(Action::Rule { name, kind, rule }) => Part::Rule { name, kind, rule },
            _ if self.is_plain(from, to) => Part::Plain,
            _ => Part::Other,
        }
    }

    /// Of an action that is no constraint to validate. REFERENCES of a new column makes the server check rows if the statement also has a
    /// foreign key of the table (parse_utilcmd.c: `transformAlterTableStmt`).
    fn is_plain(&self, from: usize, to: usize) -> bool {
        if self.begins(from, &["alter", "constraint"]) {
            return false;
        }
        let acts = of_action(self, from, to);
        let has_default = acts.contains(&Act::Default);
        acts.iter().all(|act| match act {
            Act::Default | Act::Rewriting => true,
            Act::NewNotNull => has_default,
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_action_has_its_way() {
        let of = |actions: &str| -> Option<String> {
            let sql = format!("ALTER TABLE IF EXISTS ONLY s.\"T t\" {actions};");
            let parts = Parts::of(&sql);
            let several = parts.several()?;
            assert_eq!((several.table, several.is_only), ("s.\"T t\"", true));
            let name = |(_, part): &(&str, Part<'_>)| match part {
                Part::Rule { .. } => 'r',
                Part::Unchecked { .. } => 'u',
                Part::Validate { .. } => 'v',
                Part::Plain => 'p',
                Part::Other => 'o',
            };
            Some(several.parts.iter().map(name).collect())
        };
        for (actions, wanted) in [
            ("ADD FOREIGN KEY (a, b) REFERENCES u (a, b), ADD CONSTRAINT c CHECK (a IN (1, 2))", Some("rr")),
            ("ADD CHECK (a > 0) NOT VALID, VALIDATE CONSTRAINT c", Some("uv")),
            ("ADD a int, ADD COLUMN IF NOT EXISTS b text DEFAULT f(1, 2) NOT NULL", Some("pp")),
            ("DROP COLUMN a, DROP CONSTRAINT b, ALTER c SET DEFAULT 1, ALTER d DROP NOT NULL", Some("pppp")),
            ("OWNER TO me, ENABLE ROW LEVEL SECURITY, SET (fillfactor = 90)", Some("ppp")),
            ("ADD UNIQUE USING INDEX i, ADD PRIMARY KEY USING INDEX j", Some("po")),
            ("ADD UNIQUE (a), ADD PRIMARY KEY (a), ALTER a SET NOT NULL, ALTER a TYPE text", Some("oooo")),
            (
                "ADD a int CHECK (a > 0), ADD b int REFERENCES u, ADD c serial, ADD d int NOT NULL",
                Some("oooo"),
            ),
            ("ALTER CONSTRAINT c ENFORCED, ADD a int UNIQUE", Some("oo")),
            ("ADD CHECK (a > 0)", None),
            ("RENAME a TO b", None),
        ] {
            assert_eq!(of(actions).as_deref(), wanted, "{actions}");
        }
    }

    #[test]
    fn a_foreign_key_of_the_table_is_found_beside_other_actions() {
        for (sql, wanted) in [
            ("ALTER TABLE t ADD a int, ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES u", true),
            ("ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES u", true),
            ("ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES u NOT VALID, ADD UNIQUE (a)", false),
            ("ALTER TABLE t ADD a int REFERENCES u", false),
            ("CREATE INDEX ON t (a)", false),
        ] {
            assert_eq!(Parts::of(sql).adds_foreign_key(), wanted, "{sql}");
        }
    }
}
