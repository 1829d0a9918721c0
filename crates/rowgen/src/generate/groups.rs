//! Rows in groups of different sizes, as orders have different numbers of lines.

use std::sync::Arc;

use crate::Shared;

/// [`Shared`] rows whose groups have sizes of their own.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    rows: u64,
    /// Rows of all groups before they are stretched to `rows`.
    unstretched: u64,
    /// Sums of the sizes before each group, until they repeat, and of all.
    before: Arc<[u64]>,
    is_member: bool,
}

impl Groups {
    /// `shared` has sizes, not all of them 0.
    pub(super) fn new(shared: &Shared) -> Self {
        let sums = shared.sizes.iter().scan(0, |sum: &mut u64, size| {
            *sum += u64::from(*size);
            Some(*sum)
        });
        let before: Arc<[u64]> = std::iter::once(0).chain(sums).collect();
        let mut groups =
            Self { rows: shared.rows, unstretched: 0, before, is_member: shared.member.is_some() };
        groups.unstretched = groups.sum(shared.groups).max(1);
        groups
    }

    /// Rows of all groups before this one, not stretched.
    fn sum(&self, group: u64) -> u64 {
        let cycle = self.before.len() as u64 - 1;
        let rest = usize::try_from(group % cycle).expect("below the cycle");
        group / cycle * self.before[self.before.len() - 1] + self.before[rest]
    }

    /// The first row of a group, or of the next one if it has none.
    fn first(&self, group: u64) -> u64 {
        scaled(self.sum(group), self.rows, self.unstretched)
    }

    /// The number of a row's group, or of the row within its group.
    #[inline]
    pub(super) fn number(&self, row: u64) -> u64 {
        let place = scaled(row, self.unstretched, self.rows.max(1));
        let (cycle, whole) = (self.before.len() as u64 - 1, self.before[self.before.len() - 1].max(1));
        let within = self.before.partition_point(|before| *before <= place % whole) as u64;
        let mut group = place / whole * cycle + within.saturating_sub(1);
        // Rounding may be off by a row.
        while group > 0 && self.first(group) > row {
            group -= 1;
        }
        while self.first(group + 1) <= row.min(self.rows - 1) {
            group += 1;
        }
        if self.is_member { row.saturating_sub(self.first(group)) } else { group }
    }
}

/// A number times one number by another.
fn scaled(number: u64, times: u64, by: u64) -> u64 {
    u64::try_from(u128::from(number) * u128::from(times) / u128::from(by)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Member;

    #[test]
    fn groups_have_their_sizes_and_members_are_counted() {
        let sizes: Arc<[u32]> = [3, 0, 1, 7].into();
        for (rows, groups) in [(1_100, 400), (1_090, 400), (1_110, 400), (7, 3), (1_000_003, 363_636)] {
            let shared = |member| Shared { rows, groups, member, sizes: Arc::clone(&sizes) };
            let (group, member) = (Groups::new(&shared(None)), Groups::new(&shared(Some(Member::Counted))));
            let mut counts = vec![0_u64; usize::try_from(groups).unwrap()];
            for row in 0..rows {
                let of = usize::try_from(group.number(row)).unwrap();
                assert_eq!(member.number(row), counts[of], "row {row} of {rows}");
                counts[of] += 1;
            }
            for (at, count) in counts.iter().enumerate().take(400).skip(4) {
                let wanted = u64::from(sizes[at % 4]);
                assert!(count.abs_diff(wanted) <= 1, "{at} of {groups}: {count}, {wanted}");
            }
        }
    }
}
