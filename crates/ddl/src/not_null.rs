//! NOT NULL for columns of a table with rows, without a scan that blocks readers or writers.

use crate::objects::{Object, Objects};

/// The first release whose NOT NULL is a constraint, which may be NOT VALID.
const NOT_VALID: u32 = 180_000;

/// By a CHECK constraint that is there for a while: SET NOT NULL believes it (tablecmds.c: `NotNullImpliedByRelConstraints`). `alter` makes a
/// statement of an action of ALTER TABLE.
pub(crate) fn by_check(
    alter: &dyn Fn(String) -> String,
    name: &str,
    columns: &[&str],
    is_only: bool,
) -> Vec<String> {
    // Tables that inherit from it would have to get the CHECK, too.
    let inherit = if is_only { " NO INHERIT" } else { "" };
    let of_each = |action: &dyn Fn(&str) -> String, between: &str| {
        columns.iter().map(|column| action(column)).collect::<Vec<_>>().join(between)
    };
    let check = of_each(&|column| format!("{column} IS NOT NULL"), " AND ");
    let set = of_each(&|column| format!("ALTER COLUMN {column} SET NOT NULL"), ", ");
    vec![
        alter(format!("ADD CONSTRAINT {name} CHECK ({check}){inherit} NOT VALID")),
        alter(format!("VALIDATE CONSTRAINT {name}")),
        alter(set),
        alter(format!("DROP CONSTRAINT {name}")),
    ]
}

/// For columns of a primary key of the table with this OID; nothing if there are none, and none if a name is not known. `own` begins the names
/// of constraints that are there for a while.
pub(crate) fn of_key(
    alter: &dyn Fn(String) -> String,
    (objects, table): (&Objects, u32),
    own: &str,
    columns: &[String],
    (is_only, version): (bool, u32),
) -> Option<Vec<String>> {
    if columns.is_empty() {
        return Some(Vec::new());
    }
    if version < NOT_VALID {
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        return Some(by_check(alter, &format!("{own}_not_null"), &columns, is_only));
    }
    let (mut add, mut validate) = (Vec::new(), Vec::new());
    for (constraint, column) in constraints(objects, table, columns)? {
        let name = constraint.sql();
        add.push(format!("ADD CONSTRAINT {name} NOT NULL {column} NOT VALID"));
        validate.push(format!("VALIDATE CONSTRAINT {name}"));
    }
    Some(if add.is_empty() { Vec::new() } else { vec![alter(add.join(", ")), alter(validate.join(", "))] })
}

/// For a partitioned table whose leaves have these constraints, so that the server scans nothing: else the key would give them names of its own.
/// Before PostgreSQL 18, NOT NULL has no name.
pub(crate) fn of_partitioned(
    alter: &dyn Fn(String) -> String,
    (objects, table): (&Objects, u32),
    columns: &[String],
    version: u32,
) -> Option<Vec<String>> {
    if version < NOT_VALID {
        return Some(Vec::new());
    }
    let constraints = constraints(objects, table, columns)?;
    let add =
        constraints.iter().map(|(one, column)| format!("ADD CONSTRAINT {} NOT NULL {column}", one.sql()));
    let add: Vec<String> = add.collect();
    Some(if add.is_empty() { Vec::new() } else { vec![alter(add.join(", "))] })
}

/// The constraints that the statement has made on columns of a table, each with its column; none if one is not known.
fn constraints<'a>(
    objects: &'a Objects,
    table: u32,
    columns: &'a [String],
) -> Option<Vec<(&'a Object, &'a str)>> {
    let mut found = Vec::new();
    for column in columns {
        let constraint = objects.not_null(table, column)?;
        if constraint.is_new {
            found.push((constraint, column.as_str()));
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::tests::{not_null, of_table};

    fn names(columns: &[&str]) -> Vec<String> {
        columns.iter().map(|column| (*column).to_owned()).collect()
    }

    #[test]
    fn columns_of_a_key_become_not_null_as_the_release_allows() {
        let objects =
            of_table(&[not_null(11, 1, "a", "t_a_not_null1"), not_null(12, 1, "B c", "t_B c_not_null")]);
        let of = |columns: &[&str], is_only, version| {
            let alter = |action: String| format!("ALTER TABLE s.t {action}");
            of_key(&alter, (&objects, 1), "own", &names(columns), (is_only, version))
        };
        assert_eq!(of(&[], false, 180_000).unwrap(), [""; 0]);
        assert_eq!(
            of(&["a", "\"B c\""], true, 170_000).unwrap(),
            [
                "ALTER TABLE s.t ADD CONSTRAINT own_not_null CHECK (a IS NOT NULL AND \"B c\" IS NOT NULL) NO INHERIT NOT VALID",
                "ALTER TABLE s.t VALIDATE CONSTRAINT own_not_null",
                "ALTER TABLE s.t ALTER COLUMN a SET NOT NULL, ALTER COLUMN \"B c\" SET NOT NULL",
                "ALTER TABLE s.t DROP CONSTRAINT own_not_null",
            ]
        );
        assert_eq!(
            of(&["a", "\"B c\""], false, 180_000).unwrap(),
            [
                "ALTER TABLE s.t ADD CONSTRAINT t_a_not_null1 NOT NULL a NOT VALID, \
                 ADD CONSTRAINT \"t_B c_not_null\" NOT NULL \"B c\" NOT VALID",
                "ALTER TABLE s.t VALIDATE CONSTRAINT t_a_not_null1, VALIDATE CONSTRAINT \"t_B c_not_null\"",
            ]
        );
        assert_eq!(of(&["b"], false, 180_000), None);
    }

    /// Of a partition, whose column was NOT NULL before.
    #[test]
    fn a_constraint_that_was_there_stays() {
        let old = Object { is_new: false, ..not_null(11, 1, "a", "own_name") };
        let objects = of_table(&[old, not_null(12, 1, "b", "t_b_not_null")]);
        let alter = |action: String| format!("ALTER TABLE t {action}");
        let key = of_key(&alter, (&objects, 1), "own", &names(&["a", "b"]), (false, 180_000)).unwrap();
        assert_eq!(key[1], "ALTER TABLE t VALIDATE CONSTRAINT t_b_not_null");
        let all = |version| of_partitioned(&alter, (&objects, 1), &names(&["a", "b"]), version).unwrap();
        assert_eq!(all(180_000), ["ALTER TABLE t ADD CONSTRAINT t_b_not_null NOT NULL b"]);
        assert_eq!(all(170_000), [""; 0]);
    }
}
