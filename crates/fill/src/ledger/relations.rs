//! The relations that a fill writes to, and which of them a chunk's rows go to.
//!
//! A chunk is recorded once for each of its destinations, in a table whose persistence is the destination's.
//! So crash recovery empties a destination and its records together, and only those.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use crate::plan::chunks::{Chunk, Spread};
use crate::plan::tables::{TableNames, leaves};
use crate::plan::{Method, Plan};
use crate::request::Persistence;
use connect::{ConnectError, Connection};

/// A table without partitions, or a leaf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Relation {
    pub oid: u32,
    /// As SQL names it, with its schema.
    pub name: String,
    /// Alone and unquoted.
    #[serde(skip)]
    bare_name: String,
    pub persistence: Persistence,
    /// Whether it had rows when the fill began; set only by fills that append.
    pub(crate) had_rows: bool,
    #[serde(skip)]
    pub(crate) may_select: bool,
    /// Its partition constraint.
    #[serde(skip)]
    bound: Option<String>,
}

/// pgbench's small tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SmallTables {
    pub history: Relation,
    pub tellers: Relation,
    pub branches: Relation,
}

/// All relations of a fill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Relations {
    /// The bulk table.
    pub root: u32,
    /// As SQL names it, with its schema.
    pub name: String,
    /// Whether rows go to the bulk table, which routes them to its leaves.
    pub(crate) routes: bool,
    /// The relations of its rows; unless it routes them, in the order of the chunks' leaves.
    pub leaves: Vec<Relation>,
    pub small: Option<SmallTables>,
}

/// The destination that a record refers to: one relation, or all leaves of one persistence of a
/// table that routes its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Destination {
    /// The relation, or the table that routes.
    pub oid: u32,
    pub persistence: Persistence,
}

/// The rows of a chunk that go to one destination.
#[derive(Clone, Debug)]
pub(crate) struct ChunkPart {
    pub(crate) destination: Destination,
    pub rows: PartRows,
}

/// The rows of a [`ChunkPart`] of a chunk.
#[derive(Clone, Debug)]
pub(crate) enum PartRows {
    /// Rows of the bulk table; with a condition only those that fulfil it.
    Rows { condition: Option<String> },
    /// `pgbench_branches`.
    Branches,
    /// `pgbench_tellers`.
    Tellers,
}

impl Relation {
    fn destination(&self) -> Destination {
        Destination { oid: self.oid, persistence: self.persistence }
    }
}

impl Relations {
    const QUERY: &str = include_str!("../sql/members.sql");

    /// Asks the server for the relations of a plan.
    ///
    /// # Errors
    /// If it cannot be asked. `Ok(None)` if a table is missing.
    pub(crate) async fn of(connection: &Connection, plan: &Plan) -> Result<Option<Self>, ConnectError> {
        let routes = match plan.chunking.spread {
            Spread::Table => true,
            Spread::Hash { .. } => plan.method == Method::Server,
            Spread::Range { .. } => false,
        };
        let tables = &plan.tables;
        let Some(mut relations) = Self::ask(connection, &plan.schema, &tables.names(), routes).await? else {
            return Ok(None);
        };
        if !routes {
            let names = leaves(&tables.bulk, plan.partitions);
            let order: HashMap<String, usize> =
                names.into_iter().enumerate().map(|(at, name)| (name, at)).collect();
            relations.leaves.sort_by_key(|leaf| order.get(&leaf.bare_name).copied());
        }
        Ok(Some(if plan.append { relations.with_rows(connection).await? } else { relations }))
    }

