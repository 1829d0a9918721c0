//! The search for tuples that the server accepts: rounds of candidates, until the tuples are enough or further rounds bring no new
//! ones.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rowgen::{Column, Keys, Table, Values};

use super::candidates::{Unit, encoder, mix, narrowed, texts, without_nulls};
use super::distances::Pair;
use super::distinct::Distinct;
use super::judge::{Judge, Tuple};
use super::known;
use super::shapes::{self, Shape};
use super::{Sampling, Together};
use crate::error::CatalogError;
use crate::info::Source;
use crate::references::Group;
use crate::slot::Slot;

/// Candidates in a round.
const BATCH: u64 = 2_000;
/// Most rounds: in general; if the tuples have to be unique; and once there are enough for variety.
const ROUNDS: u64 = 50;
const ROUNDS_OF_KEYS: u64 = 100;
const ROUNDS_FOR_VARIETY: u64 = 20;
/// After this time, no other round begins.
const LONGEST: Duration = Duration::from_secs(30);
/// Number of tuples at which the search ends.
pub(super) const ENOUGH: usize = 10_000;
/// The same if the tuples have to be unique: the least of these numbers that is enough for the rows, so that a table is searched once for
/// similar numbers of rows.
const ENOUGH_KEYS: [usize; 5] = [1_000, 3_000, 10_000, 30_000, MOST_KEYS];
/// Most unique tuples that a search is worth.
const MOST_KEYS: usize = 100_000;
/// Number of tuples that give enough variety.
const VARIETY: usize = 1_000;
/// At least one of this many candidates must pass.
const RAREST: u64 = 1_000;
/// Most tuples in a list, where those that repeat no key come again and again.
const MOST_REPEATED: usize = 1_000_000;

/// Tuples that passed.
#[derive(Clone)]
pub(super) struct PassedTuples {
    /// The tuples for the rows, some of them several times.
    pub(super) keys: Arc<Keys>,
    pub(super) tried: u64,
    pub(super) passed: u64,
    pub(super) error: Option<String>,
    /// Partitions that none of the tuples lies in.
    pub(super) empty: Vec<String>,
    /// Whether time ended the search, so that another one may find more.
    is_cut_short: bool,
}

impl PassedTuples {
    /// No tuples, of none.
    pub(super) fn none() -> Self {
        let keys = Arc::new(Keys::Listed(Vec::new()));
        Self { keys, tried: 0, passed: 0, error: None, empty: Vec::new(), is_cut_short: false }
    }

    pub(super) fn list(&self) -> &[Tuple] {
        match &*self.keys {
            Keys::Listed(list) => list,
            Keys::Interval { .. } | Keys::Made { .. } => &[],
        }
    }

    /// Number of values of all tuples.
    pub(super) fn values(&self) -> usize {
        self.list().len() * self.list().first().map_or(0, Vec::len)
    }

    pub(super) fn is_rare(&self) -> bool {
        self.passed * RAREST < self.tried || self.list().is_empty()
    }
}

