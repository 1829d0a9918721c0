//! The better way of an ALTER TABLE with several actions, as statements.

use std::vec::IntoIter;

use crate::find::Class;
use crate::objects::{self, Object, ObjectKind, Objects};
use crate::outcome::Effects;
use crate::parts::{Part, Parts, RuleKind, Several};

/// Its constraints are NOT VALID at first, and validated one by one; none if an action needs another way, or a name is not known.
pub(crate) fn written(found: &Effects, parts: &Parts<'_>) -> Option<Vec<String>> {
    let several = parts.several()?;
    // A foreign key of a partitioned table is NOT VALID only from PostgreSQL 18 on.
    if found.is_partitioned && parts.adds_foreign_key() {
        return None;
    }
    if found.is_unshared {
        return unshared(&several, &found.objects);
    }
    // If it writes the table anew, or builds an index, this way does not end that.
    let reads = matches!(found.class, Class::Scan | Class::ScanOfAnother | Class::SeveralTables);
    if reads { shared(&several, &found.objects) } else { None }
}

fn shared(several: &Several<'_>, objects: &Objects) -> Option<Vec<String>> {
    let mut names = Names::of(several, objects);
    let (mut now, mut later) = (Vec::new(), Vec::new());
    for (text, part) in &several.parts {
        match *part {
            Part::Rule { name, kind, rule } => {
                let name = names.next(name, kind)?;
                now.push(format!("ADD CONSTRAINT {name} {rule} NOT VALID"));
                later.push(name);
            }
            Part::Unchecked { kind } => {
                names.object(kind);
                now.push((*text).to_owned());
            }
            Part::Validate { name } => later.push(name.to_owned()),
            Part::Plain => now.push((*text).to_owned()),
            Part::Other => return None,
        }
    }
    ways(several, &[now], &later)
}

/// Of a table that no other session sees: only its foreign keys block others, at the tables that they reference. So these come last.
fn unshared(several: &Several<'_>, objects: &Objects) -> Option<Vec<String>> {
    let mut names = Names::of(several, objects);
    let (mut first, mut keys, mut later) = (Vec::new(), Vec::new(), Vec::new());
    for (text, part) in &several.parts {
        if let Part::Rule { name, kind: RuleKind::Reference, rule } = *part {
            let name = names.next(name, RuleKind::Reference)?;
            keys.push(format!("ADD CONSTRAINT {name} {rule} NOT VALID"));
            later.push(name);
        } else {
            if let Some(kind) = part.adds() {
                names.object(kind);
            }
            first.push((*text).to_owned());
        }
    }
    ways(several, &[first, keys], &later)
}

/// An ALTER TABLE of each list of actions, and then one for each constraint to validate; none if there is no such constraint.
fn ways(several: &Several<'_>, actions: &[Vec<String>], later: &[String]) -> Option<Vec<String>> {
    let only = if several.is_only { "ONLY " } else { "" };
    let alter = |action: String| format!("ALTER TABLE {only}{} {action}", several.table);
    let now = actions.iter().filter(|list| !list.is_empty()).map(|list| alter(list.join(", ")));
    let validate = later.iter().map(|name| alter(format!("VALIDATE CONSTRAINT {name}")));
    (!later.is_empty()).then(|| now.chain(validate).collect())
}

/// The constraints of the table, in the order of the actions.
struct Names<'a> {
    objects: &'a Objects,
    checks: IntoIter<&'a Object>,
    references: IntoIter<&'a Object>,
}

