//! Unique keys: which columns take their values in turn, so that no two rows have the same key.

use std::sync::Arc;

use rowgen::{Member, Paired, PairedKeys, Pick, Shared, Spread, Turn};

use super::error::CatalogError;
use super::info::KeyInfo;

/// A part of a key: a column, or the columns of foreign keys that are decided together.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Name of the part, as texts for people show it.
    pub(super) name: String,
    /// Columns of the part.
    pub(super) columns: Vec<String>,
    /// Number of different values that it can have.
    pub(super) count: u64,
    /// How the part is made unique.
    pub(super) way: Uniqueness,
    /// Whether the table has none of these values yet.
    pub(super) fresh: bool,
    /// Whether the part also makes a key unique that has only some of the part's columns.
    pub(super) distinct: bool,
    /// The turn by which its value changes from row to row, once a key needs one.
    pub(super) turn: Option<Turn>,
    /// Instead of the turn: groups or pairs, where a key has two parts and the number of rows is known.
    pub(super) pick: Option<Pick>,
    /// How often each value comes; none if nothing is said of it.
    pub(super) spread: Option<Spread>,
}

impl Part {
    /// Numbers of rows that have a value, each with the fraction of the values that so many rows have;
    /// empty if nothing is said of it.
    fn weights(&self) -> &[(f64, f64)] {
        self.spread.as_ref().map_or(&[], |spread| &spread.weights)
    }
}

/// How a part is made unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Uniqueness {
    /// It is unique without pgrig: a sequence, a random uuid, a spec of the user's.
    Already,
    /// It has few values: all are used before one is used again.
    Few,
    /// It has many values, and they are numbered. Beside a part with few values it counts within
    /// each of these, as lines 1, 2, 3 of each order.
    Numbered,
    /// It has many values, and each row gets its own.
    Own,
    /// pgrig cannot make it unique: the user's spec or the server's default decides on its values.
    No,
}

/// Largest number of rows of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MostRows {
    /// Number of rows.
    pub rows: u64,
    /// The reason for the limit, as a sentence without its full stop.
    pub why: String,
    /// The unique key that limits them; none if a sequence does.
    pub key: Option<String>,
}

/// A key and the parts that it can be made unique by.
pub(super) struct Wanted<'a> {
    pub(super) key: &'a KeyInfo,
    /// The columns that it is computed from and that are in no foreign key; none if all are in one.
    pub(super) columns: Option<Box<[String]>>,
    /// Of each foreign key that may be NULL, so that the key does not conflict, the columns that may be.
    pub(super) nulls: Box<[Vec<String>]>,
    /// Indexes of parts that are whole in the key.
    pub(super) parts: Vec<usize>,
    /// Whether the user's specs decide on some of its columns, and so on its uniqueness.
    pub(super) given: bool,
}

/// The turns that were given to parts, for all keys together.
#[derive(Debug, Default)]
pub(super) struct Assigned {
    pub(super) most: Option<MostRows>,
    /// Keys whose uniqueness is left to the user's specs.
    pub(super) trusted: Vec<String>,
}

/// The rows to make.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Made {
    /// How many, if that is known.
    pub(super) rows: Option<u64>,
    /// Whether every key of both sides of a relation is used. The turns then depend on the number
    /// of rows, so rows cannot be added later.
    pub(super) uses_all_keys: bool,
}

/// Gives turns to parts until all keys are unique; keys with fewer parts leave less choice and come
/// first.
///
/// `first_row` rows are there already, made by the same turns. `rows` is how many will be made, if that is known.
pub(super) fn assign(
    table: &str,
    parts: &mut [Part],
    mut keys: Vec<Wanted<'_>>,
    first_row: u64,
    made: Made,
) -> Result<Assigned, CatalogError> {
    let made = Made { rows: made.rows.filter(|_| first_row == 0), ..made };
    keys.sort_by_key(|wanted| wanted.parts.len());
    let mut assigned = Assigned::default();
    let mut unique: Vec<Vec<usize>> = Vec::new();
    for wanted in keys {
        if unique.iter().any(|known| known.iter().all(|part| wanted.parts.contains(part))) {
            continue;
        }
        let has_own = |&part: &usize| parts[part].way == Uniqueness::Already;
        if let Some(&part) = wanted.parts.iter().find(|part| has_own(part)) {
            unique.push(vec![part]);
            let why = || format!("column {} has no more values", parts[part].name);
            assigned.limit(parts[part].count, Some(wanted.key), why);
            continue;
        }
        match turning(parts, &wanted) {
            Some(turning) => {
                let rows = take_turns(parts, &turning, &wanted.key.name, made);
                let fresh = turning.iter().any(|&part| parts[part].fresh);
                let rows = if fresh { rows } else { rows.saturating_sub(first_row) };
                assigned.limit(rows, Some(wanted.key), || reason(parts, &turning, wanted.key));
                unique.push(turning);
            }
            None if wanted.given => assigned.trusted.push(wanted.key.name.clone()),
            None => {
                return Err(CatalogError::Key {
                    table: table.to_owned(),
                    key: wanted.key.name.clone(),
                    definition: wanted.key.definition.clone(),
                    columns: wanted.columns,
                    nulls: wanted.nulls,
                });
            }
        }
    }
    Ok(assigned)
}

