//! Number of rows of each table: multiples of a base, or fixed numbers.

use catalog::TableInfo;

use super::order::{Placed, is_referenced};
use super::pairs;
use crate::error::FillError;
use crate::schema::request::{RowsRule, SchemaAmount, SchemaRequest, TableRows};

/// Rows of a table for each row of the largest one that it references.
const PER_PARENT: f64 = 3.0;
/// Greatest ratio of a table's rows to those of tables that reference nothing: it limits the growth
/// along chains of references.
const MOST_TIMES: f64 = 100.0;
/// Rows of tables that reference nothing, if the user gives no amount.
pub(super) const BASE: f64 = 10_000.0;

/// Rows of a table.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Share {
    /// A number that does not depend on the base.
    Fixed(u64),
    /// A multiple of the base.
    Times(f64),
    /// The place of another table, and the rows for each of its rows.
    Of(usize, f64),
}

/// A table's share of the rows, and the reason for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted {
    pub(super) share: Share,
    pub(super) why: String,
}

/// The number of rows that the keys of a table allow.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cap {
    /// The number, with the rows that other tables then had.
    pub(super) rows: u64,
    /// Places of tables before, of which each combination of rows has a key; and the rows that they had.
    pub(super) of: Vec<(usize, u64)>,
}

impl Cap {
    /// The number with these rows in the tables before, about.
    fn with(&self, before: &[u64]) -> u64 {
        let times = |(place, had): &(usize, u64)| before[*place] as f64 / (*had).max(1) as f64;
        whole(self.rows as f64 * self.of.iter().map(times).product::<f64>())
    }
}

/// The shares of all tables, in their order.
///
/// # Errors
/// If a rule names a table that is not to be filled, or if rules refer to each other in a cycle.
pub(super) fn shares(
    tables: &[TableInfo],
    order: &[Placed],
    request: &SchemaRequest,
) -> Result<Vec<Wanted>, FillError> {
    let place = |name: &str| find(tables, order, name);
    for rule in &request.rules {
        // A model may have more tables.
        if !matches!(rule.rows, TableRows::InProportion(_)) {
            place(&rule.table)?;
        }
    }
    let mut wanted: Vec<Wanted> = Vec::with_capacity(order.len());
    for at in 0..order.len() {
        let first = pairs::members(order, at).first().copied().filter(|first| *first < at);
        if let Some(first) = first {
            wanted.push(as_many_as(first, &wanted[first], &tables[order[first].table].name));
            continue;
        }
        let rule = rule_for(tables, order, request, at)?;
        wanted.push(match (rule, request.amount) {
            (Some(RowsRule { rows: TableRows::Exactly(rows), .. }), _) => {
                Wanted { share: Share::Fixed(*rows), why: "--rows".to_owned() }
            }
            (Some(RowsRule { rows: TableRows::InProportion(rows), .. }), _) => {
                Wanted { share: Share::Times(*rows as f64 / BASE), why: "model".to_owned() }
            }
            (Some(RowsRule { rows: TableRows::PerRow { number, of }, .. }), _) => {
                let of_place = place(of)?;
                if of_place >= at {
                    let rule = format!("--rows {}={number}*{of}", rule_name(rule));
                    return Err(FillError::Combination(not_before(
                        tables,
                        order,
                        request,
                        (at, of_place),
                        &rule,
                    )));
                }
                Wanted { share: Share::Of(of_place, *number), why: format!("{number} for each of {of}") }
            }
            (None, SchemaAmount::Rows(rows)) => {
                Wanted { share: Share::Fixed(scaled(rows, request.scale)), why: "--rows".to_owned() }
            }
            (None, SchemaAmount::Size(_) | SchemaAmount::Rules) => by_parents(tables, order, at, &wanted),
        });
    }
    Ok(wanted)
}

