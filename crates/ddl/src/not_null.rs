//! NOT NULL for columns of a table with rows, without a scan that blocks readers or writers.

/// The first release whose NOT NULL may be NOT VALID.
const NOT_VALID: u32 = 180_000;
/// Most bytes of a name.
const NAME: usize = 63;

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

/// For columns of a primary key of the table; nothing if there are none. New names begin with `own`, unless the server would choose another.
pub(crate) fn of_key(
    alter: &dyn Fn(String) -> String,
    (table, own): (&str, &str),
    columns: &[String],
    (is_only, version): (bool, u32),
) -> Vec<String> {
    if columns.is_empty() {
        return Vec::new();
    }
    if version < NOT_VALID {
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        return by_check(alter, &format!("{own}_not_null"), &columns, is_only);
    }
    let (mut add, mut validate) = (Vec::new(), Vec::new());
    for (number, column) in (1..).zip(columns) {
        let name = usual_name(table, column).unwrap_or_else(|| format!("{own}_not_null_{number}"));
        add.push(format!("ADD CONSTRAINT {name} NOT NULL {column} NOT VALID"));
        validate.push(format!("VALIDATE CONSTRAINT {name}"));
    }
    vec![alter(add.join(", ")), alter(validate.join(", "))]
}

/// The name that the server gives to NOT NULL of a column, if it is simple (indexcmds.c: `makeObjectName`).
pub(crate) fn usual_name(table: &str, column: &str) -> Option<String> {
    let table = table.rsplit('.').next().unwrap_or(table).trim();
    let name = format!("{table}_{column}_not_null");
    let is_simple = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (is_simple && name.len() <= NAME).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_a_key_become_not_null_as_the_release_allows() {
        let of = |table: &str, columns: &[&str], is_only, version| {
            let columns: Vec<String> = columns.iter().map(|column| (*column).to_owned()).collect();
            let alter = |action: String| format!("ALTER TABLE {table} {action}");
            of_key(&alter, (table, "own"), &columns, (is_only, version))
        };
        assert_eq!(of("t", &[], false, 180_000), [""; 0]);
        assert_eq!(
            of("t", &["a", "\"B c\""], true, 170_000),
            [
                "ALTER TABLE t ADD CONSTRAINT own_not_null CHECK (a IS NOT NULL AND \"B c\" IS NOT NULL) NO INHERIT NOT VALID",
                "ALTER TABLE t VALIDATE CONSTRAINT own_not_null",
                "ALTER TABLE t ALTER COLUMN a SET NOT NULL, ALTER COLUMN \"B c\" SET NOT NULL",
                "ALTER TABLE t DROP CONSTRAINT own_not_null",
            ]
        );
        assert_eq!(
            of("s.t", &["a", "\"B c\""], false, 180_000),
            [
                "ALTER TABLE s.t ADD CONSTRAINT t_a_not_null NOT NULL a NOT VALID, ADD CONSTRAINT own_not_null_2 NOT NULL \"B c\" NOT VALID",
                "ALTER TABLE s.t VALIDATE CONSTRAINT t_a_not_null, VALIDATE CONSTRAINT own_not_null_2",
            ]
        );
    }
}
