//! CHECKs that only some partitions of a table have, as CHECKs of the table: they hold for the rows of these partitions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::info::{CheckInfo, LeafInfo, TableInfo};
use super::mentioned::columns_in;

/// The part of the rows for which a CHECK holds, and its condition on them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Within {
    /// The bounds of the partitions that have the CHECK.
    bounds: String,
    /// The condition as the server prints it.
    condition: String,
}

impl Within {
    /// Whether the condition is on columns of the partition key alone. Then it most likely follows from the bounds: it was added
    /// for ATTACH PARTITION.
    pub(crate) fn is_of_key(&self, all: &[&str]) -> bool {
        let keys = columns_in(&self.bounds, all);
        columns_in(&self.condition, all).iter().all(|column| keys.contains(column))
    }

    /// Whether the condition is on other columns than those of the partition key.
    fn is_independent(&self, all: &[&str]) -> bool {
        let keys = columns_in(&self.bounds, all);
        !columns_in(&self.condition, all).iter().any(|column| keys.contains(column))
    }
}

/// The CHECKs of partitions that are not among those of the table. A condition of all partitions is one of all rows.
pub(super) fn of_partitions(own: &[CheckInfo], leaves: &[(LeafInfo, Vec<CheckInfo>)]) -> Vec<CheckInfo> {
    let mut by_condition: BTreeMap<&str, Vec<(&LeafInfo, &CheckInfo)>> = BTreeMap::new();
    for (leaf, checks) in leaves {
        for check in checks {
            let with_it = by_condition.entry(&check.expression).or_default();
            if with_it.last().is_none_or(|(last, _)| last.name != leaf.name) {
                with_it.push((leaf, check));
            }
        }
    }
    by_condition.retain(|condition, _| own.iter().all(|check| check.expression != *condition));
    by_condition.into_values().filter_map(|with_it| combined(&with_it, leaves.len())).collect()
}

/// A CHECK of some of so many partitions as one of the table.
fn combined(with_it: &[(&LeafInfo, &CheckInfo)], leaves: usize) -> Option<CheckInfo> {
    let [(leaf, check), others @ ..] = with_it else { return None };
    let bounds: Option<Vec<&str>> = with_it.iter().map(|(leaf, _)| leaf.bound.as_deref()).collect();
    let Some(bounds) = bounds.filter(|_| with_it.len() < leaves) else { return Some((*check).clone()) };
    let (bounds, condition) = (bounds.join(" OR "), check.expression.clone());
    let name = match others.len() {
        0 => format!("{} of {}", check.name, leaf.name),
        1 => format!("{} of {} and 1 other partition", check.name, leaf.name),
        others => format!("{} of {} and {others} other partitions", check.name, leaf.name),
    };
    Some(CheckInfo {
        name,
        expression: format!("((NOT ({bounds})) OR ({condition}))"),
        within: Some(Within { bounds, condition }),
    })
}

impl TableInfo {
    /// The table as if CHECKs of single partitions were its own, where these are on other columns than the partition key. None if
    /// there are no such CHECKs.
    pub(super) fn with_checks_for_all_rows(&self) -> Option<Self> {
        let all = self.column_names();
        let for_all = |check: &CheckInfo| match &check.within {
            Some(within) if within.is_independent(&all) => {
                CheckInfo { name: check.name.clone(), expression: within.condition.clone(), within: None }
            }
            _ => check.clone(),
        };
        let checks: Vec<CheckInfo> = self.checks.iter().map(for_all).collect();
        (checks != self.checks).then(|| Self { checks, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expression: &str) -> CheckInfo {
        CheckInfo { name: name.to_owned(), expression: expression.to_owned(), within: None }
    }

    fn leaf<const N: usize>(number: u32, checks: [CheckInfo; N]) -> (LeafInfo, Vec<CheckInfo>) {
        let leaf = LeafInfo { name: format!("public.t_{number}"), bound: Some(format!("(k = {number})")) };
        (leaf, checks.into())
    }

    #[test]
    fn a_check_holds_for_the_rows_of_the_partitions_that_have_it() {
        let some = check("positive", "(n > 0)");
        let other = check("other", "(n > 0)");
        let leaves = [leaf(1, [some]), leaf(2, []), leaf(3, [other])];
        let found = of_partitions(&[], &leaves);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name, "positive of public.t_1 and 1 other partition");
        assert_eq!(found[0].expression, "((NOT ((k = 1) OR (k = 3))) OR ((n > 0)))");
    }

    #[test]
    fn a_check_of_the_table_or_of_all_partitions_holds_for_all_rows() {
        let some = check("positive", "(n > 0)");
        let leaves = [leaf(1, [some.clone()]), leaf(2, [some.clone()])];
        assert_eq!(of_partitions(&[], &leaves), [some]);
        assert!(of_partitions(&[check("own", "(n > 0)")], &leaves).is_empty());
    }

    #[test]
    fn a_check_of_the_key_is_told_from_others() {
        let all = ["k", "n"];
        for (condition, is_of_key, is_independent) in
            [("(k < 5)", true, false), ("(n > k)", false, false), ("(n > 0)", false, true)]
        {
            let within = Within { bounds: "(k = 1)".to_owned(), condition: condition.to_owned() };
            assert_eq!((within.is_of_key(&all), within.is_independent(&all)), (is_of_key, is_independent));
        }
    }
}
