//! Reads the locale of a database.

use futures_util::future::LocalBoxFuture;
use model::{Locale, LocaleProvider};
use tokio_postgres::{Client, Error, Row};

/// The query. $1: name of the database; NULL for that of the session.
const QUERY: &str = include_str!("locale.sql");

/// The locale of the database of this name, or of the client's own.
///
/// # Errors
/// If the server fails, or has no database of this name.
pub fn locale<'a>(
    client: &'a Client,
    database: Option<&'a str>,
) -> LocalBoxFuture<'a, Result<Locale, Error>> {
    Box::pin(async move { Ok(of(&client.query_one(QUERY, &[&database]).await?)) })
}

/// Of a row of the query.
fn of(row: &Row) -> Locale {
    Locale {
        provider: match row.get::<_, &str>("provider") {
            "i" => LocaleProvider::Icu,
            "b" => LocaleProvider::Builtin,
            _ => LocaleProvider::Libc,
        },
        collate: row.get("collate"),
        ctype: row.get("ctype"),
        name: row.get("locale"),
        rules: row.get("rules"),
    }
}
