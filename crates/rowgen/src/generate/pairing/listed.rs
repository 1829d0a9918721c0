//! The keys of the second side of few rows: each comes in exactly as many rows as it is to.

use std::cmp::Reverse;

use crate::random::{Draw, Stream};

/// Most keys of the second side, for each one of the first.
const MOST: u64 = 1 << 23;

/// The key of the second side of each rank, ascending among the rows of each key of the first side. `groups` has the numbers of rows of those, in
/// the order of ranks; `keys` has the keys of the second side, each with its number of rows. None if the two do not fit together, or are too many.
pub(super) fn listed(groups: &[u64], keys: &[(u64, u64)], stream: Stream) -> Option<Vec<u64>> {
    let sum_of_keys: u64 = keys.iter().map(|(_, rows)| rows).sum();
    if groups.iter().sum::<u64>() != sum_of_keys || groups.len() as u64 * keys.len() as u64 > MOST {
        return None;
    }
    let mut left: Vec<u64> = keys.iter().map(|(_, rows)| *rows).collect();
    // Those with the most rows choose first: fewer rows suit what is left.
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|at| Reverse(groups[*at]));
    let mut chosen = vec![Vec::new(); groups.len()];
    for (at, remaining) in order.into_iter().zip((1..=groups.len() as u64).rev()) {
        let taken = taken(&left, groups[at], remaining, stream.draw(at as u64))?;
        for key in &taken {
            left[*key] -= 1;
        }
        chosen[at] = taken;
    }
    Some(chosen.into_iter().flatten().map(|key| keys[key].0).collect())
}

/// Returns `count` different keys, in ascending order, each by the number of rows that it has left. `remaining` is the number of keys of the first side
/// that have not chosen, with this one. None if there are too few.
fn taken(left: &[u64], count: u64, remaining: u64, draw: Draw) -> Option<Vec<usize>> {
    if left.iter().any(|rows| *rows > remaining) {
        return None;
    }
    let of = |is_in: &dyn Fn(u64) -> bool| (0..left.len()).filter(|key| is_in(left[*key])).collect();
    // A key with a row left for each of those that remain comes in all of them.
    let mut taken: Vec<usize> = of(&|rows| rows == remaining);
    let mut open: Vec<usize> = of(&|rows| rows > 0 && rows < remaining);
    while (taken.len() as u64) < count {
        let wanted = count - taken.len() as u64;
        if (open.len() as u64) < wanted {
            return None;
        }
        let sum: u64 = open.iter().map(|key| left[*key]).sum();
        let (always, others): (Vec<usize>, Vec<usize>) =
            open.into_iter().partition(|key| left[*key] * wanted >= sum);
        if always.is_empty() {
            taken.extend(at_equal_distances(left, &others, wanted, sum, draw));
            break;
        }
        taken.extend(always);
        open = others;
    }
    taken.sort_unstable();
    (taken.len() as u64 == count).then_some(taken)
}

/// Returns some of the keys, at equal distances on a line on which each has a length by the rows that it has left, together `sum`. None is as long as the
/// distance.
fn at_equal_distances(
    left: &[u64],
    keys: &[usize],
    wanted: u64,
    sum: u64,
    mut draw: Draw,
) -> impl Iterator<Item = usize> {
    let mut before = draw.below(sum.max(1));
    let is_hit = move |key: &&usize| {
        let begin = before;
        before += left[**key] * wanted;
        before / sum > begin / sum
    };
    keys.iter().filter(is_hit).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// The keys of each group, after a check that each comes as often as it is to, and no pair twice.
    fn made(groups: &[u64], keys: &[(u64, u64)], seed: u64) -> Vec<Vec<u64>> {
        let mut rest = listed(groups, keys, Stream::new(seed, &["t", "c"])).unwrap();
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for key in &rest {
            *counts.entry(*key).or_default() += 1;
        }
        let wanted: BTreeMap<u64, u64> = keys.iter().copied().filter(|(_, rows)| *rows > 0).collect();
        assert_eq!(counts, wanted);
        let mut all = Vec::new();
        for group in groups {
            let after = rest.split_off(usize::try_from(*group).unwrap());
            assert!(rest.is_sorted_by(|one, next| one < next), "{rest:?}");
            all.push(std::mem::replace(&mut rest, after));
        }
        all
    }

    /// Two playlists have nearly all tracks, the others few.
    #[test]
    fn each_key_comes_as_often_as_it_is_to() {
        let groups = [3_290, 213, 1_477, 3_290, 1, 213, 39, 75, 25, 25, 25, 1, 15, 26];
        for seed in 0..4 {
            // 1,946 tracks are in two playlists, 1,446 in three, 70 in four and 41 in five.
            let rows = |track: u64| match track * 1_013 % 3_503 {
                0..1_946 => 2,
                1_946..3_392 => 3,
                3_392..3_462 => 4,
                _ => 5,
            };
            let keys: Vec<(u64, u64)> = (0..3_503).map(|track| (10 * track, rows(track))).collect();
            let lists = made(&groups, &keys, seed);
            let large: BTreeSet<u64> = lists[0].iter().chain(&lists[3]).copied().collect();
            assert!(large.len() > 3_400, "{}", large.len());
        }
    }

    #[test]
    fn keys_of_equal_groups_come_all_over_them() {
        // Half of the groups have the first product; which, depends on chance.
        let groups = [3; 60];
        let mut keys = vec![(0, 30)];
        keys.extend((1..31).map(|key| (key, 5)));
        let made = made(&groups, &keys, 1);
        let first: Vec<bool> = made.iter().map(|group| group.contains(&0)).collect();
        let halves = [&first[..30], &first[30..]].map(|half| half.iter().filter(|has| **has).count());
        assert!(halves.iter().all(|has| (8..=22).contains(has)), "{halves:?}");
    }

    #[test]
    fn all_keys_of_all_groups() {
        assert_eq!(made(&[3, 3], &[(4, 2), (5, 2), (6, 2)], 1), [[4, 5, 6], [4, 5, 6]]);
        assert_eq!(made(&[1], &[(7, 1), (8, 0)], 1), [[7]]);
    }

    #[test]
    fn rows_that_do_not_fit_together_are_not_listed() {
        let stream = Stream::new(1, &["t", "c"]);
        assert_eq!(listed(&[1, 1], &[(0, 3)], stream), None, "more rows");
        assert_eq!(listed(&[2, 1], &[(0, 3)], stream), None, "more rows than groups");
        assert_eq!(listed(&[3, 1], &[(0, 2), (1, 2)], stream), None, "too few keys");
        let many = vec![1; 6_000];
        let keys: Vec<(u64, u64)> = (0..6_000).map(|key| (key, 1)).collect();
        assert_eq!(listed(&many, &keys, stream), None, "too many");
    }
}