impl<'a> Names<'a> {
    fn of(several: &Several<'_>, objects: &'a Objects) -> Self {
        let made = |rule: RuleKind<'_>, kind: ObjectKind| {
            let number = several.parts.iter().filter(|(_, part)| part.adds() == Some(rule)).count();
            objects.last(kind, number).unwrap_or_default().into_iter()
        };
        Self {
            objects,
            checks: made(RuleKind::Check, ObjectKind::Check),
            references: made(RuleKind::Reference, ObjectKind::Reference),
        }
    }

    /// The constraint that the next action of this kind adds.
    fn object(&mut self, kind: RuleKind<'_>) -> Option<&'a Object> {
        match kind {
            RuleKind::Check => self.checks.next(),
            RuleKind::Reference => self.references.next(),
            RuleKind::NotNull(column) => self.objects.not_null(self.objects.table, column),
        }
    }

    /// The name of that constraint as SQL; none if the text has none, and the server's is not known.
    fn next(&mut self, name: Option<&str>, kind: RuleKind<'_>) -> Option<String> {
        let object = self.object(kind);
        objects::name(name, object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::better::tests::found;
    use crate::find::WorkKind;
    use crate::objects::tests::{made, not_null, of_table};

    fn of(sql: &str, class: Class, is_unshared: bool, is_partitioned: bool) -> Vec<String> {
        let objects = of_table(&[
            made(ObjectKind::Check, 11, 1, "t_x_check"),
            made(ObjectKind::Check, 12, 1, "t_check1"),
            made(ObjectKind::Reference, 13, 1, "t_a_fkey"),
            made(ObjectKind::Reference, 14, 1, "F g"),
            not_null(15, 1, "a", "t_a_not_null"),
        ]);
        let found = Effects { is_partitioned, is_unshared, objects, ..found(class, WorkKind::Scan) };
        written(&found, &Parts::of(sql)).unwrap_or_default()
    }

    #[test]
    fn constraints_are_not_valid_at_first_and_validated_one_by_one() {
        let scan = |sql: &str| of(sql, Class::Scan, false, false);
        assert_eq!(
            scan(
                "ALTER TABLE ONLY t ADD FOREIGN KEY (a) REFERENCES u ON DELETE CASCADE, ADD CONSTRAINT \"F g\" FOREIGN KEY (b) REFERENCES u;"
            ),
            [
                "ALTER TABLE ONLY t ADD CONSTRAINT t_a_fkey FOREIGN KEY (a) REFERENCES u ON DELETE CASCADE NOT VALID, \
                 ADD CONSTRAINT \"F g\" FOREIGN KEY (b) REFERENCES u NOT VALID",
                "ALTER TABLE ONLY t VALIDATE CONSTRAINT t_a_fkey",
                "ALTER TABLE ONLY t VALIDATE CONSTRAINT \"F g\"",
            ]
        );
        assert_eq!(
            scan(
                "ALTER TABLE s.a ADD COLUMN x int, ADD CHECK (x > 0), DROP CONSTRAINT old, ADD CHECK (y > 0)"
            ),
            [
                "ALTER TABLE s.a ADD COLUMN x int, ADD CONSTRAINT t_x_check CHECK (x > 0) NOT VALID, DROP CONSTRAINT old, \
                 ADD CONSTRAINT t_check1 CHECK (y > 0) NOT VALID",
                "ALTER TABLE s.a VALIDATE CONSTRAINT t_x_check",
                "ALTER TABLE s.a VALIDATE CONSTRAINT t_check1",
            ]
        );
        assert_eq!(
            scan("ALTER TABLE t ADD CHECK (x > 0) NOT VALID, ADD CHECK (x + y > 0)"),
            [
                "ALTER TABLE t ADD CHECK (x > 0) NOT VALID, ADD CONSTRAINT t_check1 CHECK (x + y > 0) NOT VALID",
                "ALTER TABLE t VALIDATE CONSTRAINT t_check1",
            ]
        );
        assert_eq!(
            scan("ALTER TABLE t ADD NOT NULL a, ADD CONSTRAINT c CHECK (a > 0) NOT VALID"),
            [
                "ALTER TABLE t ADD CONSTRAINT t_a_not_null NOT NULL a NOT VALID, ADD CONSTRAINT c CHECK (a > 0) NOT VALID",
                "ALTER TABLE t VALIDATE CONSTRAINT t_a_not_null",
            ]
        );
        assert_eq!(
            scan("ALTER TABLE t ADD a int, VALIDATE CONSTRAINT c"),
            ["ALTER TABLE t ADD a int", "ALTER TABLE t VALIDATE CONSTRAINT c"]
        );
        assert_eq!(scan("ALTER TABLE t ADD CHECK (a > 0), ALTER b SET NOT NULL"), [""; 0]);
        assert_eq!(scan("ALTER TABLE t ADD a int, DROP COLUMN b"), [""; 0]);
        let two = "ALTER TABLE t ADD CHECK (a > 0), ADD a uuid DEFAULT f()";
        assert_eq!(of(two, Class::Rewrite, false, false), [""; 0]);
        assert_eq!(of("ALTER TABLE t ADD a int, ADD CHECK (a > 0)", Class::Scan, false, true).len(), 2);
        let key = "ALTER TABLE t ADD a int, ADD FOREIGN KEY (b) REFERENCES u";
        assert_eq!(of(key, Class::Scan, false, true), [""; 0]);
    }

    #[test]
    fn of_a_table_that_nobody_else_sees_only_foreign_keys_come_later() {
        let sql = "ALTER TABLE t ALTER a SET NOT NULL, ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES u, ADD PRIMARY KEY (a)";
        assert_eq!(
            of(sql, Class::IndexBuild, true, false),
            [
                "ALTER TABLE t ALTER a SET NOT NULL, ADD PRIMARY KEY (a)",
                "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES u NOT VALID",
                "ALTER TABLE t VALIDATE CONSTRAINT f",
            ]
        );
        assert_eq!(
            of("ALTER TABLE t ADD UNIQUE (a), ADD CHECK (a > 0)", Class::IndexBuild, true, false),
            [""; 0]
        );
        // The server makes the key of the column first.
        let both = of(
            "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES u, ADD c int REFERENCES u",
            Class::Scan,
            true,
            false,
        );
        assert_eq!(both[1], "ALTER TABLE t ADD CONSTRAINT \"F g\" FOREIGN KEY (a) REFERENCES u NOT VALID");
    }

    /// Another name would leave another schema.
    #[test]
    fn nothing_is_written_if_a_name_is_not_known() {
        let found = Effects { objects: Objects::default(), ..found(Class::Scan, WorkKind::Scan) };
        let of = |sql: &str| written(&found, &Parts::of(sql)).unwrap_or_default();
        assert_eq!(of("ALTER TABLE t ADD CHECK (a > 0), ADD CONSTRAINT c CHECK (b > 0)"), [""; 0]);
        assert_eq!(of("ALTER TABLE t ADD a int, ADD CONSTRAINT c CHECK (b > 0)").len(), 2);
    }
}
