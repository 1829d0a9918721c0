//! Shapes of tuples: the columns that are NULL, and those with a value that conditions name.
//!
//! Conditions such as `num_nonnulls(a, b, c) = 1` and `(kind = 'x') = (x_id IS NOT NULL)` accept few shapes, and hardly any
//! random tuple has one of these. So the server judges tuples of each shape, and candidates then have the shapes that pass.

use std::collections::{BTreeMap, BTreeSet};

use super::candidates::Unit;
use super::judge::Tuple;
use super::random::Random;

/// Most shapes that are tried.
const MOST: usize = 10_000;
/// Tuples of each shape that are tried, if the shapes are few.
const EACH: usize = 5;
/// Columns whose NULLs are tried in all combinations. Of more columns, at most two are NULL, or at most two are not.
const MOST_COMBINED: usize = 10;
/// Most columns whose NULLs are tried.
const MOST_NULLABLE: usize = 60;
/// Fractions of values near constants, in thousandths.
const NEAR: [u64; 4] = [0, 100, 500, 900];

/// The value of one unit in a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum UnitValue {
    /// Any value that conditions do not name.
    Other,
    /// A value of [`Unit::named`].
    Named(usize),
    /// NULL.
    Null,
}

/// The parts of all units.
pub(super) type Shape = Vec<UnitValue>;

/// The shapes that tuples of these units may have.
pub(super) fn all(units: &[Unit]) -> Vec<Shape> {
    let named: Vec<usize> = (0..units.len()).filter(|&at| !units[at].named.is_empty()).collect();
    let is_plain = |at: &usize| units[*at].nullable && units[*at].named.is_empty();
    let plain: Vec<usize> = (0..units.len()).filter(is_plain).take(MOST_NULLABLE).collect();
    let nulls = nulls(plain.len());
    let options: Vec<Vec<UnitValue>> = named.iter().map(|&at| options(&units[at])).collect();
    let combinations = options.iter().fold(1_usize, |all, options| all.saturating_mul(options.len()));
    let count = combinations.saturating_mul(nulls.len());
    let taken = count.min(MOST);
    let shape = |number: usize| {
        let mut shape = vec![UnitValue::Other; units.len()];
        let (mut left, mask) = (number % combinations, nulls[number / combinations]);
        for (at, options) in named.iter().zip(&options) {
            shape[*at] = options[left % options.len()];
            left /= options.len();
        }
        for (bit, at) in plain.iter().enumerate() {
            if mask >> bit & 1 == 1 {
                shape[*at] = UnitValue::Null;
            }
        }
        shape
    };
    // If there are too many, those that are tried lie all over.
    (0..taken).map(|number| shape(number * (count / taken))).collect()
}

/// The parts that a unit with named values can have.
fn options(unit: &Unit) -> Vec<UnitValue> {
    let named = (0..unit.named.len()).map(UnitValue::Named);
    let null = unit.nullable.then_some(UnitValue::Null);
    std::iter::once(UnitValue::Other).chain(named).chain(null).collect()
}

/// Sets of so many columns that are NULL, as bits; those of more columns begin with the sets of nearly all columns.
fn nulls(columns: usize) -> Vec<u64> {
    if columns <= MOST_COMBINED {
        return (0..1 << columns).collect();
    }
    let all = (1_u64 << columns) - 1;
    let one = (0..columns).map(|one| 1_u64 << one);
    let two = (0..columns).flat_map(|one| (0..one).map(move |other| 1 << one | 1 << other));
    let few: Vec<u64> = std::iter::once(0).chain(one).chain(two).collect();
    few.iter().map(|few| all ^ few).chain(few.iter().copied()).collect()
}

/// Tuples of each of these shapes, made of tuples without NULLs.
pub(super) fn tuples(shapes: &[Shape], units: &[Unit], plain: &[Tuple]) -> Vec<Tuple> {
    let each = (MOST / shapes.len().max(1)).clamp(1, EACH);
    let mut random = Random::new(0x5A9E);
    let mut tuples = Vec::with_capacity(each * shapes.len());
    for (shape, number) in shapes.iter().flat_map(|shape| (0..each).map(move |number| (shape, number))) {
        let Some(mut tuple) = plain.get(tuples.len() % plain.len().max(1)).cloned() else { break };
        form(&mut tuple, units, shape, &mut random, NEAR[number % NEAR.len()]);
        tuples.push(tuple);
    }
    tuples
}

/// Replaces three of four `tuples` by those of the same numbers in `plain`, which have no NULLs, in one of the shapes.
pub(super) fn mix(tuples: &mut [Tuple], plain: Vec<Tuple>, units: &[Unit], shapes: &[Shape], round: u64) {
    let mut random = Random::new(round ^ 0x5A9E);
    for (number, (tuple, plain)) in tuples.iter_mut().zip(plain).enumerate() {
        if number % 4 == 3 {
            continue;
        }
        *tuple = plain;
        let near = NEAR[number / shapes.len() % NEAR.len()];
        form(tuple, units, &shapes[number % shapes.len()], &mut random, near);
    }
}

