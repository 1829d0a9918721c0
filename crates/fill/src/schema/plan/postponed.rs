//! Foreign keys, keys and indexes of new tables that are made after the rows.
//!
//! COPY into a table with foreign keys and indexes looks up the references of each row and inserts
//! each row into each index, often at a random place. If they are created afterwards, each of them
//! reads the table once. This is done only for tables that the SQL creates; existing tables stay as
//! they are.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use tokio_postgres::Row;

use super::Planner;
use crate::error::FillError;
use crate::plan::{ForeignKeys, Method, Plan};
use server::quote::qualified;

/// Objects of a table that are made after its rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::schema) struct Postponed {
    /// Statements that make keys and indexes.
    pub(in crate::schema) makes: Vec<String>,
    /// Foreign keys, which are made once the tables that they refer to are filled too.
    #[serde(default)]
    pub(in crate::schema) foreign_keys: Vec<PostponedKey>,
}

/// A foreign key that is made after the rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::schema) struct PostponedKey {
    /// The constraint's name, unquoted.
    pub(in crate::schema) name: String,
    /// The statement that makes it.
    pub(in crate::schema) makes: String,
    /// Schema and name of the referenced table, unquoted.
    pub(in crate::schema) referenced: (String, String),
}

/// Something that can be dropped and made again.
pub(super) struct Candidate {
    drops: String,
    makes: String,
    /// OID of the index that it is or creates; none for a foreign key.
    index: Option<u32>,
    /// For a foreign key: OID and name of the referenced unique index, and schema and name of the
    /// referenced table.
    rests_on: Option<(u32, String, (String, String))>,
    /// Number of foreign keys that need this index.
    foreign_keys: usize,
}

/// The postponed objects of all tables.
pub(super) struct Schedule {
    /// Statements that drop everything postponed, in the transaction that creates the tables.
    pub(super) drops: Vec<String>,
    /// For each table, the objects that are made after its rows.
    pub(super) tables: Vec<Postponed>,
}

impl Planner<'_> {
    /// Objects of the table with this plan that can be made after the rows.
    pub(super) async fn candidates(&self, plan: &Plan) -> Result<Vec<Candidate>, FillError> {
        if plan.method != Method::ChunkedCopy {
            return Ok(Vec::new());
        }
        let name = qualified(&plan.schema, plan.bulk_name());
        let query = include_str!("../../sql/schema_postponed.sql");
        match self.connection.client.query(query, &[&name]).await {
            Ok(rows) => Ok(rows.iter().map(Candidate::of).collect()),
            Err(error) => Err(self.connection.explain(error).await.into()),
        }
    }
}

impl Candidate {
    fn of(row: &Row) -> Self {
        Self {
            drops: row.get("drops"),
            makes: row.get("makes"),
            index: row.get("index"),
            rests_on: row.get::<_, Option<u32>>("rests_on").map(|index| {
                (index, row.get("name"), (row.get("referenced_schema"), row.get("referenced_name")))
            }),
            foreign_keys: usize::try_from(row.get::<_, i64>("foreign_keys")).unwrap_or(usize::MAX),
        }
    }
}

impl Schedule {
    /// Chooses the postponed keys and indexes, from the candidates of all tables in their order. An index is not
    /// postponed if a foreign key that needs it is not.
    pub(super) fn of(candidates: &[Vec<Candidate>]) -> Self {
        let placed =
            || candidates.iter().enumerate().flat_map(|(at, of)| of.iter().map(move |one| (at, one)));
        let mut resting: HashMap<u32, usize> = HashMap::new();
        for (index, ..) in placed().filter_map(|(_, candidate)| candidate.rests_on.as_ref()) {
            *resting.entry(*index).or_default() += 1;
        }
        let mut drops = Vec::new();
        let mut tables = vec![Postponed::default(); candidates.len()];
        for (at, candidate) in placed() {
            let Some(index) = candidate.index else { continue };
            if candidate.foreign_keys == resting.get(&index).copied().unwrap_or_default() {
                tables[at].makes.push(candidate.makes.clone());
                drops.push(candidate.drops.clone());
            }
        }
        for (at, candidate) in placed() {
            let Some((_, name, referenced)) = candidate.rests_on.clone() else { continue };
            tables[at].foreign_keys.push(PostponedKey { name, makes: candidate.makes.clone(), referenced });
            drops.insert(0, candidate.drops.clone());
        }
        Self { drops, tables }
    }
}

/// Mentions the postponed objects in the plan.
pub(super) fn announce(plan: &mut Plan, postponed: &Postponed) {
    if *postponed == Postponed::default() {
        return;
    }
    plan.foreign_keys = ForeignKeys::None;
    plan.reasons.retain(|reason| !reason.starts_with("foreign keys"));
    plan.reasons.push("keys, foreign keys and indexes are created after the rows".to_owned());
}
