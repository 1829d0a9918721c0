//! Foreign keys: the keys of the referenced rows, which are read from the server.

use std::sync::Arc;

use rowgen::{Keys, Kind, Units, Values};
use tokio_postgres::Client;

use super::allowed::Set;
use super::constants::in_units;
use super::error::CatalogError;
use super::info::{ForeignKeyInfo, Referenced, TableInfo};
use super::mentioned::columns_in;
use super::narrow::Way;
use super::planned::Planned;
use super::slot::{Role, Slot};
use server::quote::{identifier, literal, qualified};

/// Foreign keys that share columns, and so are decided together: one row of `keys` has a value for
/// each of `columns`.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// The constraints' names.
    pub(super) name: String,
    /// Columns of the table that is filled.
    pub(super) columns: Vec<String>,
    /// A description of the keys for people.
    pub(super) what: String,
    /// Keys that the columns can reference.
    pub(super) keys: Arc<Keys>,
    /// Whether a unique key allows each referenced key once only. Keys that are already used are
    /// then not in the list.
    pub(super) one_to_one: bool,
    /// Whether the referenced rows are not there yet, so that no row references them.
    pub(super) are_planned: bool,
    /// Source of the values.
    pub(super) origin: Origin,
}

/// Where a group's keys come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Referenced rows: the columns may be NULL together.
    References,
    /// The server accepted them for conditions that pgrig does not understand. NULLs are among them.
    Judged {
        /// Whether the values in a unique key's columns occur once only.
        distinct: bool,
    },
}

impl Group {
    /// Whether the group gives this column its values.
    pub(super) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|name| name == column)
    }
}

/// Number of keys that are read if rows choose among them at random. The sample is large enough to
/// look like all keys.
const SAMPLE: usize = 100_000;
/// Keys that are read if they are part of a unique key.
const MOST_KEYS: usize = 1_000_000;
/// Referenced rows up to which they are counted to see whether their keys have no gaps.
const COUNTED: i64 = 50_000_000;
/// Rows of further tables for one row of the first, where foreign keys share columns.
const PARTNERS: u32 = 3;

