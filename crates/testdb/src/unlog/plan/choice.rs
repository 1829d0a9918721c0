//! Chooses the tables that change and those that stay, and refuses requests.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::unlog::error::UnlogError;
use crate::unlog::plan::foreign_keys::{self, Edge};
use crate::unlog::plan::look::{Catalogs, Key, Relation};
use crate::unlog::plan::{ForeignKey, Left, Step, UnlogPlan, Why};
use crate::unlog::request::{Direction, UnlogRequest};

/// The first release with unlogged sequences; owned ones follow their tables (tablecmds.c, ATRewriteTables).
const UNLOGGED_SEQUENCES: u32 = 150_000;

/// The tables that change and those that do not, before they are put in order.
pub(crate) struct Choice<'a> {
    catalogs: &'a Catalogs,
    request: &'a UnlogRequest,
    by_oid: HashMap<u32, &'a Relation>,
    tables: BTreeSet<u32>,
    left: Vec<Left>,
}

/// How the plan changes a sequence.
enum SequenceChange {
    /// It changes with the table that owns it.
    Follows,
    /// It changes with the table that owns it, but must not: it is changed back.
    GoesBack,
    /// It is changed by a statement of its own.
    Changes,
    /// It stays as it is.
    Stays(Why),
}

impl<'a> Choice<'a> {
    /// # Errors
    /// If the request cannot be fulfilled.
    pub(crate) fn of(catalogs: &'a Catalogs, request: &'a UnlogRequest) -> Result<Self, UnlogError> {
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

    /// Chooses the tables that can change, regardless of other tables.
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

    /// Removes tables that must stay because of other tables that stay.
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
        let held: BTreeMap<u32, u32> = foreign_keys::held(&self.tables, fixed, &holds);
        for (table, holder) in held {
            let (relation, holder) = (self.by_oid[&table], self.by_oid[&holder]);
            if !holder.is_selected && holder.kind == 'r' && why_unchangeable(holder).is_none() {
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

    /// Refuses a request because of problems that the user can solve.
    fn refuse_unfit(&self) -> Result<(), UnlogError> {
        let tables = self.tables.iter().map(|oid| self.by_oid[oid]);
        let sequences = self
            .sequences()
            .filter(|sequence| matches!(self.sequence_change(sequence), SequenceChange::Changes));
        let changed: Vec<&Relation> = tables.chain(sequences).collect();
        for relation in &changed {
            if let Some(owner) = &relation.other_owner {
                return Err(UnlogError::NotOwner {
                    object: relation.object.to_string(),
                    owner: owner.clone(),
                });
            }
        }
        if self.request.direction == Direction::Logged {
            return Ok(());
        }
        let published: Vec<_> = changed.iter().filter(|relation| !relation.publications.is_empty()).collect();
        if published.is_empty() {
            return Ok(());
        }
        let by = published.iter().flat_map(|relation| relation.publications.iter().cloned());
        Err(UnlogError::Published {
            tables: sorted(published.iter().map(|relation| relation.object.to_string())),
            publications: sorted(by),
        })
    }

    fn has_unlogged_sequences(&self) -> bool {
        self.catalogs.version_num >= UNLOGGED_SEQUENCES
    }

    fn sequences(&self) -> impl Iterator<Item = &'a Relation> {
        let sequences = self.catalogs.relations.iter().filter(|relation| relation.kind == 'S');
        sequences.filter(|relation| self.is_to_change(relation))
    }

    fn sequence_change(&self, sequence: &Relation) -> SequenceChange {
        if !self.has_unlogged_sequences() {
            return SequenceChange::Stays(Why::NoUnloggedSequences);
        }
        let is_wanted = self.request.sequences && !sequence.is_kept;
        let owner = sequence.owned_by.and_then(|owner| self.by_oid.get(&owner));
        match owner {
            Some(owner) if self.tables.contains(&owner.oid) => {
                if is_wanted {
                    SequenceChange::Follows
                } else {
                    SequenceChange::GoesBack
                }
            }
            Some(owner) if owner.is_kept => SequenceChange::Stays(Why::OwnerStays(owner.object.clone())),
            // That of a partitioned table changes: its partitions' rows take their numbers from it.
            Some(owner) if owner.kind != 'p' && owner.persistence == self.request.direction.from() => {
                SequenceChange::Stays(Why::OwnerStays(owner.object.clone()))
            }
            _ => match why_unchangeable(sequence) {
                Some(why) => SequenceChange::Stays(why),
                None if is_wanted => SequenceChange::Changes,
                None => SequenceChange::Stays(Why::Kept),
            },
        }
    }

    /// The tables in their order, and the foreign keys that must be dropped meanwhile.
    pub(crate) fn order(&self) -> (Vec<u32>, BTreeSet<u32>) {
        // As the catalogs have them: by name.
        let relations = self.catalogs.relations.iter().map(|relation| relation.oid);
        let tables: Vec<u32> = relations.filter(|oid| self.tables.contains(oid)).collect();
        let both =
            |key: &&Key| self.tables.contains(&key.referencing) && self.tables.contains(&key.referenced);
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
                let cost = if key.is_valid { self.by_oid[&key.referencing].bytes } else { 0 };
                Edge { first, then, constraint: key.root, cost }
            })
            .collect();
        foreign_keys::order(&tables, &edges)
    }

    /// The tables in this order, these foreign keys dropped and added again.
    pub(crate) fn into_plan(mut self, ordered: &[u32], dropped: Vec<ForeignKey>) -> UnlogPlan {
        let direction = self.request.direction;
        let objects = || ordered.iter().map(|oid| self.by_oid[oid]);
        let set = |relation: &Relation, to| Step::Set {
            object: relation.object.clone(),
            to,
            bytes: relation.bytes,
        };
        // All locks first: then a session that blocks one does so before anything is written.
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
        let mut left = std::mem::take(&mut self.left);
        let mut following = 0;
        for sequence in self.sequences() {
            match self.sequence_change(sequence) {
                SequenceChange::Follows => following += 1,
                SequenceChange::GoesBack => steps.push(set(sequence, direction.opposite())),
                SequenceChange::Changes => steps.push(set(sequence, direction)),
                SequenceChange::Stays(why) => left.push(Left { object: sequence.object.clone(), why }),
            }
        }
        let after = |relation: &&Relation| {
            relation.is_selected
                && matches!(relation.kind, 'r' | 'S')
                && relation.persistence != direction.from()
        };
        UnlogPlan {
            direction,
            steps,
            already: self.catalogs.relations.iter().filter(after).count(),
            left,
            following,
            lock_timeout: self.request.lock_timeout,
        }
    }
}

fn why_unchangeable(relation: &Relation) -> Option<Why> {
    if relation.is_kept {
        return Some(Why::Kept);
    }
    let extension = relation.extension.clone().map(Why::Extension);
    extension.or_else(|| relation.row_type_used_by.clone().map(Why::RowType))
}

/// The items in order, without duplicates.
fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.collect::<BTreeSet<T>>().into_iter().collect()
}

fn outside(direction: Direction, selected: &Relation, outside: &Relation) -> UnlogError {
    let (referencing, referenced) = match direction {
        Direction::Unlogged => (outside, selected),
        Direction::Logged => (selected, outside),
    };
    UnlogError::Outside {
        referencing: referencing.object.to_string(),
        referenced: referenced.object.to_string(),
        outside: outside.object.to_string(),
        selected: selected.object.to_string(),
    }
}
