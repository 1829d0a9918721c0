//! The plan: statements in their order, and what is left as it is, and why.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::time::Duration;

use super::error::UnlogError;
use super::graph::{self, Edge};
use super::look::{self, Catalogs, Relation};
use super::request::{Direction, UnlogRequest};
use crate::connect::{ConnectError, Target};
use crate::fill::session::{Session, Sessions};
use crate::quote::{identifier, literal};
use crate::settings::Table;

/// From this release on sequences can be unlogged, and owned ones follow their tables (tablecmds.c, ATRewriteTables).
const UNLOGGED_SEQUENCES: i32 = 150_000;
/// SQLSTATE of a lock that was not had within lock_timeout.
pub(super) const LOCK_NOT_AVAILABLE: &str = "55P03";

/// A table or a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its name and schema.
    pub table: Table,
    /// Which of the two.
    pub kind: ObjectKind,
}

/// What can be unlogged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// A table that is not partitioned; it may be a partition.
    Table,
    /// A sequence.
    Sequence,
}

impl Object {
    /// Quoted, for SQL.
    pub fn qualified(&self) -> String {
        self.table.qualified()
    }
}

/// For people: quoted only where SQL would read another name.
impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        let shown = |name: &str| if plain(name) { name.to_owned() } else { identifier(name) };
        write!(f, "{}.{}", shown(&self.table.schema), shown(&self.table.name))
    }
}

/// A foreign key that closes a circle, so that it is dropped and added again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// Its name.
    pub name: String,
    /// The table that has it; it may be partitioned.
    pub table: Object,
    /// As pg_get_constraintdef has it, with DEFERRABLE, NOT VALID and all.
    pub definition: String,
    /// Its comment.
    pub comment: Option<String>,
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nobody else reads or writes the table from here on.
    Lock(Object),
    /// A circle is opened.
    DropForeignKey(ForeignKey),
    /// The change itself.
    Set {
        /// Of which table or sequence.
        object: Object,
        /// To what.
        to: Direction,
        /// What is written anew, bytes.
        bytes: u64,
    },
    /// The circle is closed again. Its rows are checked, unless it was NOT VALID.
    AddForeignKey(ForeignKey),
    /// The comment that it had.
    Comment {
        /// The foreign key.
        constraint: String,
        /// Its table.
        table: Object,
        /// The comment.
        text: String,
    },
}

impl Step {
    /// As SQL, without a semicolon.
    pub fn sql(&self) -> String {
        match self {
            // ONLY: tables that inherit from it have steps of their own.
            Self::Lock(table) => format!("LOCK TABLE ONLY {} IN ACCESS EXCLUSIVE MODE", table.qualified()),
            Self::DropForeignKey(key) => {
                format!("ALTER TABLE {} DROP CONSTRAINT {}", key.table.qualified(), identifier(&key.name))
            }
            Self::Set { object, to, .. } => {
                let kind = match object.kind {
                    ObjectKind::Table => "TABLE",
                    ObjectKind::Sequence => "SEQUENCE",
                };
                format!("ALTER {kind} {} SET {}", object.qualified(), to.keyword())
            }
            Self::AddForeignKey(key) => {
                let (table, name) = (key.table.qualified(), identifier(&key.name));
                format!("ALTER TABLE {table} ADD CONSTRAINT {name} {}", key.definition)
            }
            Self::Comment { constraint, table, text } => {
                let (table, name) = (table.qualified(), identifier(constraint));
                format!("COMMENT ON CONSTRAINT {name} ON {table} IS {}", literal(text))
            }
        }
    }

    /// The table or sequence whose persistence it changes, and its bytes.
    pub fn changes(&self, direction: Direction) -> Option<(&Object, u64)> {
        match self {
            Self::Set { object, to, bytes } if *to == direction => Some((object, *bytes)),
            _ => None,
        }
    }
}

/// What is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The table, sequence or view.
    pub object: Object,
    /// Why.
    pub why: Why,
}

