//! Checks the foreign keys of rows for which the server does not check them: rows written as pages,
//! or loaded without triggers. All rows are checked at once, before their commit.

use serde::Deserialize;

use connect::ConnectError;
use server::Session;
use server::quote::identifier;

/// From this ratio of referenced rows to checked rows on, looking each one up costs less than
/// reading all referenced rows.
const MANY: u64 = 8;

/// An enforced foreign key.
#[derive(Clone, Debug, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "facts that are independent of each other")]
pub(crate) struct ForeignKey {
    pub(crate) name: String,
    /// The referenced table as it stands in FROM.
    pub(crate) referenced: String,
    /// Estimated number of its rows; none if there is no estimate.
    referenced_rows: Option<u64>,
    /// Whether the table references itself.
    pub(crate) is_self: bool,
    /// Whether a table that this is a partition of has the same key, and it is enforced.
    pub(crate) is_inherited: bool,
    /// Whether the referenced table references this one, directly or by way of others.
    pub(crate) is_circular: bool,
    /// Whether the role may lock the referenced table and read all of it.
    pub(crate) may_prove: bool,
    /// MATCH FULL: either no column is NULL or all are.
    match_full: bool,
    /// Whether a range of time is referenced.
    pub(crate) has_period: bool,
    columns: Vec<KeyColumn>,
}

#[derive(Clone, Debug, Deserialize)]
struct KeyColumn {
    name: String,
    /// The referenced column.
    referenced: String,
    /// The condition that the two columns are equal: `r` is the referenced table, `f` this one.
    equal: String,
    /// Whether both columns are integers.
    is_integer: bool,
}

/// Rows that are to be checked.
#[derive(Debug)]
pub(crate) struct RowsToCheck<'a> {
    /// The table's qualified name.
    pub(crate) table: &'a str,
    /// The rows to check, a condition on `f`.
    pub(crate) condition: &'a str,
    /// Number of the rows.
    pub(crate) count: u64,
}

/// A row that breaks a foreign key.
#[derive(Debug)]
pub(crate) struct Broken {
    /// The foreign key's name.
    pub(crate) constraint: String,
    /// The row as text.
    pub(crate) row: String,
}

/// One of the rows that violate one of the keys, if there is one. The caller must keep others from
/// changing the referenced rows until the commit.
pub(crate) async fn broken(
    session: &Session,
    rows: &RowsToCheck<'_>,
    keys: &[ForeignKey],
) -> Result<Option<Broken>, ConnectError> {
    let RowsToCheck { table, condition, .. } = rows;
    let (mut intervals, mut others) = (Vec::new(), Vec::new());
    for key in keys {
        match key.interval(session, rows.count).await? {
            Some((least, greatest)) => intervals.push((key, key.beyond(least, greatest))),
            None => others.push((key, key.missing())),
        }
    }
    // One look at all rows for all intervals.
    let all: Vec<&str> = intervals.iter().map(|(_, beyond)| beyond.as_str()).collect();
    let is_within = all.is_empty() || count(session, rows, &format!("({})", all.join(" OR "))).await? == 0;
    let to_look_at = if is_within { others } else { [intervals, others].concat() };
    for (key, broken) in to_look_at {
        // The server knows little of tables that have just been loaded, and looks rows up one by one where a hash join is
        // ten times as fast.
        let nested = if key.has_many(rows.count) { "on" } else { "off" };
        session.run(&format!("SET LOCAL enable_nestloop = {nested}")).await?;
        if count(session, rows, &broken).await? > 0 {
            let one =
                format!("SELECT ROW(f.*)::text AS row FROM {table} f WHERE {condition} AND {broken} LIMIT 1");
            let row = session.row(&one, &[]).await?.get("row");
            return Ok(Some(Broken { constraint: key.name.clone(), row }));
        }
    }
    Ok(None)
}

/// Number of the rows that violate a key. The server uses parallel workers for a count, but not for
/// a search for one row.
async fn count(session: &Session, rows: &RowsToCheck<'_>, broken: &str) -> Result<i64, ConnectError> {
    let RowsToCheck { table, condition, .. } = rows;
    let query = format!("SELECT count(*) AS broken FROM {table} f WHERE {condition} AND {broken}");
    Ok(session.row(&query, &[]).await?.get("broken"))
}

impl ForeignKey {
    /// The least and greatest referenced value of a single integer column, if every value between
    /// them exists. None also if finding that out costs more than looking up `rows` rows.
    async fn interval(&self, session: &Session, rows: u64) -> Result<Option<(i64, i64)>, ConnectError> {
        let [column] = &*self.columns else { return Ok(None) };
        if !column.is_integer || self.has_many(rows) {
            return Ok(None);
        }
        // The referenced column is unique: a foreign key requires it.
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

    /// Whether looking up so many rows costs less than reading all referenced ones.
    fn has_many(&self, rows: u64) -> bool {
        self.referenced_rows.is_some_and(|referenced| referenced > rows.saturating_mul(MANY))
    }

    /// Condition of rows outside the interval.
    fn beyond(&self, least: i64, greatest: i64) -> String {
        let column = identifier(&self.columns[0].name);
        format!("(f.{column} < {least} OR f.{column} > {greatest})")
    }

    /// Condition of rows whose reference does not exist.
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