impl Assigned {
    /// Takes note that there are no more rows than that, because of the key or something else.
    pub(super) fn limit(&mut self, rows: u64, key: Option<&KeyInfo>, why: impl Fn() -> String) {
        let fewer = self.most.as_ref().is_none_or(|most| rows < most.rows);
        if rows < u64::MAX && fewer {
            self.most = Some(MostRows { rows, why: why(), key: key.map(|key| key.name.clone()) });
        }
    }
}

/// The parts that take turns to make the key unique, the fastest first; none if no such parts are
/// left.
fn turning(parts: &[Part], wanted: &Wanted<'_>) -> Option<Vec<usize>> {
    let free = |way: Uniqueness| {
        wanted.parts.iter().copied().filter(move |&part| parts[part].turn.is_none() && parts[part].way == way)
    };
    let few = || free(Uniqueness::Few);
    let many = free(Uniqueness::Numbered).find(|&part| parts[part].count >= MANY);
    let turning: Vec<usize> = match (many, free(Uniqueness::Own).next()) {
        (Some(many), _) => few().chain([many]).collect(),
        (None, Some(own)) => vec![own],
        (None, None) => few().chain(free(Uniqueness::Numbered)).collect(),
    };
    (!turning.is_empty()).then_some(turning)
}

/// From this number of values on, a part can number the rows by itself.
const MANY: u64 = 1_000_000;

/// Gives each part its turn, as a digit of the row number. Returns how many rows that makes unique.
/// The last part has no end: the number of rows is limited instead.
fn take_turns(parts: &mut [Part], turning: &[usize], key: &str, made: Made) -> u64 {
    if let Some(rows) = made.rows
        && let [others @ .., numbered] = turning
        && !others.is_empty()
        && parts[*numbered].way == Uniqueness::Numbered
        && parts[others[0]].weights().is_empty()
        && rows.is_multiple_of(combinations(parts, others))
    {
        return in_order(parts, others, *numbered, rows);
    }
    if let (Some(rows), &[first, second]) = (made.rows, turning)
        && let Some(most) = pair(parts, key, (first, second), rows)
    {
        return most;
    }
    if let (Some(rows), &[first, second]) = (made.rows, turning)
        && (made.uses_all_keys || parts[second].way == Uniqueness::Numbered)
        && let Some(most) = share(parts, first, second, rows)
    {
        return most;
    }
    turning.iter().enumerate().fold(1_u64, |every, (at, &part)| {
        let count = parts[part].count;
        let of = if at + 1 == turning.len() { u64::MAX } else { count };
        parts[part].turn = Some(Turn { every, of });
        every.saturating_mul(count)
    })
}