/// The share of a table whose rows are paired with those of another one.
fn as_many_as(first: usize, of: &Wanted, name: &str) -> Wanted {
    let share = if of.share == Share::Fixed(0) { Share::Fixed(0) } else { Share::Of(first, 1.0) };
    Wanted { share, why: format!("1 for each of {name}: they reference each other") }
}

/// The rule for the rows of a table; of tables whose rows are paired, the rule that the user gives for any of them.
///
/// # Errors
/// If rules would give such tables different numbers of rows.
fn rule_for<'a>(
    tables: &[TableInfo],
    order: &[Placed],
    request: &'a SchemaRequest,
    at: usize,
) -> Result<Option<&'a RowsRule>, FillError> {
    let info = |place: usize| &tables[order[place].table];
    let rule = |place: usize| request.rules.iter().find(|rule| is_named(info(place), &rule.table));
    let members = pairs::members(order, at);
    let rules: Vec<&RowsRule> = members.iter().filter_map(|&place| rule(place)).collect();
    let of_model =
        |rule: &&RowsRule| if let TableRows::InProportion(rows) = rule.rows { Some(rows) } else { None };
    let given: Vec<&RowsRule> = rules.iter().copied().filter(|rule| of_model(rule).is_none()).collect();
    let Some(&one) = given.first() else {
        return Ok(rules.into_iter().max_by_key(of_model).or_else(|| rule(at)));
    };
    let is_for_all = |rule: &&RowsRule| {
        rule.rows == one.rows
            && (matches!(rule.rows, TableRows::Exactly(_)) || is_named(info(at), &rule.table))
    };
    if given.iter().all(is_for_all) {
        return Ok(Some(one));
    }
    let names: Vec<&str> = members.iter().map(|&place| info(place).name.as_str()).collect();
    Err(FillError::Combination(format!(
        "--rows: {} reference each other row by row, so they get the same number of rows: give one number, --rows {}=NUMBER",
        listed(&names),
        info(at).name
    )))
}

/// Why the rows of a table cannot follow from those of another one, by their places; `rule` is the option.
fn not_before(
    tables: &[TableInfo],
    order: &[Placed],
    request: &SchemaRequest,
    (at, of): (usize, usize),
    rule: &str,
) -> String {
    let info = |place: usize| &tables[order[place].table];
    let (table, other) = (&info(at).name, &info(of).name);
    if at == of {
        return format!("{rule}: a table cannot depend on itself: give {table} a number of rows");
    }
    // The tables on which `of` depends by rules.
    let mut place = of;
    for _ in 0..order.len() {
        let rule_of = request.rules.iter().find(|rule| is_named(info(place), &rule.table));
        let Some(RowsRule { rows: TableRows::PerRow { of, .. }, .. }) = rule_of else { break };
        let Ok(next) = find(tables, order, of) else { break };
        if next == at {
            return format!(
                "{rule}: {other} itself depends on {table} by --rows: give one of them a number of rows"
            );
        }
        place = next;
    }
    let references = info(of).foreign_keys.iter().any(|key| is_referenced(key, info(at)));
    let why = if references { format!(", because {other} references {table}") } else { String::new() };
    format!(
        "{rule}: pgrig fills {table} before {other}{why}: write the rule as --rows {other}=NUMBER*{table}"
    )
}

fn rule_name(rule: Option<&RowsRule>) -> &str {
    rule.map_or("", |rule| &rule.table)
}

/// The default share: three rows for each row of the largest table that it references.
fn by_parents(tables: &[TableInfo], order: &[Placed], at: usize, before: &[Wanted]) -> Wanted {
    let table = &tables[order[at].table];
    let parents = (0..at).filter(|&other| {
        table.foreign_keys.iter().any(|key| is_referenced(key, &tables[order[other].table]))
    });
    let largest = parents
        .map(|parent| (parent, times(before, parent)))
        .max_by(|(_, one), (_, other)| one.total_cmp(other));
    match largest {
        None => Wanted { share: Share::Times(1.0), why: "references nothing".to_owned() },
        Some((parent, times)) => {
            let each = (MOST_TIMES / times).clamp(1.0, PER_PARENT);
            let name = &tables[order[parent].table].name;
            let why = format!("{each:.3} for each of {name}").replace(".000", "");
            // If the parent's keys leave no room for all its rows, this table still grows with the base.
            let share = match before[parent].share {
                Share::Times(times) => Share::Times(times * each),
                Share::Fixed(_) | Share::Of(..) => Share::Of(parent, each),
            };
            Wanted { share, why }
        }
    }
}

