//! Columns that CHECKs put in order: `placed <= paid`, `paid <= shipped`.

use std::collections::BTreeSet;

use model::ColumnRole;

use crate::condition::{Condition, Names, Operator};
use crate::info::TableInfo;
use crate::mentioned::columns_in;

/// The condition of a CHECK of several columns.
enum Demand {
    Order(Order),
    /// Something else, of these columns.
    Other(Vec<String>),
}

/// Two columns that ascend.
struct Order {
    lesser: String,
    greater: String,
    is_strict: bool,
}

/// The role of a column that CHECKs tie to others, if all CHECKs of these columns put numbers or times in order, and none of them is above two
/// others.
pub(super) fn role(info: &TableInfo, column: &str) -> Option<ColumnRole> {
    let demands = demands(info);
    let orders = || {
        demands.iter().filter_map(|demand| match demand {
            Demand::Order(order) => Some(order),
            Demand::Other(_) => None,
        })
    };
    let is_tied = orders().any(|order| order.lesser == column || order.greater == column);
    if !is_tied || tangled(&demands).contains(column) {
        return None;
    }
    let above = orders().find(|order| order.greater == column);
    Some(above.map_or(ColumnRole::Free, |order| ColumnRole::Above {
        column: order.lesser.clone(),
        is_strict: order.is_strict,
    }))
}

/// The columns that no order of columns below each other describes, and those that are tied to them.
fn tangled(demands: &[Demand]) -> BTreeSet<&str> {
    let mut tangled = BTreeSet::new();
    let mut orders: Vec<&Order> = Vec::new();
    for demand in demands {
        match demand {
            Demand::Other(columns) => tangled.extend(columns.iter().map(String::as_str)),
            Demand::Order(order) => {
                if orders.iter().any(|other| other.greater == order.greater) {
                    tangled.insert(order.greater.as_str());
                }
                orders.push(order);
            }
        }
    }
    // Each column is above one at most: only around a cycle there are more steps than orders.
    for order in &orders {
        let below =
            |at: &str| orders.iter().find(|other| other.greater == at).map(|other| other.lesser.as_str());
        let mut at = Some(order.lesser.as_str());
        for _ in 0..orders.len() {
            at = at.and_then(below);
        }
        if at.is_some() {
            tangled.insert(order.greater.as_str());
        }
    }
    loop {
        let before = tangled.len();
        for order in &orders {
            if tangled.contains(order.lesser.as_str()) || tangled.contains(order.greater.as_str()) {
                tangled.extend([order.lesser.as_str(), order.greater.as_str()]);
            }
        }
        if tangled.len() == before {
            return tangled;
        }
    }
}

/// The demands of all CHECKs of several columns.
fn demands(info: &TableInfo) -> Vec<Demand> {
    let all = info.column_names();
    let of_check = |expression: &str| {
        let columns = columns_in(expression, &all);
        let others = || Demand::Other(columns.iter().map(|&name| name.to_owned()).collect());
        (columns.len() > 1).then(|| order(info, expression, &all).map_or_else(others, Demand::Order))
    };
    info.checks.iter().filter_map(|check| of_check(&check.expression)).collect()
}

/// The order that a condition demands of two columns of numbers or times.
fn order(info: &TableInfo, expression: &str, all: &[&str]) -> Option<Order> {
    let subject = |name: &str| Some(name.to_owned());
    let condition = Condition::parse(expression, Names { all, subject: &subject });
    let (left, operator, right) = pair(&condition)?;
    let (lesser, greater, is_strict) = match operator {
        Operator::Less => (left, right, true),
        Operator::LessOrEqual => (left, right, false),
        Operator::Greater => (right, left, true),
        Operator::GreaterOrEqual => (right, left, false),
        Operator::Equal | Operator::NotEqual => return None,
    };
    let kind = |name: &str| info.column(name)?.data_type.kind();
    let is_counted = kind(lesser) == kind(greater) && kind(lesser).is_some_and(|kind| kind.units().is_some());
    is_counted.then(|| Order { lesser: lesser.to_owned(), greater: greater.to_owned(), is_strict })
}

/// Two columns that are compared, unless one of them is NULL.
fn pair(condition: &Condition) -> Option<(&str, Operator, &str)> {
    match condition {
        Condition::Columns { left, operator, right } => Some((left, *operator, right)),
        Condition::Any(parts) => {
            let (nulls, others): (Vec<_>, Vec<_>) =
                parts.iter().partition(|part| matches!(part, Condition::Null { .. }));
            let [only] = others[..] else { return None };
            let found = pair(only)?;
            let is_of_pair = |part: &&Condition| matches!(part, Condition::Null { column } if *column == found.0 || *column == found.2);
            nulls.iter().all(is_of_pair).then_some(found)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(lesser: &str, greater: &str) -> Demand {
        Demand::Order(Order { lesser: lesser.to_owned(), greater: greater.to_owned(), is_strict: false })
    }

    #[test]
    fn chains_and_trees_are_orders() {
        assert!(tangled(&[order("a", "b"), order("b", "c"), order("a", "d")]).is_empty());
        // Above two columns, in a cycle, and beside another condition; and what is tied to these.
        let of = |demands: &[Demand]| tangled(demands).into_iter().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(of(&[order("a", "c"), order("b", "c"), order("x", "y")]), ["a", "b", "c"]);
        assert_eq!(
            of(&[order("a", "b"), order("b", "a"), order("b", "c"), order("x", "y")]),
            ["a", "b", "c"]
        );
        let other = Demand::Other(vec!["b".to_owned(), "z".to_owned()]);
        assert_eq!(of(&[order("a", "b"), other, order("x", "y")]), ["a", "b", "z"]);
    }
}