/// Pairs the values of two parts, each value as often as its spread says. None if nothing is said of either part, or if there are more
/// rows than pairs.
fn pair(parts: &mut [Part], key: &str, of: (usize, usize), rows: u64) -> Option<u64> {
    let side = |at: usize| {
        let even = Spread {
            distinct: -1.0,
            correlation: 0.0,
            common: Vec::new(),
            bounds: Vec::new(),
            weights: Vec::new(),
        };
        PairedKeys { keys: parts[at].count, spread: parts[at].spread.clone().unwrap_or(even) }
    };
    let (mut first, mut second) = of;
    let most = parts[first].count.saturating_mul(parts[second].count);
    let has_few = [first, second].iter().all(|at| parts[*at].way == Uniqueness::Few);
    let is_said = [first, second].iter().any(|at| parts[*at].spread.is_some());
    if !has_few || !is_said || !(1..=most).contains(&rows) {
        return None;
    }
    // The order of the rows is that of the side that correlates with it.
    if side(second).spread.correlation.abs() > side(first).spread.correlation.abs() {
        (first, second) = (second, first);
    }
    let paired =
        Paired { name: key.to_owned(), rows, first: side(first), second: side(second), is_second: false };
    for (part, is_second) in [(first, false), (second, true)] {
        parts[part].turn = Some(Turn::EACH);
        parts[part].pick = Some(Pick::Paired(Box::new(Paired { is_second, ..paired.clone() })));
    }
    Some(most)
}

/// Divides the rows among the first part's values, evenly or by its weights, as lines are divided
/// among orders: keys ascend with the rows. None if there are fewer rows than values, or more rows than the second
/// part has room for.
fn share(parts: &mut [Part], first: usize, second: usize, rows: u64) -> Option<u64> {
    let (groups, members) = (parts[first].count, parts[second].count);
    if groups == 0 || rows.div_ceil(groups) > members || parts[second].way == Uniqueness::Own {
        return None;
    }
    let is_counted = parts[second].way == Uniqueness::Numbered;
    let sizes = if is_counted { sizes(parts[first].weights(), groups) } else { Arc::default() };
    let sizes = if fits(&sizes, groups, rows, members) { sizes } else { Arc::default() };
    // By weights, some values may have no rows.
    if sizes.is_empty() && rows < groups {
        return None;
    }
    let member =
        if parts[second].way == Uniqueness::Numbered { Member::Counted } else { Member::Of(members) };
    for (part, member) in [(first, None), (second, Some(member))] {
        parts[part].turn = Some(Turn::EACH);
        let shared = Shared { rows, groups, member, sizes: Arc::clone(&sizes) };
        parts[part].pick = Some(Pick::Shared(shared));
    }
    Some(groups.saturating_mul(members))
}

/// Most groups after which their sizes repeat.
const CYCLE: u64 = 1_024;

/// Sizes of groups by weights: numbers of rows, each with the fraction of the groups that have so many.
fn sizes(weights: &[(f64, f64)], groups: u64) -> Arc<[u32]> {
    let all: f64 = weights.iter().map(|(_, fraction)| fraction).sum();
    let cycle = groups.min(CYCLE);
    let size = |at: u64| {
        // Any groups that follow each other have sizes from all over: 619/1024 is near the golden ratio.
        let place = at * 619 % CYCLE * cycle / CYCLE;
        let mut left = (place as f64 + 0.5) / cycle as f64 * all;
        let found = weights.iter().find(|(_, fraction)| {
            left -= fraction;
            left < 0.0
        });
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of rows")]
        found.map_or(0, |(rows, _)| rows.round() as u32)
    };
    let sizes: Arc<[u32]> = if weights.is_empty() { Arc::default() } else { (0..cycle).map(size).collect() };
    if sizes.iter().all(|size| *size == 0) { Arc::default() } else { sizes }
}

/// Whether the largest group has no more rows than there are members, once all groups are stretched to
/// the rows.
fn fits(sizes: &[u32], groups: u64, rows: u64, members: u64) -> bool {
    let sum: f64 = sizes.iter().map(|size| f64::from(*size)).sum();
    let most = sizes.iter().max().copied().map_or(0.0, f64::from);
    let stretch = rows as f64 / (sum / sizes.len().max(1) as f64 * groups as f64).max(1.0);
    (most * stretch).ceil() <= members as f64
}

/// Number of combinations of the values of these parts.
fn combinations(parts: &[Part], of: &[usize]) -> u64 {
    of.iter().fold(1_u64, |all, part| all.saturating_mul(parts[*part].count)).max(1)
}

/// Counts the numbered part within each combination of the others, as far as `rows` requires: lines
/// 1, 2, 3 of the first order, then those of the second. Keys then ascend with the rows. All
/// combinations get the same number of rows.
fn in_order(parts: &mut [Part], others: &[usize], numbered: usize, rows: u64) -> u64 {
    let combinations = combinations(parts, others);
    let most = combinations.saturating_mul(parts[numbered].count);
    let each = rows.div_ceil(combinations).clamp(1, parts[numbered].count.max(1));
    parts[numbered].turn = Some(Turn { every: 1, of: each });
    let mut every = each;
    for (at, &part) in others.iter().enumerate().rev() {
        let count = parts[part].count;
        parts[part].turn = Some(Turn { every, of: if at == 0 { u64::MAX } else { count } });
        every = every.saturating_mul(count);
    }
    most
}