/// Gives the tuple the shape. A fraction of the other values, thousandths, are near constants.
fn form(tuple: &mut Tuple, units: &[Unit], shape: &Shape, random: &mut Random, near: u64) {
    for (unit, part) in units.iter().zip(shape) {
        match *part {
            UnitValue::Null => unit.columns.iter().for_each(|&column| tuple[column] = None),
            UnitValue::Named(at) => tuple[unit.columns[0]] = Some(unit.named[at].clone()),
            UnitValue::Other if !unit.near.is_empty() && random.below(1000) < near => {
                tuple[unit.columns[0]] = Some(random.one_of(&unit.near).clone());
            }
            UnitValue::Other => {}
        }
    }
}

/// The shape of a tuple whose values are as the server writes them.
pub(super) fn of(tuple: &Tuple, units: &[Unit]) -> Shape {
    let part = |unit: &Unit| {
        if unit.columns.iter().all(|&column| tuple[column].is_none()) {
            return UnitValue::Null;
        }
        let is_value = |named: &String| tuple[unit.columns[0]].as_ref() == Some(named);
        unit.named.iter().position(is_value).map_or(UnitValue::Other, UnitValue::Named)
    };
    units.iter().map(part).collect()
}

/// About `enough` tuples at most, the same number of each shape: those of rare shapes several times.
pub(super) fn balanced(tuples: &BTreeSet<Tuple>, units: &[Unit], enough: usize) -> Vec<Tuple> {
    in_equal_shares(tuples.iter().map(|tuple| (of(tuple, units), tuple)), enough)
}

/// About `enough` tuples at most, the same number of each class: those of rare classes several times.
pub(super) fn in_equal_shares<'t, C: Ord>(
    classed: impl Iterator<Item = (C, &'t Tuple)>,
    enough: usize,
) -> Vec<Tuple> {
    let mut by_class: BTreeMap<C, Vec<&Tuple>> = BTreeMap::new();
    for (class, tuple) in classed {
        by_class.entry(class).or_default().push(tuple);
    }
    let most = by_class.values().map(Vec::len).max().unwrap_or(0);
    let share = most.min((enough / by_class.len().max(1)).max(1));
    let some = |alike: &Vec<&Tuple>| {
        // Of many, from all over.
        let place =
            |number| if alike.len() > share { number * alike.len() / share } else { number % alike.len() };
        (0..share).map(|number| alike[place(number)].clone()).collect::<Vec<Tuple>>()
    };
    by_class.values().flat_map(some).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(column: usize, nullable: bool, named: &[&str]) -> Unit {
        let named = named.iter().map(|&text| text.to_owned()).collect();
        Unit { columns: vec![column], nullable, near: Vec::new(), named }
    }

    #[test]
    fn all_shapes_of_few_columns() {
        let units =
            [unit(0, false, &["x", "y"]), unit(1, true, &[]), unit(2, true, &[]), unit(3, false, &[])];
        let shapes: BTreeSet<Shape> = all(&units).into_iter().collect();
        assert_eq!(shapes.len(), 3 * 4);
        let tuple = vec![Some("y".to_owned()), None, Some("1".to_owned()), Some("2".to_owned())];
        let shape = of(&tuple, &units);
        assert_eq!(shape, [UnitValue::Named(1), UnitValue::Null, UnitValue::Other, UnitValue::Other]);
        assert!(shapes.contains(&shape));
    }

    #[test]
    fn of_many_columns_all_but_one_are_null() {
        let units: Vec<Unit> = (0..20).map(|column| unit(column, true, &[])).collect();
        let shapes = all(&units);
        assert!(shapes.len() < MOST, "{}", shapes.len());
        for at in 0..20 {
            let mut shape = vec![UnitValue::Null; 20];
            shape[at] = UnitValue::Other;
            assert!(shapes.contains(&shape), "{at}");
        }
    }

    #[test]
    fn rare_shapes_get_a_share() {
        let units = [unit(0, true, &[])];
        let values = (0..99).map(|number| vec![Some(number.to_string())]);
        let tuples: BTreeSet<Tuple> = values.chain([vec![None]]).collect();
        let balanced = balanced(&tuples, &units, 1_000);
        assert_eq!(balanced.iter().filter(|tuple| tuple[0].is_none()).count(), 99);
        assert_eq!(balanced.len(), 2 * 99);
    }

    #[test]
    fn tuples_get_their_shape() {
        let units = [unit(0, true, &["x"]), unit(1, true, &[])];
        let shapes = [vec![UnitValue::Named(0), UnitValue::Null]];
        let plain = || vec![vec![Some("1".to_owned()), Some("2".to_owned())]; 8];
        let mut tuples = plain();
        mix(&mut tuples, plain(), &units, &shapes, 0);
        assert_eq!(tuples.iter().filter(|tuple| of(tuple, &units) == shapes[0]).count(), 6);
    }
}
