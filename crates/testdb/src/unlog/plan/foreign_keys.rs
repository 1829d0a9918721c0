//! Computes the order in which tables can be made unlogged or logged, and which tables must stay
//! because of others. Only foreign keys are considered, without a server.
//!
//! The server's one rule (tablecmds.c, ATPrepChangePersistence) is that no logged table references an unlogged one,
//! at any moment. Tables are numbers here: oids.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

/// A foreign key between two tables that both change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    /// The table that has to change first.
    pub(crate) first: u32,
    /// The table that can only change after it.
    pub(crate) then: u32,
    /// The constraint. The constraints of a partitioned table and its partitions count as one.
    pub(crate) constraint: u32,
    /// The cost of dropping the constraint and adding it again, in any unit.
    pub(crate) cost: u64,
}

/// The candidates that have to stay because of tables that do not change, each with the table that
/// is the reason: the first such table of `fixed`, or a candidate that stays. A pair in `holds`
/// says that the second table must stay if the first does.
pub(crate) fn held(
    candidates: &BTreeSet<u32>,
    fixed: impl IntoIterator<Item = u32>,
    holds: &[(u32, u32)],
) -> BTreeMap<u32, u32> {
    let mut by_holder: HashMap<u32, Vec<u32>> = HashMap::new();
    for (holder, held) in holds {
        by_holder.entry(*holder).or_default().push(*held);
    }
    let mut held = BTreeMap::new();
    let mut open: VecDeque<u32> = fixed.into_iter().collect();
    while let Some(holder) = open.pop_front() {
        for table in by_holder.get(&holder).into_iter().flatten() {
            if candidates.contains(table) && !held.contains_key(table) {
                held.insert(*table, holder);
                open.push_back(*table);
            }
        }
    }
    held
}

/// An order in which tables can be changed one by one, and the constraints that must be dropped
/// meanwhile because they close a cycle: the cheapest that suffice. Of tables that may come in any
/// order, the first given comes first.
pub(crate) fn order(tables: &[u32], edges: &[Edge]) -> (Vec<u32>, BTreeSet<u32>) {
    let edges: Vec<Edge> = edges.iter().filter(|edge| edge.first != edge.then).copied().collect();
    let mut dropped = BTreeSet::new();
    loop {
        let kept: Vec<Edge> =
            edges.iter().filter(|edge| !dropped.contains(&edge.constraint)).copied().collect();
        let ordered = without_cycles(tables, &kept);
        if ordered.len() == tables.len() {
            return (ordered, dropped);
        }
        let placed: HashSet<u32> = ordered.into_iter().collect();
        let left = kept.into_iter().filter(|edge| !placed.contains(&edge.first)).collect();
        dropped.insert(cheapest_in_a_cycle(left).constraint);
    }
}

/// The tables that can be put in order: all tables, unless there are cycles (Kahn's algorithm).
/// Every edge must connect two of them.
fn without_cycles(tables: &[u32], edges: &[Edge]) -> Vec<u32> {
    let place: HashMap<u32, usize> =
        tables.iter().enumerate().map(|(place, table)| (*table, place)).collect();
    let mut awaited = vec![0_usize; tables.len()];
    let mut followers = vec![Vec::new(); tables.len()];
    for edge in edges {
        awaited[place[&edge.then]] += 1;
        followers[place[&edge.first]].push(place[&edge.then]);
    }
    let mut ready: BTreeSet<usize> = (0..tables.len()).filter(|place| awaited[*place] == 0).collect();
    let mut ordered = Vec::with_capacity(tables.len());
    while let Some(next) = ready.pop_first() {
        ordered.push(tables[next]);
        for follower in &followers[next] {
            awaited[*follower] -= 1;
            if awaited[*follower] == 0 {
                ready.insert(*follower);
            }
        }
    }
    ordered
}

/// The cheapest edge that is in a cycle. At least one of the edges must be.
fn cheapest_in_a_cycle(mut edges: Vec<Edge>) -> Edge {
    edges.sort_by_key(|edge| (edge.cost, edge.constraint));
    let closes = |edge: &&Edge| reaches(&edges, edge.then, edge.first);
    *edges.iter().find(closes).expect("tables that cannot be put in order are in a cycle, or behind one")
}

fn reaches(edges: &[Edge], from: u32, to: u32) -> bool {
    let mut seen = HashSet::from([from]);
    let mut open = vec![from];
    while let Some(table) = open.pop() {
        if table == to {
            return true;
        }
        let next = edges.iter().filter(|edge| edge.first == table).map(|edge| edge.then);
        open.extend(next.filter(|table| seen.insert(*table)));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(first: u32, then: u32, constraint: u32, cost: u64) -> Edge {
        Edge { first, then, constraint, cost }
    }

    #[test]
    fn what_holds_is_told_and_goes_on() {
        let candidates = BTreeSet::from([1, 2, 3, 4]);
        let held = held(&candidates, [9], &[(9, 1), (1, 2), (3, 1), (4, 4)]);
        assert_eq!(held, BTreeMap::from([(1, 9), (2, 1)]));
    }

    #[test]
    fn first_comes_first() {
        let (ordered, dropped) = order(&[1, 2, 3], &[edge(3, 1, 7, 0), edge(2, 2, 8, 0)]);
        assert_eq!((ordered, dropped), (vec![2, 3, 1], BTreeSet::new()));
    }

    #[test]
    fn only_what_closes_a_cycle_is_dropped() {
        // 1 ⇄ 2 → 3 → 4 → 3: the cheapest edge of all, 2 → 3, is in no cycle.
        let edges =
            [edge(1, 2, 1, 5), edge(2, 1, 2, 4), edge(2, 3, 3, 0), edge(3, 4, 4, 2), edge(4, 3, 5, 3)];
        let (ordered, dropped) = order(&[4, 3, 2, 1], &edges);
        assert_eq!((ordered, dropped), (vec![4, 1, 2, 3], BTreeSet::from([2, 4])));
    }

    #[test]
    fn a_constraint_is_dropped_with_all_its_edges() {
        let edges = [edge(1, 2, 1, 0), edge(1, 3, 1, 0), edge(2, 1, 2, 9), edge(3, 1, 3, 9)];
        let (ordered, dropped) = order(&[1, 2, 3], &edges);
        assert_eq!((ordered, dropped), (vec![2, 3, 1], BTreeSet::from([1])));
    }
}