fn reason(parts: &[Part], turning: &[usize], key: &KeyInfo) -> String {
    let counted = |&part: &usize| {
        let Part { name, count, .. } = &parts[part];
        format!("{count} {} of {name}", if *count == 1 { "value" } else { "values" })
    };
    let counts: Vec<String> = turning.iter().map(counted).collect();
    format!("{} ({}) allows no more rows: {}", key.name, key.definition, counts.join(" × "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::KeyElement;

    fn part(name: &str, count: u64, way: Uniqueness) -> Part {
        Part {
            name: name.into(),
            columns: vec![name.into()],
            count,
            way,
            fresh: false,
            distinct: false,
            turn: None,
            pick: None,
            spread: None,
        }
    }

    fn shared(part: &Part) -> Shared {
        match part.pick.clone() {
            Some(Pick::Shared(shared)) => shared,
            other => panic!("{other:?}"),
        }
    }

    fn spread(correlation: f64, weights: &[(f64, f64)]) -> Spread {
        let weights = weights.to_vec();
        Spread { distinct: -1.0, correlation, common: Vec::new(), bounds: Vec::new(), weights }
    }

    fn key(columns: &[&str]) -> KeyInfo {
        let element = |column: &&str| KeyElement {
            column: Some((*column).into()),
            expression: None,
            equality: true,
            overlap: false,
        };
        KeyInfo {
            name: format!("{}_key", columns.join("_")),
            primary: false,
            exclusion: false,
            elements: columns.iter().map(element).collect(),
            definition: format!("UNIQUE ({})", columns.join(", ")),
            index: String::new(),
            predicate: None,
        }
    }

    fn wanted<'a>(key: &'a KeyInfo, parts: &[Part]) -> Wanted<'a> {
        let parts = key
            .columns()
            .filter_map(|column| parts.iter().position(|part| part.columns.iter().any(|name| name == column)))
            .collect();
        let columns = Some(key.columns().map(str::to_owned).collect());
        Wanted { key, columns, nulls: Box::default(), parts, given: false }
    }

    fn assigned(parts: &mut [Part], keys: &[KeyInfo]) -> Result<Assigned, CatalogError> {
        let wanted = keys.iter().map(|key| wanted(key, parts)).collect();
        assign("t", parts, wanted, 0, Made::default())
    }

    fn made(rows: u64) -> Made {
        Made { rows: Some(rows), uses_all_keys: false }
    }

    #[test]
    fn lines_come_order_by_order_if_the_rows_are_known() {
        let mut parts = [part("order_id", 1000, Uniqueness::Few), part("line", 32_767, Uniqueness::Numbered)];
        let key = key(&["order_id", "line"]);
        let wanted = vec![wanted(&key, &parts)];
        let assigned = assign("t", &mut parts, wanted, 0, made(3000)).unwrap();
        assert_eq!(parts[0].turn, Some(Turn { every: 3, of: u64::MAX }));
        assert_eq!(parts[1].turn, Some(Turn { every: 1, of: 3 }));
        assert_eq!(assigned.most.unwrap().rows, 32_767_000);
    }

    #[test]
    fn orders_share_lines_that_are_no_multiple_of_them() {
        let mut parts = [part("order_id", 1000, Uniqueness::Few), part("line", 32_767, Uniqueness::Numbered)];
        let key = key(&["order_id", "line"]);
        let wanted = vec![wanted(&key, &parts)];
        assign("t", &mut parts, wanted, 0, made(3001)).unwrap();
        assert_eq!(
            shared(&parts[0]),
            Shared { rows: 3001, groups: 1000, member: None, sizes: Arc::default() }
        );
        assert_eq!(shared(&parts[1]).member, Some(Member::Counted));
    }

    #[test]
    fn orders_have_as_many_lines_as_their_weights_say() {
        let mut parts =
            [part("order_id", 5_000, Uniqueness::Few), part("line", 32_767, Uniqueness::Numbered)];
        parts[0].spread = Some(spread(1.0, &[(1.0, 0.5), (2.0, 0.25), (5.0, 0.25)]));
        let key = key(&["order_id", "line"]);
        let wanted = vec![wanted(&key, &parts)];
        // A multiple of the orders, which otherwise get the same number each.
        assign("t", &mut parts, wanted, 0, made(10_000)).unwrap();
        let sizes = shared(&parts[1]).sizes;
        let of = |wanted: u32| sizes.iter().filter(|size| **size == wanted).count();
        assert_eq!((sizes.len(), of(1), of(2), of(5)), (1_024, 512, 256, 256));
    }

    #[test]
    fn both_sides_of_a_relation_are_used_as_a_whole() {
        let mut parts = [part("part", 200, Uniqueness::Few), part("supplier", 100, Uniqueness::Few)];
        let key = key(&["part", "supplier"]);
        let wanted = vec![wanted(&key, &parts)];
        let made = Made { uses_all_keys: true, ..made(800) };
        let assigned = assign("t", &mut parts, wanted, 0, made).unwrap();
        assert_eq!(shared(&parts[1]).member, Some(Member::Of(100)));
        assert_eq!(assigned.most.unwrap().rows, 20_000);
    }

    #[test]
    fn keys_of_both_sides_of_a_relation_come_as_often_as_is_said() {
        let mut parts = [part("track", 200, Uniqueness::Few), part("list", 100, Uniqueness::Few)];
        (parts[0].spread, parts[1].spread) = (Some(spread(0.2, &[])), Some(spread(1.0, &[])));
        let key = key(&["track", "list"]);
        let wanted_keys = vec![wanted(&key, &parts)];
        let assigned = assign("t", &mut parts, wanted_keys, 0, made(800)).unwrap();
        let paired = |part: &Part| match part.pick.clone() {
            Some(Pick::Paired(paired)) => *paired,
            other => panic!("{other:?}"),
        };
        let (track, list) = (paired(&parts[0]), paired(&parts[1]));
        assert_eq!(
            (track.is_second, list.is_second, list.first.keys, list.second.keys),
            (true, false, 100, 200)
        );
        assert_eq!(assigned.most.unwrap().rows, 20_000);
        // Beyond all pairs, turns say how many rows there can be.
        let mut parts = [part("track", 20, Uniqueness::Few), part("list", 10, Uniqueness::Few)];
        parts[0].spread = Some(spread(1.0, &[]));
        let wanted_keys = vec![wanted(&key, &parts)];
        let assigned = assign("t", &mut parts, wanted_keys, 0, made(201)).unwrap();
        assert_eq!(assigned.most.unwrap().rows, 200);
    }

    #[test]
    fn lines_of_orders_are_counted_per_order() {
        let mut parts = [part("order_id", 1000, Uniqueness::Few), part("line", 32_767, Uniqueness::Numbered)];
        let assigned = assigned(&mut parts, &[key(&["order_id", "line"])]).unwrap();
        assert_eq!(parts[0].turn, Some(Turn { every: 1, of: 1000 }));
        assert_eq!(parts[1].turn, Some(Turn { every: 1000, of: u64::MAX }));
        assert_eq!(assigned.most.unwrap().rows, 32_767_000);
    }

    #[test]
    fn a_unique_part_is_enough() {
        let mut parts = [part("tenant", 10, Uniqueness::Few), part("id", u64::MAX, Uniqueness::Already)];
        let assigned = assigned(&mut parts, &[key(&["tenant", "id"])]).unwrap();
        assert!(parts.iter().all(|part| part.turn.is_none()));
        assert_eq!(assigned.most, None);
    }

    #[test]
    fn one_to_one_limits_the_rows() {
        let mut parts = [part("user_id", 50, Uniqueness::Few)];
        let most = assigned(&mut parts, &[key(&["user_id"])]).unwrap().most.unwrap();
        assert_eq!(most.rows, 50);
        assert!(most.why.contains("50 values of user_id"), "{}", most.why);
    }

    #[test]
    fn the_same_column_in_two_keys() {
        let mut parts = ["a", "b", "c", "d"].map(|name| part(name, 10, Uniqueness::Few));
        let keys = [key(&["a", "b"]), key(&["c", "d"]), key(&["a", "c"])];
        assert!(assigned(&mut parts, &keys).is_err());
    }
}
