//! A statement that names an object which is not there.

use catalog::alike;
use fill::Skipped;

use super::left_out;
use super::rehearse::Table;
use crate::outcome::StatementOutcome;
use crate::schema::Schema;

/// The remedy of a missing object.
pub(crate) const REMEDY: &str = "add it to the schema, or to the migration before this statement";
/// The same, if the tables are those of a database or a model.
const OF_COPY: &str = "pgrig copies only the tables of the original, and the objects that they use. If the original has this object, give \
                       --schema-file with the output of pg_dump --schema-only";
/// Beginnings of the server's messages on objects of the whole server.
const OF_SERVER: [&str; 2] = ["role ", "tablespace "];

/// Completes the remedies of statements that name missing objects: a statement that failed before may be the reason. `skipped` are the
/// statements of the schema that were left out.
pub(crate) fn complete(schema: &Schema, skipped: &[Skipped], statements: &mut [StatementOutcome]) {
    left_out::explain(skipped, &schema.origin, statements);
    let of_empty = format!("{} is empty: give a file that creates the tables", schema.origin);
    let remedy = if schema.is_copy() {
        OF_COPY
    } else if schema.is_empty() {
        of_empty.as_str()
    } else {
        REMEDY
    };
    let mut before = Vec::new();
    for one in statements {
        let Some(failed) = &mut one.failed else { continue };
        let is_of_server = OF_SERVER.iter().any(|word| failed.message.starts_with(word));
        if failed.remedy.as_deref() == Some(REMEDY) && !is_of_server {
            failed.remedy = Some(following(&before, remedy));
        }
        before.push(one.number);
    }
}

/// Adds the tables whose names are like that of a missing table to the remedies.
pub(crate) fn name_alike<'t>(tables: impl Iterator<Item = &'t Table>, statements: &mut [StatementOutcome]) {
    let (names, shown): (Vec<String>, Vec<String>) =
        tables.map(|table| (table.name.clone(), table.shown_in_full())).unzip();
    for failed in statements.iter_mut().filter_map(|one| one.failed.as_mut()) {
        let Some(name) = relation(&failed.message) else { continue };
        let near = alike(name, &names, shown.clone());
        if let (Some(remedy), false) = (&mut failed.remedy, near.is_empty()) {
            *remedy = format!("did you mean {}? Otherwise: {remedy}", near.join(" or "));
        }
    }
}

/// The name, without its schema, of the table that the server does not find (namespace.c: `RangeVarGetRelidExtended`).
fn relation(message: &str) -> Option<&str> {
    let name = message.strip_prefix("relation \"")?.strip_suffix("\" does not exist")?;
    Some(name.rsplit_once('.').map_or(name, |(_, name)| name))
}

/// The remedy of a missing object after the failures of the statements with these numbers, which may have to make it.
fn following(before: &[usize], remedy: &str) -> String {
    let numbers: Vec<String> = before.iter().map(usize::to_string).collect();
    let statements = match &numbers[..] {
        [] => return remedy.to_owned(),
        [one] => format!("statement {one}"),
        [first @ .., last] => format!("statements {} and {last}", first.join(", ")),
    };
    format!(
        "this failure may follow from the failure of {statements}: first correct {statements}. If the object is then still missing: \
         {remedy}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_names_a_missing_table_with_or_without_its_schema() {
        for message in ["relation \"ordrs\" does not exist", "relation \"public.ordrs\" does not exist"] {
            assert_eq!(relation(message), Some("ordrs"));
        }
        assert_eq!(relation("column \"a\" of relation \"ordrs\" does not exist"), None);
    }

    #[test]
    fn a_failure_before_is_told() {
        assert_eq!(following(&[], "add it"), "add it");
        let one = following(&[2], "add it");
        assert!(one.contains("the failure of statement 2: first correct statement 2. "), "{one}");
        assert!(one.ends_with("then still missing: add it"), "{one}");
        assert!(following(&[2, 3, 5], "add it").contains("statements 2, 3 and 5: "));
    }
}
