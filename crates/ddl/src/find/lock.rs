//! Locks on relations (documentation, "Table-Level Locks").

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::relation::{Kind, Relation, Relations};

/// Modes of locks on relations, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
pub enum LockMode {
    /// Of SELECT: conflicts only with ACCESS EXCLUSIVE.
    AccessShare,
    /// Of SELECT FOR UPDATE.
    RowShare,
    /// Of INSERT, UPDATE and DELETE.
    RowExclusive,
    /// Of VACUUM and CREATE INDEX CONCURRENTLY.
    ShareUpdateExclusive,
    /// Of CREATE INDEX: blocks writers.
    Share,
    /// Of CREATE TRIGGER and foreign keys: blocks writers.
    ShareRowExclusive,
    /// Of REFRESH MATERIALIZED VIEW CONCURRENTLY, where it blocks nobody; of a table, it blocks writers.
    Exclusive,
    /// Of most forms of ALTER TABLE: blocks everybody.
    AccessExclusive,
}

impl LockMode {
    /// All modes, the weakest first.
    pub const ALL: [Self; 8] = [
        Self::AccessShare,
        Self::RowShare,
        Self::RowExclusive,
        Self::ShareUpdateExclusive,
        Self::Share,
        Self::ShareRowExclusive,
        Self::Exclusive,
        Self::AccessExclusive,
    ];

    /// The name in SQL: `ACCESS EXCLUSIVE`.
    pub fn name(self) -> &'static str {
        match self {
            Self::AccessShare => "ACCESS SHARE",
            Self::RowShare => "ROW SHARE",
            Self::RowExclusive => "ROW EXCLUSIVE",
            Self::ShareUpdateExclusive => "SHARE UPDATE EXCLUSIVE",
            Self::Share => "SHARE",
            Self::ShareRowExclusive => "SHARE ROW EXCLUSIVE",
            Self::Exclusive => "EXCLUSIVE",
            Self::AccessExclusive => "ACCESS EXCLUSIVE",
        }
    }

    /// By the name in `pg_locks.mode`: `AccessExclusiveLock`.
    pub(crate) fn of_pg_locks(mode: &str) -> Option<Self> {
        let word = mode.strip_suffix("Lock")?;
        Self::ALL.into_iter().find(|known| known.name().replace(' ', "").eq_ignore_ascii_case(word))
    }

    /// Whether one session waits for this lock while another one has the other.
    pub(crate) fn conflicts_with(self, other: Self) -> bool {
        let (weak, strong) = (self.min(other), self.max(other));
        match weak {
            Self::AccessShare => strong == Self::AccessExclusive,
            Self::RowShare => strong >= Self::Exclusive,
            Self::RowExclusive => strong >= Self::Share,
            Self::Share => strong != Self::Share,
            _ => true,
        }
    }

    /// The work that this lock blocks, as text for people; none if it blocks neither reads nor writes of rows.
    pub fn blocks(self) -> Option<&'static str> {
        match self {
            Self::AccessExclusive => Some("reads and writes"),
            Self::Exclusive | Self::ShareRowExclusive | Self::Share => Some("writes"),
            _ => None,
        }
    }

    /// The same on a relation of this kind: only ACCESS EXCLUSIVE keeps sessions from a materialized view, because none writes its rows.
    pub fn blocks_on(self, kind: Kind) -> Option<&'static str> {
        if kind == Kind::MaterializedView && self != Self::AccessExclusive { None } else { self.blocks() }
    }
}

impl fmt::Display for LockMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for LockMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = |mode: &Self| mode.name().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(known).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no lock \"{text}\": give one of {names}")
        })
    }
}

/// Modes that a session holds on relations, by OID.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held(BTreeMap<u32, Vec<LockMode>>);

impl Held {
    /// Adds a lock.
    pub fn add(&mut self, relation: u32, mode: LockMode) {
        let modes = self.0.entry(relation).or_default();
        if !modes.contains(&mode) {
            modes.push(mode);
        }
    }

    /// Adds all locks of another reading.
    pub fn extend(&mut self, other: &Self) {
        for (relation, modes) in &other.0 {
            for mode in modes {
                self.add(*relation, *mode);
            }
        }
    }

