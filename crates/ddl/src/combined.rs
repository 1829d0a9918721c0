//! The better way of an ALTER TABLE with several actions, as statements.

use crate::find::Class;
use crate::not_null;
use crate::outcome::Effects;
use crate::parts::{Part, Parts, RuleKind, Several};

/// Its constraints are NOT VALID at first, and validated one by one; none if an action needs another way. The names of constraints without
/// one begin with `own`.
pub(crate) fn written(found: &Effects, parts: &Parts<'_>, own: &str) -> Option<Vec<String>> {
    let several = parts.several()?;
    // A foreign key of a partitioned table is NOT VALID only from PostgreSQL 18 on.
    if found.is_partitioned && parts.adds_foreign_key() {
        return None;
    }
    if found.is_unshared {
        return unshared(&several, own);
    }
    // If it writes the table anew, or builds an index, this way does not end that.
    let reads = matches!(found.class, Class::Scan | Class::ScanOfAnother | Class::SeveralTables);
    if reads { shared(&several, own) } else { None }
}

fn shared(several: &Several<'_>, own: &str) -> Option<Vec<String>> {
    let mut names = Names { several, own, unnamed: 0 };
    let (mut now, mut later) = (Vec::new(), Vec::new());
    for (text, part) in &several.parts {
        match *part {
            Part::Rule { name, kind, rule } => {
                let name = names.next(name, kind);
                now.push(format!("ADD CONSTRAINT {name} {rule} NOT VALID"));
                later.push(name);
            }
            Part::Validate { name } => later.push(name.to_owned()),
            Part::Plain => now.push((*text).to_owned()),
            Part::Other => return None,
        }
    }
    ways(several, &[now], &later)
}

/// Of a table that no other session sees: only its foreign keys block others, at the tables that they reference. So these come last.
fn unshared(several: &Several<'_>, own: &str) -> Option<Vec<String>> {
    let mut names = Names { several, own, unnamed: 0 };
    let (mut first, mut keys, mut later) = (Vec::new(), Vec::new(), Vec::new());
    for (text, part) in &several.parts {
        if let Part::Rule { name, kind: RuleKind::Reference, rule } = *part {
            let name = names.next(name, RuleKind::Reference);
            keys.push(format!("ADD CONSTRAINT {name} {rule} NOT VALID"));
            later.push(name);
        } else {
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

/// Names of constraints.
struct Names<'a> {
    several: &'a Several<'a>,
    own: &'a str,
    unnamed: usize,
}

impl Names<'_> {
    fn next(&mut self, name: Option<&str>, kind: RuleKind<'_>) -> String {
        if let Some(name) = name {
            return name.to_owned();
        }
        if let RuleKind::NotNull(column) = kind
            && let Some(usual) = not_null::usual_name(self.several.table, column)
        {
            return usual;
        }
        self.unnamed += 1;
        match self.unnamed {
            1 => self.own.to_owned(),
            number => format!("{}_{number}", self.own),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::better::tests::found;
    use crate::find::WorkKind;

    fn of(sql: &str, class: Class, is_unshared: bool, is_partitioned: bool) -> Vec<String> {
        let found = Effects { is_partitioned, is_unshared, ..found(class, WorkKind::Scan) };
        written(&found, &Parts::of(sql), "own").unwrap_or_default()
    }

    #[test]
    fn constraints_are_not_valid_at_first_and_validated_one_by_one() {
        let scan = |sql: &str| of(sql, Class::Scan, false, false);
        assert_eq!(
            scan(
                "ALTER TABLE ONLY t ADD FOREIGN KEY (a) REFERENCES u ON DELETE CASCADE, ADD CONSTRAINT \"F g\" FOREIGN KEY (b) REFERENCES u;"
            ),
            [
                "ALTER TABLE ONLY t ADD CONSTRAINT own FOREIGN KEY (a) REFERENCES u ON DELETE CASCADE NOT VALID, \
                 ADD CONSTRAINT \"F g\" FOREIGN KEY (b) REFERENCES u NOT VALID",
                "ALTER TABLE ONLY t VALIDATE CONSTRAINT own",
                "ALTER TABLE ONLY t VALIDATE CONSTRAINT \"F g\"",
            ]
        );
        assert_eq!(
            scan(
                "ALTER TABLE s.a ADD COLUMN x int, ADD CHECK (x > 0), DROP CONSTRAINT old, ADD CHECK (y > 0)"
            ),
            [
                "ALTER TABLE s.a ADD COLUMN x int, ADD CONSTRAINT own CHECK (x > 0) NOT VALID, DROP CONSTRAINT old, \
                 ADD CONSTRAINT own_2 CHECK (y > 0) NOT VALID",
                "ALTER TABLE s.a VALIDATE CONSTRAINT own",
                "ALTER TABLE s.a VALIDATE CONSTRAINT own_2",
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
    }
}