    /// Asks the server for the relations of these tables, the leaves in any order.
    ///
    /// # Errors
    /// If it cannot be asked. `Ok(None)` if a table is missing.
    pub(crate) async fn ask(
        connection: &Connection,
        schema: &str,
        tables: &TableNames,
        routes: bool,
    ) -> Result<Option<Self>, ConnectError> {
        let names: Vec<&str> = tables.all().map(String::as_str).collect();
        let rows = match connection.client.query(Self::QUERY, &[&schema, &names]).await {
            Ok(rows) => rows,
            Err(error) => return Err(connection.explain(error).await),
        };
        let relation = |row: &tokio_postgres::Row| Relation {
            oid: row.get("oid"),
            name: row.get("name"),
            bare_name: row.get("relation"),
            persistence: if row.get("unlogged") { Persistence::Unlogged } else { Persistence::Logged },
            had_rows: false,
            may_select: row.get("may_select"),
            bound: row.get("bound"),
        };
        let of = |name: &str| {
            rows.iter().filter(|row| row.get::<_, &str>("table_name") == name).collect::<Vec<_>>()
        };
        let bulk = of(&tables.bulk);
        let Some(first) = bulk.first() else { return Ok(None) };
        let (root, name) = (first.get("root"), first.get("root_name"));
        let small = match tables.small.as_slice() {
            [] => None,
            small => {
                let single = |at: usize| of(&small[at]).first().map(|row| relation(row));
                let (Some(history), Some(tellers), Some(branches)) = (single(0), single(1), single(2)) else {
                    return Ok(None);
                };
                Some(SmallTables { history, tellers, branches })
            }
        };
        let leaves = bulk.into_iter().map(relation).collect();
        Ok(Some(Self { root, name, routes, leaves, small }))
    }

    /// The same relations, with facts about the rows that they already have.
    ///
    /// # Errors
    /// If it cannot be asked.
    pub(crate) async fn with_rows(mut self, connection: &Connection) -> Result<Self, ConnectError> {
        let of = |relation: &Relation| {
            if relation.may_select {
                format!("EXISTS (SELECT FROM {})", relation.name)
            } else {
                format!("pg_relation_size({}) > 0", relation.oid)
            }
        };
        let checks: Vec<String> = self.all().map(of).collect();
        let query = format!("SELECT ARRAY[{}]", checks.join(", "));
        let had: Vec<bool> = match connection.client.query_one(&query, &[]).await {
            Ok(row) => row.get(0),
            Err(error) => return Err(connection.explain(error).await),
        };
        let small = self
            .small
            .iter_mut()
            .flat_map(|small| [&mut small.history, &mut small.tellers, &mut small.branches]);
        for (relation, had) in self.leaves.iter_mut().chain(small).zip(had) {
            relation.had_rows = had;
        }
        Ok(self)
    }

