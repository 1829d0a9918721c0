//! Databases whose names are like that of a missing one.

use catalog::alike;
use connect::{ConnectError, SqlState, Target};
use server::quote::shell_word;

/// The databases that a user may mean.
const DATABASES: &str =
    "SELECT datname FROM pg_catalog.pg_database WHERE datallowconn AND NOT datistemplate ORDER BY datname";

/// The database in which the others are looked up.
const MAINTENANCE: &str = "postgres";

/// The error of a missing database, with the databases whose names are like its own. Other errors stay as they are.
pub(crate) async fn with_databases(target: &Target, error: ConnectError) -> ConnectError {
    if error.sqlstate() != Some(&SqlState::UNDEFINED_DATABASE) {
        return error;
    }
    if let Some(name) = unquoted(target.dbname()) {
        return error.with_plain_name(&shell_word(&name));
    }
    let names = names(target).await.unwrap_or_default();
    let shown = names.iter().map(|name| shell_word(name)).collect();
    let near = alike(target.dbname(), &names, shown);
    if near.is_empty() { error } else { error.with_alike(&near.join(" or ")) }
}

/// The names of the server's databases; none if the role may not open the database in which they are looked up.
async fn names(target: &Target) -> Option<Vec<String>> {
    let connection = target.clone().with_database(MAINTENANCE).connect().await.ok()?;
    let rows = connection.client.query(DATABASES, &[]).await.ok();
    connection.close().await;
    Some(rows?.iter().map(|row| row.get(0)).collect())
}

/// A name without the quotes in which SQL writes it.
fn unquoted(name: &str) -> Option<String> {
    let inner = name.strip_prefix('"')?.strip_suffix('"').filter(|inner| !inner.is_empty())?;
    Some(inner.replace("\"\"", "\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_in_quotes_have_quotes_to_leave_out() {
        for (name, plain) in [
            ("\"UPPER\"", Some("UPPER")),
            ("\"a\"\"b\"", Some("a\"b")),
            ("shop", None),
            ("\"", None),
            ("\"\"", None),
        ] {
            assert_eq!(unquoted(name).as_deref(), plain, "{name}");
        }
    }
}