impl Sampling<'_> {
    /// Tuples that the server accepts: those of an earlier search with the same facts, if there was one.
    pub(super) async fn found(&self, together: &Together<'_>) -> Result<PassedTuples, CatalogError> {
        let judge = self.judge(&together.columns, &together.rules).await?;
        let candidates = self.candidates(together);
        let key = self.key(together, &judge, &candidates).await?;
        let found = if let Some(found) = key.and_then(known::result) {
            found
        } else {
            let found = self.search(together, &judge, &candidates).await?;
            if let Some(key) = key.filter(|_| !found.is_cut_short) {
                known::keep(key, &found);
            }
            found
        };
        Ok(if together.has_keys { self.for_rows(together, found) } else { found })
    }

    /// The unique tuples as the rows need them.
    fn for_rows(&self, together: &Together<'_>, found: PassedTuples) -> PassedTuples {
        let first = usize::try_from(self.rows.start).unwrap_or(usize::MAX);
        let wanted = self.known_rows().map_or(MOST_KEYS, |rows| rows.saturating_add(first));
        let distinct = Distinct::new(self.info.keys.iter(), &together.columns);
        let list = distinct.for_rows(found.list(), wanted.clamp(1, MOST_REPEATED));
        PassedTuples { keys: Arc::new(Keys::Listed(list)), ..found }
    }

    async fn search(
        &self,
        together: &Together<'_>,
        judge: &Judge<'_>,
        (table, first): &(Table, u64),
    ) -> Result<PassedTuples, CatalogError> {
        let begun = Instant::now();
        let units = self.units(together).await?;
        let pairs = self.pairs(together);
        let (most, enough) =
            if together.has_keys { (ROUNDS_OF_KEYS, self.enough_keys()) } else { (ROUNDS, ENOUGH) };
        let (with_nulls, whole) = (encoder(table), encoder(&without_nulls(table)));
        let keys = self.info.keys.iter().filter(|_| together.has_keys);
        let mut distinct = Distinct::new(keys, &together.columns);
        let mut accepted: BTreeSet<Tuple> = BTreeSet::new();
        let mut found = PassedTuples::none();
        let leaves = self.leaves(&together.rules);
        // Else hardly a row may be in a partition that has a CHECK of its own, or bounds of an expression.
        let mut is_mixed =
            !leaves.is_empty() || together.rules.iter().any(|rule| rule.is_of_partitions && !rule.is_kept);
        let mut passing: Option<Vec<Shape>> = None;
        for round in 0..most {
            let numbers = first + round * BATCH..first + (round + 1) * BATCH;
            let mut tuples = texts(&with_nulls, [numbers.clone()]);
            if is_mixed {
                mix(&mut tuples, &units, round);
                let plain = texts(&whole, [numbers]);
                let shapes = match passing.take() {
                    Some(shapes) => shapes,
                    None => self.shapes_that_pass(judge, &units, &pairs, &plain).await?,
                };
                if !shapes.is_empty() {
                    shapes::mix(&mut tuples, plain, &units, &shapes, round);
                }
                passing = Some(shapes);
                for pair in &pairs {
                    pair.apply(self.client, &mut tuples, round).await?;
                }
            }
            let judged = judge.judge(&tuples).await?;
            let passed = judged.passed.len() as u64;
            let (before, reached_before) = (accepted.len(), distinct.least());
            accepted.extend(judged.passed.into_iter().filter(|tuple| distinct.is_new(tuple)));
            found.tried += BATCH;
            found.passed += passed;
            found.error = judged.error.or(found.error);
            found.is_cut_short = judged.gave_up || begun.elapsed() > LONGEST;
            let more = (accepted.len() - before) as u64;
            let has_variety =
                !together.has_keys && round + 1 >= ROUNDS_FOR_VARIETY && accepted.len() >= VARIETY;
            let is_exhausted = passed > 0 && more < passed / 20;
            let reached = distinct.least();
            // Only NULL makes further tuples: a key has no more values.
            let is_stuck = accepted.len() >= enough && reached == reached_before;
            let has_enough = reached.unwrap_or(accepted.len()) >= enough || has_variety;
            if found.is_cut_short || has_enough || is_mixed && (is_exhausted || is_stuck) {
                break;
            }
            is_mixed |= passed < BATCH / 10 || is_exhausted || is_stuck;
        }
        let has_shapes = passing.is_some_and(|shapes| !shapes.is_empty());
        let shape = |tuple: &Tuple| if has_shapes { shapes::of(tuple, &units) } else { Shape::new() };
        let shared = self.shared_out(judge, &leaves, &accepted, shape).await?;
        found.empty = shared.as_ref().map_or_else(Vec::new, |shared| shared.empty.clone());
        found.keys = Arc::new(Keys::Listed(match shared {
            Some(shared) if !together.has_keys => shared.list,
            None if !together.has_keys && has_shapes => shapes::balanced(&accepted, &units, ENOUGH),
            _ => accepted.into_iter().collect(),
        }));
        Ok(found)
    }

    /// The key of a search: the facts that decide on its result. None if functions of the user's do, too.
    async fn key(
        &self,
        together: &Together<'_>,
        judge: &Judge<'_>,
        candidates: &(Table, u64),
    ) -> Result<Option<u64>, CatalogError> {
        let computed = judge.by_server.iter().filter_map(|column| match &column.source {
            Source::Default { expression, .. } | Source::Generated { expression, .. } => {
                Some(expression.as_str())
            }
            Source::Identity { .. } | Source::Nothing => None,
        });
        let expressions: Vec<&str> =
            together.rules.iter().map(|rule| rule.definition).chain(computed).collect();
        let Some(server) = known::server(self.client, &expressions).await? else { return Ok(None) };
        let columns = &together.columns;
        let slots: Vec<&Slot<'_>> = columns.iter().filter_map(|column| self.slot(column)).collect();
        let turning: Vec<bool> = columns.iter().map(|column| self.takes_turns(column)).collect();
        let is_meant = |group: &&Group| columns.iter().any(|column| group.has(column));
        let groups: Vec<&Group> = self.groups.iter().filter(is_meant).collect();
        let keys = Some(&self.info.keys).filter(|_| together.has_keys);
        let leaves = self.leaves(&together.rules);
        let enough = together.has_keys.then(|| self.enough_keys());
        Ok(Some(known::key(&[
            &server,
            &self.info.schema,
            together,
            &slots,
            &turning,
            &groups,
            candidates,
            &keys,
            &enough,
            &judge.ranging,
            &judge.others,
            &judge.by_server,
            &leaves,
        ])))
    }

    /// The source of candidates, and their first row's number. Unique numbers count up, so that there are enough.
    fn candidates(&self, together: &Together<'_>) -> (Table, u64) {
        let mut table = narrowed(self.drawn, &together.columns);
        if !together.has_keys {
            return (table, 0);
        }
        for column in &mut table.columns {
            let made = self.made.columns.iter().find(|made| made.name == column.name);
            if let Some(Column { values: values @ Values::Serial { .. }, .. }) = made {
                column.values = values.clone();
            }
        }
        (table, self.rows.start)
    }

    /// Number of unique tuples to look for.
    fn enough_keys(&self) -> usize {
        let rows = self.known_rows().unwrap_or(MOST_KEYS);
        ENOUGH_KEYS.into_iter().find(|enough| rows <= *enough).unwrap_or(MOST_KEYS)
    }

    /// Number of rows that are wanted, if it is known.
    fn known_rows(&self) -> Option<usize> {
        self.wanted.map(|rows| usize::try_from(rows).unwrap_or(usize::MAX))
    }

    /// The shapes of tuples that the server accepts. `plain` are tuples without NULLs.
    async fn shapes_that_pass(
        &self,
        judge: &Judge<'_>,
        units: &[Unit],
        pairs: &[Pair],
        plain: &[Tuple],
    ) -> Result<Vec<Shape>, CatalogError> {
        let mut tuples = shapes::tuples(&shapes::all(units), units, plain);
        for pair in pairs {
            pair.apply(self.client, &mut tuples, 0).await?;
        }
        let passed = judge.judge(&tuples).await?.passed;
        let passed: BTreeSet<Shape> = passed.iter().map(|tuple| shapes::of(tuple, units)).collect();
        Ok(passed.into_iter().collect())
    }
}