    /// The leaves, then pgbench's small tables.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Relation> {
        let small = self.small.iter().flat_map(|small| [&small.history, &small.tellers, &small.branches]);
        self.leaves.iter().chain(small)
    }

    /// The persistences that occur.
    pub(crate) fn persistences(&self) -> BTreeSet<Persistence> {
        self.all().map(|relation| relation.persistence).collect()
    }

    /// The persistences of the bulk table's leaves.
    pub(crate) fn of_leaves(&self) -> BTreeSet<Persistence> {
        self.leaves.iter().map(|leaf| leaf.persistence).collect()
    }

    /// The parts of a chunk, in the order in which they are loaded.
    pub(crate) fn parts(&self, plan: &Plan, chunk: &Chunk) -> Vec<ChunkPart> {
        let has_branches = !plan.branches(chunk).is_empty();
        let small = self.small.iter().filter(|_| has_branches).flat_map(|small| {
            [(&small.branches, PartRows::Branches), (&small.tellers, PartRows::Tellers)]
                .map(|(relation, rows)| ChunkPart { destination: relation.destination(), rows })
        });
        small.chain(self.bulk_parts(chunk)).collect()
    }

    fn bulk_parts(&self, chunk: &Chunk) -> Vec<ChunkPart> {
        if !self.routes {
            let destination = self.leaves[chunk.leaf as usize].destination();
            return vec![ChunkPart { destination, rows: PartRows::Rows { condition: None } }];
        }
        let persistences = self.of_leaves();
        let is_mixed = persistences.len() > 1;
        let part = |persistence| ChunkPart {
            destination: Destination { oid: self.root, persistence },
            rows: PartRows::Rows { condition: is_mixed.then(|| self.condition(persistence)) },
        };
        persistences.into_iter().map(part).collect()
    }

    /// The condition of rows that go to leaves of this persistence. Rows that fit no leaf count as
    /// rows for the second persistence, so that the server refuses them.
    fn condition(&self, persistence: Persistence) -> String {
        let logged = self.leaves.iter().filter(|leaf| leaf.persistence == Persistence::Logged);
        let bounds: Vec<String> =
            logged.map(|leaf| format!("({})", leaf.bound.as_deref().unwrap_or("true"))).collect();
        let any = bounds.join(" OR ");
        match persistence {
            Persistence::Logged => format!("({any})"),
            Persistence::Unlogged => format!("(({any}) IS NOT TRUE)"),
        }
    }

    /// The bulk table's destinations, each with its leaves.
    pub(crate) fn destinations(&self) -> Vec<(Destination, Vec<&Relation>)> {
        if !self.routes {
            return self.leaves.iter().map(|leaf| (leaf.destination(), vec![leaf])).collect();
        }
        let of = |persistence| {
            let leaves = self.leaves.iter().filter(|leaf| leaf.persistence == persistence).collect();
            (Destination { oid: self.root, persistence }, leaves)
        };
        self.of_leaves().into_iter().map(of).collect()
    }

    /// The destination under which the records of `destination` are kept now: a relation may have
    /// changed its persistence.
    pub(crate) fn destination_now(&self, destination: Destination) -> Option<Destination> {
        if self.routes && destination.oid == self.root {
            let now = self.of_leaves();
            let persistence = match now.len() {
                1 => now.into_iter().next()?,
                _ => destination.persistence,
            };
            return Some(Destination { persistence, ..destination });
        }
        self.all().find(|relation| relation.oid == destination.oid).map(Relation::destination)
    }

    /// The relation that differs from `before`, and the difference; none if there is no difference.
    pub(crate) fn change_since(&self, before: &Self) -> Option<(String, String)> {
        let known = |relations: &Self| relations.leaves.iter().map(|leaf| leaf.oid).collect::<BTreeSet<_>>();
        let dropped = "was dropped or replaced after that fill began";
        if self.root != before.root {
            return Some((before.name.clone(), dropped.to_owned()));
        }
        let of_small = |relations: &Self| {
            relations.all().skip(relations.leaves.len()).map(|it| it.oid).collect::<Vec<_>>()
        };
        let replaced = before.all().find(|relation| !self.all().any(|now| now.oid == relation.oid));
        if let Some(relation) = replaced {
            return Some((relation.name.clone(), dropped.to_owned()));
        }
        if known(self) != known(before) || of_small(self) != of_small(before) {
            return Some((before.name.clone(), "has new partitions since that fill began".to_owned()));
        }
        if !self.routes || (self.of_leaves().len(), before.of_leaves().len()) == (1, 1) {
            return None;
        }
        // Which rows went where follows from the leaves' persistence.
        let changed = before.leaves.iter().find(|leaf| {
            self.leaves.iter().any(|now| now.oid == leaf.oid && now.persistence != leaf.persistence)
        })?;
        let (now, then) = match changed.persistence {
            Persistence::Logged => ("unlogged", "LOGGED"),
            Persistence::Unlogged => ("logged", "UNLOGGED"),
        };
        let problem = format!(
            "became {now} after that fill began (to undo this, run ALTER TABLE {} SET {then})",
            changed.name
        );
        Some((changed.name.clone(), problem))
    }

    /// The same relations, with the facts about rows that `before` has.
    pub(crate) fn with_rows_of(mut self, before: &Self) -> Self {
        let had: HashMap<u32, bool> =
            before.all().map(|relation| (relation.oid, relation.had_rows)).collect();
        let small = self
            .small
            .iter_mut()
            .flat_map(|small| [&mut small.history, &mut small.tellers, &mut small.branches]);
        for relation in self.leaves.iter_mut().chain(small) {
            relation.had_rows = had.get(&relation.oid).copied().unwrap_or_default();
        }
        self
    }
}
