//! Tables, sequences and large objects that the role of the connection may not read, or not all rows: pg_dump refuses them, and base backups are
//! compared without them.

use connect::ConnectError;
use measure::human::counted;
use server::Session;
use server::quote::{qualified, shown};

use super::source::Table;

/// Objects that a text names.
const NAMED: usize = 3;

/// Why this role can make no dump, with the remedy.
pub(super) async fn no_dump(session: &Session, role: &str) -> Result<Option<String>, ConnectError> {
    let (mut forbidden, mut filtered) = (Vec::new(), Vec::new());
    for row in session.rows(include_str!("../sql/hidden.sql"), &[]).await? {
        let list = if row.get("permitted") { &mut filtered } else { &mut forbidden };
        list.push(qualified(row.get("schema"), row.get("name")));
    }
    let objects: i64 = session.row(include_str!("../sql/hidden_large.sql"), &[]).await?.get("objects");
    Ok(reasons(&forbidden, &filtered, objects.unsigned_abs(), &shown(role)))
}

/// All reasons, so that none appears once another one is remedied.
fn reasons(forbidden: &[String], filtered: &[String], objects: u64, role: &str) -> Option<String> {
    let mut reasons = Vec::new();
    if !forbidden.is_empty() {
        reasons.push(format!(
            "role {role} may not read {}: GRANT SELECT on them and USAGE on their schemas, or connect as a superuser",
            named(forbidden)
        ));
    }
    if !filtered.is_empty() {
        reasons.push(format!(
            "row-level security holds for role {role} in {}, so pg_dump refuses to read them: run ALTER ROLE {role} BYPASSRLS, or connect as a \
             superuser",
            named(filtered)
        ));
    }
    if objects > 0 {
        reasons.push(format!(
            "role {role} may not read {}: GRANT SELECT ON LARGE OBJECT … for each of them, or connect as a superuser",
            counted(objects, "large object")
        ));
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Names the tables that were not compared; none if all were.
pub(super) fn note(tables: &[Table]) -> Option<String> {
    let names: Vec<&str> =
        tables.iter().filter(|table| table.is_hidden).map(|table| table.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "pgrig did not compare the rows of these tables, because the role may not read all of their rows: {}. To compare them, \
             connect as a superuser, or as a role with BYPASSRLS and SELECT",
            named(&names)
        )
    })
}

/// The first names, and the number of the others.
pub(super) fn named(names: &[impl AsRef<str>]) -> String {
    let first: Vec<&str> = names.iter().take(NAMED).map(AsRef::as_ref).collect();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_remedy() {
        let tables: Vec<String> = (1..=5).map(|number| format!("t{number}")).collect();
        assert_eq!(reasons(&[], &[], 0, "app"), None);
        let said = reasons(&tables, &tables, 2, "app").unwrap();
        assert!(said.contains("may not read t1, t2, t3 and 2 more: GRANT SELECT"), "{said}");
        assert!(
            said.contains("; row-level security") && said.contains("; role app may not read 2 large objects")
        );
        let said = reasons(&[], &tables[..1], 0, "app").unwrap();
        assert!(
            said.contains("holds for role app in t1, so") && said.contains("ALTER ROLE app BYPASSRLS"),
            "{said}"
        );
    }
}
