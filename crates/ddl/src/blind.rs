//! Tables of an original whose statistics the role does not see (`pg_stats`): the copy has guesses in the place of their values.

use connect::{ConnectError, Connection};
use model::{Facts, TableFacts};
use server::quote::shown;

/// Tables that a sentence names.
const NAMED: usize = 8;
/// The consequence.
const GUESSED: &str = "The values there are guesses, and so are the numbers of rows that statements find or change, and with them classes, times, WAL and forecasts";

/// A sentence for each reason; nothing if the role sees all of them.
pub(crate) async fn warnings(connection: &Connection, facts: &Facts) -> Result<Vec<String>, ConnectError> {
    let (secured, denied) = hidden(facts);
    if secured.is_empty() && denied.is_empty() {
        return Ok(Vec::new());
    }
    let query = "SELECT pg_catalog.quote_ident(current_user) AS role";
    let role: String = match connection.client.query_one(query, &[]).await {
        Ok(row) => row.get("role"),
        Err(error) => return Err(connection.explain(error).await),
    };
    let of_denied = (!denied.is_empty()).then(|| {
        format!(
            "role {role} may not read {}, and so not their statistics. {GUESSED}: run GRANT SELECT ON these tables TO {role}, connect as \
             another role, or give --column SCHEMA.TABLE.COLUMN=SPEC",
            listed(&denied)
        )
    });
    let of_secured = (!secured.is_empty()).then(|| {
        format!(
            "role {role} can read no statistics of {}, because row-level security applies to it there. {GUESSED}: connect as the owner of \
             these tables, or as a role with BYPASSRLS, or give --column SCHEMA.TABLE.COLUMN=SPEC",
            listed(&secured)
        )
    });
    Ok(of_denied.into_iter().chain(of_secured).collect())
}

/// The tables with rows whose statistics row-level security hides, and those that have columns which the role may not read; of these the columns,
/// unless they are all.
fn hidden(facts: &Facts) -> (Vec<String>, Vec<String>) {
    let lacks = |table: &&TableFacts| {
        table.rows > 0 && table.columns.iter().any(|column| column.statistics.is_none())
    };
    let lacking = || facts.tables.iter().filter(lacks);
    let secured = lacking().filter(|table| table.row_security).map(|table| table.sql_name.clone());
    let denied = lacking().filter(|table| !table.row_security && !table.denied.is_empty());
    let with_columns = |table: &TableFacts| {
        if table.denied.len() == table.columns.len() {
            return table.sql_name.clone();
        }
        let columns: Vec<String> = table.denied.iter().map(|column| shown(column)).collect();
        format!("{} ({})", table.sql_name, columns.join(", "))
    };
    (secured.collect(), denied.map(with_columns).collect())
}

fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_some_of_many_tables_are_named() {
        let names: Vec<String> = (1..=NAMED + 3).map(|number| format!("t{number}")).collect();
        assert_eq!(listed(&names[..2]), "t1, t2");
        assert!(listed(&names).ends_with("t8 and 3 more"), "{}", listed(&names));
    }
}
