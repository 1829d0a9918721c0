//! The partitions that tuples lie in, if only the server can tell, as for `PARTITION BY RANGE (date_trunc('month', at))`. Each
//! partition with bounds gets the same share of the tuples.

use std::collections::BTreeSet;

use super::Sampling;
use super::judge::{Judge, Tuple};
use super::rule::Rule;
use super::search::ENOUGH;
use super::shapes::{Shape, in_equal_shares};
use crate::error::CatalogError;
use crate::info::LeafInfo;

/// A partition is missed if it has less than this part of an equal share of the rows.
const PART_OF_A_SHARE: usize = 10;
/// Most partitions that a note names.
const MOST_NAMED: usize = 3;

/// Tuples that are shared out among partitions.
pub(super) struct SharedOut {
    pub(super) list: Vec<Tuple>,
    /// Partitions that none of the tuples lies in.
    pub(super) empty: Vec<String>,
}

impl<'a> Sampling<'a> {
    /// The partitions among which tuples under these rules are shared out: those with bounds, if the server judges the bounds. A
    /// default partition has no part in it.
    pub(super) fn leaves(&self, rules: &[&Rule<'_>]) -> Vec<&'a LeafInfo> {
        let are_judged = rules.iter().any(|rule| rule.is_of_bounds() && !rule.is_kept);
        let leaves = self.info.partitions.as_deref().unwrap_or_default();
        if !are_judged || leaves.len() < 2 {
            return Vec::new();
        }
        leaves.iter().filter(|leaf| !is_default(leaf)).collect()
    }

    /// Whether hardly one of these tuples lies in one of the partitions. Columns that take turns stay as they are.
    pub(super) async fn is_missed(
        &self,
        rule: &Rule<'_>,
        judge: &Judge<'_>,
        tuples: &[Tuple],
    ) -> Result<bool, CatalogError> {
        if rule.columns.iter().any(|column| self.takes_turns(column)) {
            return Ok(false);
        }
        let leaves = self.leaves(&[rule]);
        let Some(places) = judge.places(tuples, &leaves).await? else { return Ok(false) };
        let count = |leaf: usize| places.iter().filter(|place| **place == Some(leaf)).count();
        Ok((0..leaves.len()).any(|leaf| count(leaf) * leaves.len() * PART_OF_A_SHARE < tuples.len()))
    }

    /// The tuples in equal shares for the partitions, and for the shapes within each. None if there are no partitions to share
    /// them out among, or if the server does not tell in which a tuple lies.
    pub(super) async fn shared_out(
        &self,
        judge: &Judge<'_>,
        leaves: &[&LeafInfo],
        tuples: &BTreeSet<Tuple>,
        shape: impl Fn(&Tuple) -> Shape,
    ) -> Result<Option<SharedOut>, CatalogError> {
        let all: Vec<Tuple> = tuples.iter().cloned().collect();
        let Some(places) = judge.places(&all, leaves).await? else { return Ok(None) };
        let of_place = |(place, tuple): (&Option<usize>, _)| place.map(|place| (place, tuple));
        let within: Vec<(usize, &Tuple)> = places.iter().zip(&all).filter_map(of_place).collect();
        let used: BTreeSet<usize> = within.iter().map(|(place, _)| *place).collect();
        let is_empty = |(at, _): &(usize, &&LeafInfo)| !used.contains(at);
        let empty = leaves.iter().enumerate().filter(is_empty).map(|(_, leaf)| leaf.name.clone()).collect();
        let classed = within.iter().map(|(place, tuple)| ((*place, shape(tuple)), *tuple));
        let list = in_equal_shares(classed, ENOUGH);
        // All tuples are in a default partition.
        let list = if list.is_empty() { all } else { list };
        Ok(Some(SharedOut { list, empty }))
    }
}

/// The note on partitions that stay empty, if there are any.
pub(super) fn stay_empty(leaves: &[String]) -> Option<String> {
    let named = leaves.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let (what, stays, them) =
        if leaves.len() == 1 { ("partition", "stays", "it") } else { ("partitions", "stay", "them") };
    let more = match leaves.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!leaves.is_empty()).then(|| {
        format!(
            "{what} {named}{more} {stays} empty: pgrig finds no values for {them}. To fill {them}, describe the columns of the partition \
             key with --column"
        )
    })
}

/// Whether the partition takes the rows that no other one takes.
fn is_default(leaf: &LeafInfo) -> bool {
    leaf.bound.as_ref().is_none_or(|bound| bound.contains("(NOT ("))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_partitions_are_named() {
        let names = |count: u32| (1..=count).map(|number| format!("p_{number}")).collect::<Vec<_>>();
        assert_eq!(stay_empty(&names(0)), None);
        let one = stay_empty(&names(1)).unwrap();
        assert!(one.starts_with("partition p_1 stays empty:"), "{one}");
        let many = stay_empty(&names(5)).unwrap();
        assert!(many.starts_with("partitions p_1, p_2, p_3 and 2 more stay empty:"), "{many}");
    }

    #[test]
    fn default_partitions_are_those_without_bounds_of_their_own() {
        let leaf = |bound: &str| LeafInfo { name: "p".to_owned(), bound: Some(bound.to_owned()) };
        assert!(is_default(&leaf("(NOT ((lower(x) IS NOT NULL) AND (lower(x) = 'a'::text)))")));
        assert!(is_default(&LeafInfo { name: "p".to_owned(), bound: None }));
        assert!(!is_default(&leaf("((lower(x) IS NOT NULL) AND (lower(x) = 'a'::text))")));
    }
}