/// Approximate ratio of a table's rows to the base.
fn times(wanted: &[Wanted], at: usize) -> f64 {
    match wanted[at].share {
        Share::Fixed(rows) => rows as f64 / BASE,
        Share::Times(times) => times,
        Share::Of(of, number) => number * times(wanted, of),
    }
}

/// Rows of each table for a base, as far as keys allow.
pub(super) fn rows(wanted: &[Wanted], base: f64, caps: &[Option<Cap>]) -> Vec<u64> {
    let mut rows: Vec<u64> = Vec::with_capacity(wanted.len());
    for (Wanted { share, .. }, cap) in wanted.iter().zip(caps) {
        let most = cap.as_ref().map_or(u64::MAX, |cap| cap.with(&rows));
        let number = rows_of(share, base, &rows).min(most);
        rows.push(number);
    }
    rows
}

/// Rows of a table, given the rows of the tables before it.
pub(super) fn rows_of(share: &Share, base: f64, before: &[u64]) -> u64 {
    match share {
        Share::Fixed(rows) => *rows,
        Share::Times(times) => whole(times * base),
        Share::Of(of, number) => whole(number * before[*of] as f64),
    }
}

/// The base at which tables with these bytes per row come nearest to a size.
pub(super) fn base_for(
    wanted: &[Wanted],
    caps: &[Option<Cap>],
    size: u64,
    bytes: impl Fn(&[u64]) -> f64,
) -> f64 {
    let (mut low, mut high) = (0.0, 1e15);
    for _ in 0..200 {
        let middle = if low > 0.0 { f64::sqrt(low * high) } else { f64::sqrt(high) };
        if bytes(&rows(wanted, middle, caps)) < size as f64 {
            low = middle;
        } else {
            high = middle;
        }
        if high <= 1.0 {
            break;
        }
    }
    high
}

fn scaled(rows: u64, scale: f64) -> u64 {
    if (scale - 1.0).abs() < f64::EPSILON { rows } else { whole(rows as f64 * scale) }
}

fn whole(rows: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let whole = rows.round().clamp(1.0, 1e18) as u64;
    whole
}

/// Whether a name, with or without its schema, is the table's.
pub(super) fn is_named(table: &TableInfo, name: &str) -> bool {
    is_name_of((&table.schema, &table.name), name)
}

/// Whether a name that a user writes is that of this schema and table: with or without the schema, and with quotes as in SQL or
/// without.
pub fn is_name_of((schema, table): (&str, &str), name: &str) -> bool {
    // Names may hold dots and quotes themselves.
    if name.strip_prefix(schema).and_then(|rest| rest.strip_prefix('.')) == Some(table) {
        return true;
    }
    match &parts(name)[..] {
        [name] => table == *name,
        [of, name] => schema == *of && table == *name,
        _ => false,
    }
}

/// The parts of a name: dots and doubled quotes within quotes belong to a part.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut is_quoted, mut characters) = (false, name.chars().peekable());
    while let Some(character) = characters.next() {
        let part = parts.last_mut().expect("begins with one");
        match character {
            '"' if is_quoted && characters.next_if_eq(&'"').is_some() => part.push('"'),
            '"' => is_quoted = !is_quoted,
            '.' if !is_quoted => parts.push(String::new()),
            character => part.push(character),
        }
    }
    parts
}