    /// Whether this lock is among them.
    pub(crate) fn has(&self, relation: u32, mode: LockMode) -> bool {
        self.0.get(&relation).is_some_and(|modes| modes.contains(&mode))
    }

    /// The relations with this lock.
    pub(crate) fn with(&self, mode: LockMode) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().filter(move |(_, modes)| modes.contains(&mode)).map(|(oid, _)| *oid)
    }

    /// Leaves out ACCESS EXCLUSIVE on indexes. DROP INDEX and REINDEX with CONCURRENTLY take it on an index that no session uses any more,
    /// at their very end (index.c: `index_drop`; dependency.c: `AcquireDeletionLock`), and DETACH PARTITION … CONCURRENTLY on those of the partition,
    /// which it has locked before (tablecmds.c: `DetachPartitionFinalize`): nobody waits for it, and a reading meets it by chance.
    pub(crate) fn forget_exclusive_on_indexes(&mut self, known: [&Relations; 2]) {
        let is_index = |oid: u32| {
            let relation = known.iter().find_map(|relations| relations.get(oid));
            relation.is_some_and(|one| matches!(one.kind, Kind::Index | Kind::PartitionedIndex))
        };
        for (_, modes) in self.0.iter_mut().filter(|(oid, _)| is_index(**oid)) {
            modes.retain(|mode| *mode != LockMode::AccessExclusive);
        }
    }

    /// The tables of the relations, with the locks on each table itself, as far as `known` has them.
    pub(crate) fn tables(&self, known: &Relations) -> BTreeMap<u32, Vec<LockMode>> {
        let mut tables: BTreeMap<u32, Vec<LockMode>> = BTreeMap::new();
        for (oid, modes) in self.0.iter().filter(|(oid, _)| known.get(**oid).is_some()) {
            let table = known.table_of(*oid);
            let of_table = tables.entry(table).or_default();
            if table == *oid {
                of_table.extend(modes);
            }
        }
        tables
    }

    /// The modes that came since `before`, by the tables of the relations, as far as `known` has them. Relations that nobody else can use are not
    /// among them: temporary ones, and those that the transaction has `made`.
    pub(crate) fn taken(
        &self,
        before: &Self,
        known: &Relations,
        made: &BTreeSet<u32>,
    ) -> BTreeMap<u32, Vec<LockMode>> {
        let is_shared =
            |oid: u32| known.get(oid).is_some_and(|one| !one.is_temporary) && !made.contains(&oid);
        let mut tables: BTreeMap<u32, Vec<LockMode>> = BTreeMap::new();
        for (oid, modes) in self.0.iter().filter(|(oid, _)| is_shared(**oid)) {
            let new = modes.iter().filter(|mode| !before.has(*oid, **mode));
            tables.entry(known.table_of(*oid)).or_default().extend(new);
        }
        tables
    }

    /// The locks that came since `before`: the strongest new mode on each relation that one of the readings knows. Locks
    /// on the server's own catalogs are not among them. `made` are relations of the first reading that the transaction has made.
    pub fn since(&self, before: &Self, known: [&Relations; 2], made: &BTreeSet<u32>) -> Vec<Lock> {
        let mut locks: Vec<Lock> = Vec::new();
        for (oid, modes) in &self.0 {
            let old = before.0.get(oid).map_or(&[][..], Vec::as_slice);
            let strongest = modes.iter().filter(|mode| !old.contains(mode)).max();
            let relation = known.iter().find_map(|relations| relations.get(*oid));
            if let (Some(mode), Some(relation)) = (strongest, relation) {
                let was_there = known[0].get(*oid).is_some() && !made.contains(oid) && !relation.is_temporary;
                locks.push(Lock {
                    relation: relation.name.clone(),
                    kind: relation.kind,
                    mode: *mode,
                    is_new: !was_there,
                    is_dead: false,
                });
            }
        }
        sort(&mut locks);
        locks
    }

    /// Adds ACCESS EXCLUSIVE of this reading, the last one of a DROP INDEX CONCURRENTLY, on its index to the locks of the statement, in the place of
    /// the weaker one. The index of a temporary table is dropped at once.
    pub(crate) fn add_dead(&self, locks: &mut Vec<Lock>, before: &Relations) {
        let is_exclusive = |modes: &&Vec<LockMode>| modes.contains(&LockMode::AccessExclusive);
        for (oid, _) in self.0.iter().filter(|(_, modes)| is_exclusive(modes)) {
            let index = before.get(*oid).filter(|one| one.kind == Kind::Index && !one.is_temporary);
            let Some(Relation { name, kind, .. }) = index else { continue };
            locks.retain(|lock| lock.relation != *name);
            locks.push(Lock {
                relation: name.clone(),
                kind: *kind,
                mode: LockMode::AccessExclusive,
                is_new: false,
                is_dead: true,
            });
        }
        sort(locks);
    }

    /// The locks that block readers or writers: the strongest mode on each relation. Locks on indexes are not among them, because their
    /// tables have locks, too. Neither are those on relations that nobody else can use: temporary ones, and those that the transaction
    /// has `made`.
    pub(crate) fn blocking(&self, made: &BTreeSet<u32>, known: &Relations) -> Vec<Lock> {
        let is_shared = |relation: &&Relation| !relation.is_temporary && relation.kind.is_named();
        let lock = |(oid, modes): (&u32, &Vec<LockMode>)| {
            let relation = known.get(*oid).filter(is_shared).filter(|_| !made.contains(oid))?;
            let strongest = *modes.iter().max().filter(|mode| mode.blocks_on(relation.kind).is_some())?;
            Some(Lock {
                relation: relation.name.clone(),
                kind: relation.kind,
                mode: strongest,
                is_new: false,
                is_dead: false,
            })
        };
        let mut locks: Vec<Lock> = self.0.iter().filter_map(lock).collect();
        sort(&mut locks);
        locks
    }

    /// The strongest of the locks on these relations.
    pub(crate) fn strongest_on(&self, relations: &BTreeSet<u32>) -> Option<LockMode> {
        relations.iter().filter_map(|oid| self.0.get(oid)).flatten().max().copied()
    }
}