/// Why something is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The request says so.
    Kept,
    /// A table that stays logged references it.
    ReferencedBy {
        /// That table.
        table: Object,
        /// Why it stays logged if nothing else says it: partitioned tables are never unlogged.
        is_partitioned: bool,
    },
    /// It references a table that stays unlogged.
    References(Object),
    /// A partitioned table has no rows of its own; only partitions change.
    Partitioned,
    /// It cannot be rewritten, because a column has its row type: this one.
    RowType(String),
    /// It belongs to this extension.
    Extension(String),
    /// The table that owns it stays as it is.
    OwnerStays(Object),
    /// There are no unlogged materialized views.
    MaterializedView,
    /// Its rows are elsewhere.
    ForeignTable,
    /// The server is of a release before PostgreSQL 15.
    NoUnloggedSequences,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept => f.write_str("kept, as asked"),
            Self::ReferencedBy { table, is_partitioned: true } => {
                write!(f, "{table} references it, which is partitioned and so always logged")
            }
            Self::ReferencedBy { table, .. } => write!(f, "{table} references it and stays logged"),
            Self::References(table) => write!(f, "it references {table}, which stays unlogged"),
            Self::Partitioned => f.write_str("partitioned: only its partitions change"),
            Self::RowType(column) => write!(f, "column {column} has its row type, so it cannot be rewritten"),
            Self::Extension(extension) => write!(f, "it belongs to extension {extension}"),
            Self::OwnerStays(table) => write!(f, "{table}, which owns it, stays as it is"),
            Self::MaterializedView => f.write_str("PostgreSQL has no unlogged materialized views"),
            Self::ForeignTable => f.write_str("a foreign table: its rows are elsewhere"),
            Self::NoUnloggedSequences => f.write_str("sequences can be unlogged from PostgreSQL 15 on"),
        }
    }
}

/// What is to be done, in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnlogPlan {
    /// To which persistence.
    pub direction: Direction,
    /// In this order.
    pub steps: Vec<Step>,
    /// What stays as it is.
    pub left: Vec<Left>,
    /// Tables and sequences of the selection that are as they should be already.
    pub already: usize,
    /// Sequences that follow their tables by themselves.
    pub following: usize,
    /// How long each lock may be waited for.
    pub lock_timeout: Duration,
}

impl UnlogPlan {
    /// Whether nothing is to be done.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The tables or sequences that change, in order, with their bytes.
    pub fn changes(&self, kind: ObjectKind) -> impl Iterator<Item = (&Object, u64)> {
        let changes = self.steps.iter().filter_map(|step| step.changes(self.direction));
        changes.filter(move |(object, _)| object.kind == kind)
    }

    /// What the tables take with their indexes. So much is needed on disk beside them until the transaction ends.
    pub fn bytes(&self) -> u64 {
        self.changes(ObjectKind::Table).map(|(_, bytes)| bytes).sum()
    }

    /// The foreign keys that are dropped and added again.
    pub fn circles(&self) -> impl Iterator<Item = &ForeignKey> {
        self.steps.iter().filter_map(|step| match step {
            Step::AddForeignKey(key) => Some(key),
            _ => None,
        })
    }

    /// What comes before the steps, each without a semicolon.
    pub(super) fn opening(&self) -> [String; 2] {
        let timeout = self.lock_timeout.as_millis();
        ["BEGIN".to_owned(), format!("SET LOCAL lock_timeout = '{timeout}ms'")]
    }

    /// All of it as a script for psql.
    pub fn script(&self) -> String {
        let steps = self.steps.iter().map(Step::sql);
        let statements = self.opening().into_iter().chain(steps).chain(["COMMIT".to_owned()]);
        let text: String = statements.map(|statement| statement + ";\n").collect();
        format!("\\set ON_ERROR_STOP on\n{text}")
    }
}

/// Makes a plan. Nothing is changed.
///
/// # Errors
/// If the request cannot be fulfilled, naming what stands in its way; if a query fails.
pub async fn plan(target: &Target, request: &UnlogRequest) -> Result<UnlogPlan, UnlogError> {
    let session = Sessions::new(target).open().await?;
    // Sizes are asked under a lock.
    session.run(&format!("SET lock_timeout = '{}ms'", request.lock_timeout.as_millis())).await?;
    let planned = planned(&session, request).await;
    let planned = match planned {
        Err(UnlogError::Connect(error)) if error.sqlstate() == Some(LOCK_NOT_AVAILABLE) => {
            Err(locked(&session, None, error).await)
        }
        planned => planned,
    };
    session.connection.close().await;
    planned
}

/// The error of a lock that was not had, with who has it.
pub(super) async fn locked(session: &Session, table: Option<&Object>, error: ConnectError) -> UnlogError {
    match look::lock_holder(session, table).await {
        Ok(Some((what, holder))) => UnlogError::Locked { what, holder },
        // It is gone meanwhile, or it is another object's.
        _ => UnlogError::Statement {
            statement: table.map_or("looking at tables".to_owned(), |table| Step::Lock(table.clone()).sql()),
            error,
        },
    }
}

async fn planned(session: &Session, request: &UnlogRequest) -> Result<UnlogPlan, UnlogError> {
    let catalogs = look::look(session, request).await?;
    let choice = Choice::of(&catalogs, request)?;
    let (ordered, dropped) = choice.order();
    let dropped = look::foreign_keys(session, &dropped.into_iter().collect::<Vec<u32>>()).await?;
    Ok(choice.into_plan(&ordered, dropped))
}