/// Reads the keys for all foreign keys of free columns.
pub(super) async fn groups(
    client: &Client,
    info: &TableInfo,
    slots: &[Slot<'_>],
    way: &Way,
    (has_rows, planned): (bool, &[Planned]),
) -> Result<Vec<Group>, CatalogError> {
    let mut groups = Vec::new();
    for (number, members) in connected(info, slots).into_iter().enumerate() {
        let asked = Asked::new(info, slots, way, members, has_rows, planned)?;
        groups.push(asked.read(client, number).await?);
    }
    Ok(groups)
}

/// Foreign keys to other tables. Those that share a free column are put into one group.
fn connected<'a>(info: &'a TableInfo, slots: &[Slot<'_>]) -> Vec<Vec<&'a ForeignKeyInfo>> {
    let is_free = |column: &String| slots.iter().any(|slot| slot.name() == column && slot.is_free());
    let mut groups: Vec<Vec<&ForeignKeyInfo>> = Vec::new();
    let keys = info.foreign_keys.iter().filter(|key| !is_satisfied(key, slots));
    for key in keys.filter(|key| key.columns.iter().any(is_free)) {
        let shares = |group: &Vec<&ForeignKeyInfo>| {
            group.iter().any(|other| {
                other.columns.iter().any(|column| is_free(column) && key.columns.contains(column))
            })
        };
        let (together, apart): (Vec<_>, Vec<_>) = groups.into_iter().partition(shares);
        groups = apart;
        groups.push(together.into_iter().flatten().chain([key]).collect());
    }
    groups.into_iter().map(joinable).collect()
}

/// Whether each row satisfies the foreign key whatever the free columns are: another column is NULL, or the row references itself.
fn is_satisfied(key: &ForeignKeyInfo, slots: &[Slot<'_>]) -> bool {
    let role = |column: &String| slots.iter().find(|slot| slot.name() == column).map(|slot| &slot.role);
    let is_null = |column: &String| role(column) == Some(&Role::Given(Values::Null));
    let is_own = |(column, referenced): (&String, &String)| {
        column == referenced || matches!(role(column), Some(Role::OwnKey { earlier: None, .. }))
    };
    !key.is_match_full() && key.columns.iter().any(is_null)
        || key.to_itself && key.columns.iter().zip(&key.referenced.columns).all(is_own)
}

/// The foreign keys in an order in which each shares a column with an earlier one; the widest comes
/// first.
fn joinable(mut members: Vec<&ForeignKeyInfo>) -> Vec<&ForeignKeyInfo> {
    members.sort_by_key(|member| std::cmp::Reverse(member.columns.len()));
    let mut ordered = vec![members.remove(0)];
    while !members.is_empty() {
        let shares = |member: &&ForeignKeyInfo| {
            ordered.iter().any(|other| other.columns.iter().any(|column| member.columns.contains(column)))
        };
        let next = members.iter().position(shares).unwrap_or(0);
        ordered.push(members.remove(next));
    }
    ordered
}

/// The query about one group.
struct Asked<'a> {
    info: &'a TableInfo,
    members: Vec<&'a ForeignKeyInfo>,
    /// Tables that the same run fills before this one.
    planned: &'a [Planned],
    /// Free columns in the order of the foreign keys, with their kinds.
    columns: Vec<&'a str>,
    kinds: Vec<Kind>,
    /// Names of temporary tables that stand in for planned tables, by member.
    stand_ins: Vec<Option<String>>,
    /// Whether there are other conditions than that no column may be NULL.
    is_restricted: bool,
    /// Conditions on the columns alone.
    conditions: Vec<String>,
    one_to_one: bool,
    /// Whether all referenced tables are filled before this one.
    are_planned: bool,
    /// The number of referenced keys to read; none if the columns are part of a unique key, which needs all of them.
    sample: Option<usize>,
}

impl<'a> Asked<'a> {
    fn new(
        info: &'a TableInfo,
        slots: &[Slot<'_>],
        way: &Way,
        members: Vec<&'a ForeignKeyInfo>,
        has_rows: bool,
        planned: &'a [Planned],
    ) -> Result<Self, CatalogError> {
        let slot =
            |column: &str| slots.iter().find(|slot| slot.name() == column).expect("keys have known columns");
        let mut columns: Vec<&str> = Vec::new();
        let mut conditions = Vec::new();
        for member in &members {
            refuse(info, member)?;
            for column in &member.columns {
                match &slot(column).role {
                    Role::Free if !columns.contains(&column.as_str()) => columns.push(column),
                    Role::Free => {}
                    role => conditions.push(fixed(info, member, column, role)?),
                }
            }
        }
        conditions.extend(columns.iter().filter_map(|column| allowed(slot(column), way)));
        conditions.extend(conditions_on(info, &columns));
        let one_to_one = info.keys.iter().find(|key| {
            key.columns().next().is_some() && key.columns().all(|column| columns.contains(&column))
        });
        let are_planned = members.iter().all(|member| Planned::of(planned, member).is_some());
        // Keys of rows that are not there yet are not used yet.
        if let Some(key) = one_to_one
            && has_rows
            && !are_planned
        {
            conditions.push(unused(info, &key.columns().collect::<Vec<_>>()));
        }
        let in_a_key = info.keys.iter().any(|key| key.columns().any(|column| columns.contains(&column)));
        let is_restricted = !conditions.is_empty();
        conditions.extend(columns.iter().map(|column| format!("{} IS NOT NULL", identifier(column))));
        let kinds = columns.iter().map(|column| slot(column).kind.clone()).collect();
        Ok(Self {
            info,
            planned,
            kinds,
            stand_ins: vec![None; members.len()],
            members,
            columns,
            conditions,
            is_restricted,
            one_to_one: one_to_one.is_some(),
            are_planned,
            sample: (!in_a_key).then_some(SAMPLE),
        })
    }

    async fn read(mut self, client: &Client, number: usize) -> Result<Group, CatalogError> {
        let keys = match self.made() {
            Some(keys) => keys,
            None => self.asked(client, number).await?,
        };
        let names: Vec<&str> = self.members.iter().map(|member| member.name.as_str()).collect();
        let mut tables: Vec<String> = self.members.iter().map(|member| member.referenced.shown()).collect();
        tables.dedup();
        Ok(Group {
            name: names.join(", "),
            columns: self.columns.iter().map(|&column| column.to_owned()).collect(),
            what: format!("keys of {}", tables.join(" and ")),
            keys: Arc::new(keys),
            one_to_one: self.one_to_one,
            are_planned: self.are_planned,
            origin: Origin::References,
        })
    }

    /// The keys of a single planned table, if every one of them can be referenced.
    fn made(&self) -> Option<Keys> {
        let [member] = self.members.as_slice() else { return None };
        if self.is_restricted {
            return None;
        }
        let planned = Planned::of(self.planned, member)?;
        planned.keys(&member.referenced.columns, &self.kinds.iter().collect::<Vec<_>>())
    }

    /// Keys that the server finds, in tables or in the relations that stand in for them.
    async fn asked(&mut self, client: &Client, number: usize) -> Result<Keys, CatalogError> {
        for (at, member) in self.members.iter().enumerate() {
            let Some(planned) = Planned::of(self.planned, member) else { continue };
            let name = format!("pgrig_planned_{number}_{at}");
            planned.stand_in(client, &name, &member.referenced.columns).await?;
            self.stand_ins[at] = Some(name);
        }
        match self.interval(client).await? {
            Some(keys) => Ok(keys),
            None => self.listed(client).await,
        }
    }

    /// The keys as an interval, if they are integers without gaps.
    async fn interval(&self, client: &Client) -> Result<Option<Keys>, CatalogError> {
        let is_integer = matches!(self.kinds[0], Kind::Int2 | Kind::Int4 | Kind::Int8);
        let [member] = self.members.as_slice() else { return Ok(None) };
        if self.columns.len() > 1 || !is_integer || member.referenced.rows > COUNTED {
            return Ok(None);
        }
        let key = identifier(self.columns[0]);
        let query = format!(
            "SELECT min({key})::int8 AS low, max({key})::int8 AS high, count(*) AS count FROM ({}) AS keys WHERE {}",
            self.rows(""),
            self.conditions.join(" AND ")
        );
        let row = client.query_one(&query, &[]).await?;
        let (Some(low), Some(high)) = (row.get::<_, Option<i64>>("low"), row.get::<_, Option<i64>>("high"))
        else {
            return Ok(None);
        };
        let keys = Keys::Interval { low, high };
        let dense = u64::try_from(row.get::<_, i64>("count")).is_ok_and(|count| count == keys.count());
        Ok(dense.then_some(keys))
    }

    async fn listed(&self, client: &Client) -> Result<Keys, CatalogError> {
        if let Some(sample) = self.sample() {
            let keys = self.list(client, &sample).await?;
            if !keys.is_empty() {
                return Ok(Keys::Listed(keys));
            }
        }
        let keys = self.list(client, "").await?;
        if keys.is_empty() { Err(self.nothing(client).await?) } else { Ok(Keys::Listed(keys)) }
    }

    async fn list(&self, client: &Client, sample: &str) -> Result<Vec<Vec<Option<String>>>, CatalogError> {
        let texts: Vec<String> =
            self.columns.iter().map(|column| format!("{}::text", identifier(column))).collect();
        let query = format!(
            "SELECT ARRAY[{}] AS key FROM ({}) AS keys WHERE {} LIMIT {}",
            texts.join(", "),
            self.rows(sample),
            self.conditions.join(" AND "),
            self.most()
        );
        let rows = client.query(&query, &[]).await?;
        let mut keys: Vec<Vec<Option<String>>> = rows.iter().map(|row| row.get("key")).collect();
        // The order in which a server happens to give rows must not decide what is made of them.
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    /// A subquery that returns referenced rows, under the names of this table's columns.
    fn rows(&self, sample: &str) -> String {
        let mut known: Vec<(&str, String)> = Vec::new();
        let mut from: Vec<String> = Vec::new();
        for (at, member) in self.members.iter().enumerate() {
            let Referenced { schema, table, columns, partitioned, .. } = &member.referenced;
            let only = if *partitioned { "" } else { "ONLY " };
            let table = match &self.stand_ins[at] {
                Some(name) => format!("pg_temp.{name}"),
                None => format!("{only}{}", qualified(schema, table)),
            };
            let pairs = || member.columns.iter().map(String::as_str).zip(columns);
            let shared: Vec<String> = pairs()
                .filter_map(|(column, referenced)| {
                    let (_, same) = known.iter().find(|(name, _)| *name == column)?;
                    Some(format!("r.{} = {same}", identifier(referenced)))
                })
                .collect();
            from.push(match at {
                0 => format!("{table} AS r0{sample}"),
                _ => format!(
                    "LATERAL (SELECT * FROM {table} AS r WHERE {} LIMIT {PARTNERS}) AS r{at}",
                    shared.join(" AND ")
                ),
            });
            for (column, referenced) in pairs() {
                if !known.iter().any(|(name, _)| *name == column) {
                    known.push((column, format!("r{at}.{}", identifier(referenced))));
                }
            }
        }
        let columns: Vec<String> =
            known.iter().map(|(name, value)| format!("{value} AS {}", identifier(name))).collect();
        format!("SELECT {} FROM {}", columns.join(", "), from.join(", "))
    }

    /// A TABLESAMPLE clause where the first referenced table has far more rows than are needed.
    fn sample(&self) -> Option<String> {
        let needed = 4 * i64::try_from(self.most()).ok()?;
        let rows = self.members[0].referenced.rows;
        let percent = 100.0 * needed as f64 / rows as f64;
        (rows > needed && self.sample.is_some() && self.stand_ins[0].is_none())
            .then(|| format!(" TABLESAMPLE SYSTEM ({percent}) REPEATABLE (1)"))
    }

    fn most(&self) -> usize {
        self.sample.unwrap_or(MOST_KEYS)
    }

    /// The error for a group without keys: the referenced table has no row, or none that may be
    /// used.
    async fn nothing(&self, client: &Client) -> Result<CatalogError, CatalogError> {
        let columns = self.columns.join(", ");
        for member in self.members.iter().filter(|member| Planned::of(self.planned, member).is_none()) {
            let table = qualified(&member.referenced.schema, &member.referenced.table);
            let row = client.query_one(&format!("SELECT EXISTS (SELECT FROM {table})"), &[]).await?;
            if !row.get::<_, bool>(0) {
                return Ok(CatalogError::NothingToReference {
                    table: self.info.shown(),
                    columns,
                    constraint: member.name.clone(),
                    referenced: member.referenced.shown(),
                });
            }
        }
        let first = self.members[0];
        Ok(CatalogError::NoKeyLeft {
            table: self.info.shown(),
            columns,
            constraint: first.name.clone(),
            referenced: first.referenced.shown(),
        })
    }
}

fn refuse(info: &TableInfo, key: &ForeignKeyInfo) -> Result<(), CatalogError> {
    let table = info.shown();
    if key.period {
        return Err(CatalogError::Period {
            table,
            constraint: key.name.clone(),
            definition: key.definition.clone(),
        });
    }
    if !key.referenced.may_select {
        return Err(CatalogError::ReferencePrivilege {
            table,
            constraint: key.name.clone(),
            referenced: key.referenced.shown(),
            role: info.role.clone(),
            columns: key.columns.join(", "),
        });
    }
    Ok(())
}

/// A condition for the column of a composite key whose value is already decided.
fn fixed(info: &TableInfo, key: &ForeignKeyInfo, column: &str, role: &Role) -> Result<String, CatalogError> {
    let value = match role {
        Role::Given(Values::Int(value)) => value.to_string(),
        Role::Given(Values::Text(value)) => literal(value),
        _ => {
            return Err(CatalogError::HalfGiven {
                table: info.shown(),
                column: column.to_owned(),
                constraint: key.name.clone(),
                definition: key.definition.clone(),
            });
        }
    };
    Ok(format!("{} = {value}", identifier(column)))
}

/// The table's own conditions that involve only these columns. Referenced rows must fulfil them.
fn conditions_on(info: &TableInfo, columns: &[&str]) -> Vec<String> {
    let all = info.column_names();
    let applies = |expression: &str| {
        let mentioned = columns_in(expression, &all);
        !mentioned.is_empty() && mentioned.iter().all(|column| columns.contains(column))
    };
    let checks = info.checks.iter().map(|check| check.expression.clone());
    checks
        .chain(info.partition_condition())
        .filter(|expression| applies(expression))
        .map(|e| format!("({e})"))
        .collect()
}

/// The condition of one column, in SQL.
fn allowed(slot: &Slot<'_>, way: &Way) -> Option<String> {
    let column = identifier(slot.name());
    match way.allowed(slot.name()).set {
        Set::Listed(values) => {
            let values: Vec<String> = values.iter().map(|value| literal(value)).collect();
            Some(format!("{column}::text IN ({})", values.join(", ")))
        }
        Set::Units(stretches) => {
            let units = in_units(&slot.kind)?;
            let within: Vec<String> = stretches
                .iter()
                .map(|Units { low, high }| format!("units BETWEEN {low} AND {high}"))
                .collect();
            let values = format!("(SELECT {units} FROM (VALUES ({column})) AS value (v))");
            Some(format!("(SELECT {} FROM (VALUES ({values})) AS unit (units))", within.join(" OR ")))
        }
        _ => None,
    }
}

/// The condition that no row has the key yet.
fn unused(info: &TableInfo, columns: &[&str]) -> String {
    let same: Vec<String> =
        columns.iter().map(|column| format!("present.{0} = keys.{0}", identifier(column))).collect();
    let table = qualified(&info.schema, &info.name);
    format!("NOT EXISTS (SELECT FROM {table} AS present WHERE {})", same.join(" AND "))
}