fn find(tables: &[TableInfo], order: &[Placed], name: &str) -> Result<usize, FillError> {
    let mut found = (0..order.len()).filter(|&at| is_named(&tables[order[at].table], name));
    match (found.next(), found.next()) {
        (Some(at), None) => Ok(at),
        (Some(_), Some(_)) => {
            Err(FillError::Combination(format!("{name} is in several schemas: give schema.{name}")))
        }
        (None, _) => {
            let names: Vec<&str> = order.iter().map(|placed| tables[placed.table].name.as_str()).collect();
            Err(FillError::Combination(format!(
                "--rows: {name} is not one of the tables to fill; these are {}",
                listed(&names)
            )))
        }
    }
}

/// Names as the end of a sentence; of many, the first ones.
pub(super) fn listed(names: &[&str]) -> String {
    const MOST: usize = 10;
    match names.len().checked_sub(MOST) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..MOST].join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(share: Share) -> Wanted {
        Wanted { share, why: String::new() }
    }

    fn cap(rows: u64, of: &[(usize, u64)]) -> Cap {
        Cap { rows, of: of.to_vec() }
    }

    #[test]
    fn rows_follow_from_base_parents_and_what_keys_leave_room_for() {
        let all = [Share::Times(1.0), Share::Times(3.0), Share::Of(1, 2.0), Share::Fixed(7)].map(wanted);
        assert_eq!(rows(&all, 10.0, &[None, None, None, None]), [10, 30, 60, 7]);
        assert_eq!(rows(&all, 10.0, &[None, Some(cap(20, &[])), None, None]), [10, 20, 40, 7]);
    }

    #[test]
    fn what_keys_of_other_tables_leave_room_for_grows_with_these() {
        // One row for each of the first table, and one for each pair of the first two.
        let all = [1.0, 2.0, 3.0, 1e6].map(|times| wanted(Share::Times(times)));
        let caps = [None, None, Some(cap(100, &[(0, 100)])), Some(cap(20_000, &[(0, 100), (1, 200)]))];
        assert_eq!(rows(&all, 100.0, &caps), [100, 200, 100, 20_000]);
        assert_eq!(rows(&all, 1_237.0, &caps), [1_237, 2_474, 1_237, 1_237 * 2_474]);
        assert_eq!(rows(&all, 10.0, &caps), [10, 20, 10, 200]);
    }

    #[test]
    fn dots_and_quotes_within_quotes_belong_to_a_name() {
        for (name, expected) in [
            ("orders", &["orders"] as &[_]),
            ("shop.\"Orders\"", &["shop", "Orders"]),
            ("\"x.y\"", &["x.y"]),
            ("\"a \"\"b\"\"\".c", &["a \"b\"", "c"]),
        ] {
            assert_eq!(parts(name), expected, "{name}");
        }
    }

    #[test]
    fn a_table_has_its_name_with_and_without_quotes_and_schema() {
        for name in ["Orders", "\"Orders\"", "shop.Orders", "shop.\"Orders\"", "\"shop\".\"Orders\""] {
            assert!(is_name_of(("shop", "Orders"), name), "{name}");
        }
        for name in ["orders", "public.Orders", "shop", "x.shop.Orders", "\"shop.Orders\""] {
            assert!(!is_name_of(("shop", "Orders"), name), "{name}");
        }
        assert!(is_name_of(("a.b", "c"), "a.b.c"));
    }

    #[test]
    fn a_size_is_met_although_keys_limit_a_table() {
        let all = [Share::Times(1.0), Share::Times(3.0)].map(wanted);
        let bytes = |rows: &[u64]| rows.iter().sum::<u64>() as f64 * 100.0;
        for caps in [[None, None], [Some(cap(50, &[])), None], [None, Some(cap(10, &[(0, 20)]))]] {
            let base = base_for(&all, &caps, 1_000_000, bytes);
            let total = bytes(&rows(&all, base, &caps));
            assert!((total / 1e6 - 1.0).abs() < 0.001, "{total}");
        }
    }
}