/// What changes and what does not, before it is put in order.
struct Choice<'a> {
    catalogs: &'a Catalogs,
    request: &'a UnlogRequest,
    by_oid: HashMap<u32, &'a Relation>,
    tables: BTreeSet<u32>,
    left: Vec<Left>,
}

impl<'a> Choice<'a> {
    fn of(catalogs: &'a Catalogs, request: &'a UnlogRequest) -> Result<Self, UnlogError> {
        let by_oid: HashMap<u32, &Relation> =
            catalogs.relations.iter().map(|relation| (relation.oid, relation)).collect();
        let mut choice = Self { catalogs, request, by_oid, tables: BTreeSet::new(), left: Vec::new() };
        choice.choose_candidates();
        choice.hold_back()?;
        choice.refuse_unfit()?;
        Ok(choice)
    }

    fn is_to_change(&self, relation: &Relation) -> bool {
        relation.is_selected && relation.persistence == self.request.direction.from()
    }

    fn leave(&mut self, relation: &Relation, why: Why) {
        self.left.push(Left { object: relation.object.clone(), why });
    }

    /// Tables that can change as far as they themselves are concerned.
    fn choose_candidates(&mut self) {
        for relation in self.catalogs.relations.iter().filter(|relation| relation.kind != 'S') {
            if !self.is_to_change(relation) {
                continue;
            }
            let why = match relation.kind {
                'm' => Some(Why::MaterializedView),
                'f' => Some(Why::ForeignTable),
                'p' => Some(Why::Partitioned),
                _ => why_unchangeable(relation),
            };
            match why {
                Some(why) => self.leave(relation, why),
                None => _ = self.tables.insert(relation.oid),
            }
        }
    }

    /// Takes away what must stay because of what stays.
    fn hold_back(&mut self) -> Result<(), UnlogError> {
        let direction = self.request.direction;
        let fixed = |relation: &&Relation| {
            relation.persistence == direction.from() && !self.tables.contains(&relation.oid)
        };
        let fixed: Vec<u32> =
            self.catalogs.relations.iter().filter(fixed).map(|relation| relation.oid).collect();
        let keys = self.catalogs.keys.iter();
        let holds: Vec<(u32, u32)> = match direction {
            Direction::Unlogged => keys.map(|key| (key.referencing, key.referenced)).collect(),
            Direction::Logged => keys.map(|key| (key.referenced, key.referencing)).collect(),
        };
        let held: BTreeMap<u32, u32> = graph::held(&self.tables, fixed, &holds);
        for (table, holder) in held {
            let (relation, holder) = (self.by_oid[&table], self.by_oid[&holder]);
            if !holder.is_selected && holder.kind == 'r' {
                return Err(outside(direction, relation, holder));
            }
            self.tables.remove(&table);
            let why = match direction {
                Direction::Unlogged => {
                    Why::ReferencedBy { table: holder.object.clone(), is_partitioned: holder.kind == 'p' }
                }
                Direction::Logged => Why::References(holder.object.clone()),
            };
            self.leave(relation, why);
        }
        Ok(())
    }

    /// What would go wrong for a reason that somebody can do something about.
    fn refuse_unfit(&self) -> Result<(), UnlogError> {
        let sequences = self.loose_sequences().map(|relation| relation.oid);
        for oid in self.tables.iter().copied().chain(sequences) {
            let relation = self.by_oid[&oid];
            let object = relation.object.to_string();
            if let Some(owner) = &relation.other_owner {
                return Err(UnlogError::NotOwner { object, owner: owner.clone() });
            }
            if let (Direction::Unlogged, Some(publication)) = (self.request.direction, &relation.publication)
            {
                let publication = publication.clone();
                return Err(UnlogError::Published { table: object, publication });
            }
        }
        Ok(())
    }

    fn has_unlogged_sequences(&self) -> bool {
        self.catalogs.version_num >= UNLOGGED_SEQUENCES
    }