/// The strongest first; tables before indexes, and TOAST last.
fn sort(locks: &mut [Lock]) {
    let rank = |lock: &Lock| match lock.kind {
        Kind::Toast => 2,
        Kind::Index | Kind::PartitionedIndex if lock.relation.starts_with("TOAST") => 3,
        Kind::Index | Kind::PartitionedIndex => 1,
        _ => 0,
    };
    locks.sort_by_key(|lock| (Reverse(lock.mode), rank(lock), lock.relation.clone()));
}

/// A lock of a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lock {
    /// Name of the relation for people.
    pub relation: String,
    /// Kind of the relation.
    pub kind: Kind,
    /// The strongest mode.
    pub mode: LockMode,
    /// Whether the statement, or an earlier one of its transaction, has made the relation, or it is temporary: nobody else can wait for it.
    pub is_new: bool,
    /// Whether DROP INDEX CONCURRENTLY takes it at its end, on an index that no session uses any more: nobody waits for it.
    pub is_dead: bool,
}

impl Lock {
    /// The work of others that it blocks, as text for people; none if it blocks neither reads nor writes of rows.
    pub fn blocks(&self) -> Option<&'static str> {
        if self.is_dead { None } else { self.mode.blocks_on(self.kind) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::Read;

    fn relation(name: &str, kind: Kind) -> Relation {
        Relation {
            name: name.to_owned(),
            schema: "\"public\"".to_owned(),
            sql: format!("\"public\".\"{name}\""),
            kind,
            file: 1,
            tablespace: 0,
            owner: 0,
            parent: 0,
            bytes: 0,
            rows: 0.0,
            is_temporary: false,
            is_rewritten: false,
            read: Read::default(),
        }
    }

    /// A table, an index and a materialized view.
    fn relations() -> Relations {
        let all = [("t", Kind::Table), ("t_i", Kind::Index), ("m", Kind::MaterializedView)];
        Relations((1..).zip(all.map(|(name, kind)| relation(name, kind))).collect())
    }

    fn held(all: &[(u32, LockMode)]) -> Held {
        let mut held = Held::default();
        for (oid, mode) in all {
            held.add(*oid, *mode);
        }
        held
    }

    #[test]
    fn the_last_lock_on_an_index_that_is_dropped_concurrently_is_left_out() {
        let relations = relations();
        let weak = LockMode::ShareUpdateExclusive;
        let locks = |extra: &[(u32, LockMode)]| {
            let mut held = held(&[(1, weak), (2, weak)]);
            held.extend(&self::held(extra));
            held.forget_exclusive_on_indexes([&relations, &Relations::default()]);
            held.since(&Held::default(), [&relations, &Relations::default()], &BTreeSet::new())
        };
        assert_eq!(locks(&[(2, LockMode::AccessExclusive)]), locks(&[]));
        assert_eq!(locks(&[(1, LockMode::AccessExclusive)])[0].mode, LockMode::AccessExclusive);
    }

    #[test]
    fn the_last_lock_on_a_dead_index_blocks_nobody() {
        let relations = relations();
        let weak = held(&[(1, LockMode::ShareUpdateExclusive), (2, LockMode::ShareUpdateExclusive)]);
        let mut locks = weak.since(&Held::default(), [&relations, &relations], &BTreeSet::new());
        let last = [(1, LockMode::ShareUpdateExclusive), (2, LockMode::AccessExclusive)];
        held(&last).add_dead(&mut locks, &relations);
        let shown = locks.iter().map(|lock| (lock.relation.as_str(), lock.mode, lock.is_dead, lock.blocks()));
        let wanted = [
            ("t_i", LockMode::AccessExclusive, true, None),
            ("t", LockMode::ShareUpdateExclusive, false, None),
        ];
        assert_eq!(shown.collect::<Vec<_>>(), wanted);
    }

    /// The table of the documentation, "Conflicting Lock Modes": the modes for which each lets others wait.
    #[test]
    fn modes_conflict_as_documented() {
        let conflicts = [
            (LockMode::AccessShare, "-------X"),
            (LockMode::RowShare, "------XX"),
            (LockMode::RowExclusive, "----XXXX"),
            (LockMode::ShareUpdateExclusive, "---XXXXX"),
            (LockMode::Share, "--XX-XXX"),
            (LockMode::ShareRowExclusive, "--XXXXXX"),
            (LockMode::Exclusive, "-XXXXXXX"),
            (LockMode::AccessExclusive, "XXXXXXXX"),
        ];
        for (mode, wanted) in conflicts {
            let found = LockMode::ALL.map(|other| if mode.conflicts_with(other) { 'X' } else { '-' });
            assert_eq!(found.iter().collect::<String>(), wanted, "{mode}");
        }
    }

    #[test]
    fn the_locks_of_a_statement_are_those_that_its_transaction_had_not() {
        let mut relations = relations();
        relations.0.get_mut(&2).unwrap().owner = 1;
        let before = held(&[(1, LockMode::Share)]);
        let mut after = before.clone();
        let later = [
            (1, LockMode::RowExclusive),
            (2, LockMode::AccessExclusive),
            (3, LockMode::AccessShare),
            (9, LockMode::AccessExclusive),
        ];
        after.extend(&held(&later));
        let taken = after.taken(&before, &relations, &BTreeSet::from([3]));
        let wanted = [LockMode::RowExclusive, LockMode::AccessExclusive];
        assert_eq!(taken, BTreeMap::from([(1, wanted.to_vec())]));
    }

    #[test]
    fn only_access_exclusive_on_a_materialized_view_blocks_others() {
        let relations = relations();
        let blocking = |oid: u32, mode: LockMode| {
            let before = held(&[(oid, mode)]);
            let locks = before.since(&Held::default(), [&relations, &relations], &BTreeSet::new());
            let kept = before.blocking(&BTreeSet::new(), &relations);
            assert_eq!(locks[0].blocks(), kept.first().and_then(Lock::blocks), "{oid}: {mode}");
            locks[0].blocks()
        };
        for mode in [LockMode::Share, LockMode::ShareRowExclusive, LockMode::Exclusive] {
            assert_eq!([blocking(1, mode), blocking(3, mode)], [Some("writes"), None], "{mode}");
        }
        assert_eq!(blocking(3, LockMode::AccessExclusive), Some("reads and writes"));
    }
}
