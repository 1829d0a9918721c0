//! Foreign keys of a table, which the server looks up while rows go through it: of pages that were written past it, they
//! are proved before the commit, all rows at once.
//!
//! The ACCESS EXCLUSIVE lock on the table makes the proof hold: whoever deletes a referenced row has to look into this
//! table, and waits there until the rows are committed, or has done so before the lock was granted.

use serde::Deserialize;

use super::Failure;
use server::Session;
use server::quote::identifier;

/// An enforced foreign key.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ForeignKey {
    pub(super) name: String,
    /// The referenced table as it stands in FROM.
    referenced: String,
    /// MATCH FULL: either no column is NULL or all are.
    match_full: bool,
    /// Whether a range of time is referenced.
    pub(super) has_period: bool,
    columns: Vec<KeyColumn>,
}

#[derive(Clone, Debug, Deserialize)]
struct KeyColumn {
    name: String,
    /// Its counterpart.
    referenced: String,
    /// That both are equal: `r` is the referenced table, `f` this one.
    equal: String,
    /// Whether both are integers.
    is_integer: bool,
}

/// Proves all foreign keys of the table with this qualified name.
///
/// # Errors
/// Which key a row breaks, and the row.
pub(super) async fn proved(session: &Session, table: &str, keys: &[ForeignKey]) -> Result<(), Failure> {
    if keys.is_empty() {
        return Ok(());
    }
    for key in keys {
        let broken = match key.interval(session).await? {
            Some((least, greatest)) => key.beyond(least, greatest),
            None => key.missing(),
        };
        let count = format!("SELECT count(*) AS broken FROM {table} f WHERE {broken}");
        let count: i64 = session.row(&count, &[]).await?.get("broken");
        if count == 0 {
            continue;
        }
        let one = format!("SELECT ROW(f.*)::text AS row FROM {table} f WHERE {broken} LIMIT 1");
        let row = session.row(&one, &[]).await?.get("row");
        return Err(Failure::Broken { table: table.to_owned(), constraints: key.name.clone(), row });
    }
    Ok(())
}

impl ForeignKey {
    /// Of a single integer column the least and greatest referenced value, if every value between them is there.
    async fn interval(&self, session: &Session) -> Result<Option<(i64, i64)>, Failure> {
        let [column] = &*self.columns else { return Ok(None) };
        if !column.is_integer {
            return Ok(None);
        }
        // The referenced column is unique: that is what a foreign key wants.
        let query = format!(
            "SELECT min({column})::bigint AS least, max({column})::bigint AS greatest, \
                    count({column}) = max({column})::numeric - min({column}) + 1 AS is_whole \
               FROM {}",
            self.referenced,
            column = identifier(&column.referenced)
        );
        let row = session.row(&query, &[]).await?;
        let is_whole: Option<bool> = row.get("is_whole");
        Ok(is_whole.unwrap_or(false).then(|| (row.get("least"), row.get("greatest"))))
    }

    /// Rows outside the interval.
    fn beyond(&self, least: i64, greatest: i64) -> String {
        let column = identifier(&self.columns[0].name);
        format!("(f.{column} < {least} OR f.{column} > {greatest})")
    }

    /// Rows that reference nothing that is there.
    fn missing(&self) -> String {
        let equal: Vec<&str> = self.columns.iter().map(|column| column.equal.as_str()).collect();
        let equal = equal.join(" AND ");
        let columns: Vec<String> =
            self.columns.iter().map(|column| format!("f.{}", identifier(&column.name))).collect();
        let columns = columns.join(", ");
        let concerned = if self.match_full {
            format!("num_nonnulls({columns}) > 0")
        } else {
            format!("num_nulls({columns}) = 0")
        };
        format!("{concerned} AND NOT EXISTS (SELECT FROM {} r WHERE {equal})", self.referenced)
    }
}