    fn sequences(&self) -> impl Iterator<Item = &'a Relation> {
        let sequences = self.catalogs.relations.iter().filter(|relation| relation.kind == 'S');
        sequences.filter(|relation| self.is_to_change(relation))
    }

    /// Sequences that follow a table of the plan.
    fn following(&self) -> impl Iterator<Item = &'a Relation> {
        let follows =
            |relation: &&Relation| relation.owned_by.is_some_and(|owner| self.tables.contains(&owner));
        self.sequences().filter(move |relation| self.has_unlogged_sequences() && follows(relation))
    }

    /// Why a sequence that follows no table stays as it is.
    fn why_left(&self, sequence: &Relation) -> Option<Why> {
        if !self.has_unlogged_sequences() {
            return Some(Why::NoUnloggedSequences);
        }
        let owner = sequence.owned_by.and_then(|owner| self.by_oid.get(&owner));
        match owner {
            Some(owner) if owner.is_kept => Some(Why::OwnerStays(owner.object.clone())),
            // Its partitions' rows take their numbers from it.
            Some(owner) if owner.kind == 'p' => why_unchangeable(sequence),
            Some(owner) if owner.persistence == self.request.direction.from() => {
                Some(Why::OwnerStays(owner.object.clone()))
            }
            _ => why_unchangeable(sequence),
        }
    }

    /// Sequences that need a statement of their own.
    fn loose_sequences(&self) -> impl Iterator<Item = &'a Relation> {
        let follows =
            |relation: &Relation| relation.owned_by.is_some_and(|owner| self.tables.contains(&owner));
        self.sequences().filter(move |sequence| {
            self.request.sequences && !follows(sequence) && self.why_left(sequence).is_none()
        })
    }

    fn order(&self) -> (Vec<u32>, BTreeSet<u32>) {
        // As the catalogs have them: by name.
        let relations = self.catalogs.relations.iter().map(|relation| relation.oid);
        let tables: Vec<u32> = relations.filter(|oid| self.tables.contains(oid)).collect();
        let both = |key: &&look::Key| {
            self.tables.contains(&key.referencing) && self.tables.contains(&key.referenced)
        };
        let edges: Vec<Edge> = self
            .catalogs
            .keys
            .iter()
            .filter(both)
            .map(|key| {
                let (first, then) = match self.request.direction {
                    Direction::Unlogged => (key.referencing, key.referenced),
                    Direction::Logged => (key.referenced, key.referencing),
                };
                let cost = self.by_oid[&key.referencing].bytes;
                Edge { first, then, constraint: key.root, cost }
            })
            .collect();
        graph::order(&tables, &edges)
    }

    fn into_plan(mut self, ordered: &[u32], dropped: Vec<ForeignKey>) -> UnlogPlan {
        let direction = self.request.direction;
        let opposite = match direction {
            Direction::Unlogged => Direction::Logged,
            Direction::Logged => Direction::Unlogged,
        };
        let objects = || ordered.iter().map(|oid| self.by_oid[oid]);
        let set = |relation: &Relation, to| Step::Set {
            object: relation.object.clone(),
            to,
            bytes: relation.bytes,
        };
        // All locks first: whoever is in the way is in the way before anything was written.
        let mut steps: Vec<Step> = objects().map(|relation| Step::Lock(relation.object.clone())).collect();
        steps.extend(dropped.iter().cloned().map(Step::DropForeignKey));
        steps.extend(objects().map(|relation| set(relation, direction)));
        for key in dropped {
            let comment = key.comment.clone().map(|text| Step::Comment {
                constraint: key.name.clone(),
                table: key.table.clone(),
                text,
            });
            steps.push(Step::AddForeignKey(key));
            steps.extend(comment);
        }
        let mut following = 0;
        for sequence in self.following() {
            if self.request.sequences && !sequence.is_kept {
                following += 1;
            } else {
                // It has followed its table, and goes back.
                steps.push(set(sequence, opposite));
            }
        }
        steps.extend(self.loose_sequences().map(|sequence| set(sequence, direction)));
        let left = self.left_sequences();
        self.left.extend(left);
        let after = |relation: &&Relation| {
            relation.is_selected
                && matches!(relation.kind, 'r' | 'S')
                && relation.persistence != direction.from()
        };
        UnlogPlan {
            direction,
            steps,
            already: self.catalogs.relations.iter().filter(after).count(),
            left: self.left,
            following,
            lock_timeout: self.request.lock_timeout,
        }
    }

    fn left_sequences(&self) -> Vec<Left> {
        let follows =
            |relation: &Relation| relation.owned_by.is_some_and(|owner| self.tables.contains(&owner));
        let loose = self.sequences().filter(|sequence| {
            self.request.sequences && !(self.has_unlogged_sequences() && follows(sequence))
        });
        let left = loose.filter_map(|sequence| Some((sequence, self.why_left(sequence)?)));
        left.map(|(sequence, why)| Left { object: sequence.object.clone(), why }).collect()
    }
}

fn why_unchangeable(relation: &Relation) -> Option<Why> {
    if relation.is_kept {
        return Some(Why::Kept);
    }
    let extension = relation.extension.clone().map(Why::Extension);
    extension.or_else(|| relation.row_type_used_by.clone().map(Why::RowType))
}

fn outside(direction: Direction, selected: &Relation, outside: &Relation) -> UnlogError {
    let (referencing, referenced) = match direction {
        Direction::Unlogged => (outside, selected),
        Direction::Logged => (selected, outside),
    };
    UnlogError::Outside {
        referencing: referencing.object.to_string(),
        referenced: referenced.object.to_string(),
        kept: selected.object.to_string(),
    }
}
