//! Unique keys that the migration adds, and columns that differ in all rows by the statistics of the original. Values that are made by statistics
//! may repeat in a few rows, on which the key would fail. So the fill counts such a column, as that of any other key.

use fill::{Modelled, is_name_of};

use super::rehearse::Tables;
use super::rules::Rule;

/// From this number of different values on, relative to the rows, nearly all rows differ.
const ALL: f64 = -0.999;

/// A unique key or index that the migration adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// Schema and name of the table.
    table: (String, String),
    /// Its columns, by their names before the migration.
    columns: Vec<String>,
}

impl Key {
    /// None if the rule is none. Each name has the first one of the column.
    pub(crate) fn of(rule: &Rule, tables: &Tables, names: &[[String; 2]]) -> Option<Self> {
        // That of an exclusion constraint is no key.
        if rule.kind != 2 || !rule.id.starts_with("index ") {
            return None;
        }
        let table = tables.get(rule.table)?;
        let first = |column: &String| {
            let renamed = names.iter().find(|[name, _]| name == column);
            renamed.map_or_else(|| column.clone(), |[_, first]| first.clone())
        };
        let columns = rule.columns.iter().map(first).collect();
        Some(Self { table: (table.schema.clone(), table.name.clone()), columns })
    }

    /// The place of the specification of a column that is to be counted; none if the fill chooses the values of one anyway.
    fn counted(&self, modelled: &[Modelled]) -> Option<usize> {
        let is_of_table = |one: &&Modelled| is_name_of((&self.table.0, &self.table.1), &one.table);
        let is_chosen =
            |one: &Modelled| one.spec.rsplit_once("=nulls(").is_some_and(|(_, rest)| !rest.contains(','));
        let is_modelled = |name: &String| {
            modelled.iter().filter(is_of_table).any(|one| column(one) == name.as_str() && !is_chosen(one))
        };
        // Others may be made by the values of this one.
        let is_alone = |of: &Modelled| {
            let mut others = modelled.iter().filter(is_of_table).filter(|one| column(one) != column(of));
            !others.any(|one| has_word(&one.spec, column(of)))
        };
        let is_counted = |one: &Modelled| {
            let is_in_key = self.columns.iter().any(|name| name == column(one));
            is_of_table(&one) && is_in_key && differs(&one.spec) && is_alone(one)
        };
        if self.columns.iter().all(is_modelled) { modelled.iter().position(is_counted) } else { None }
    }
}

/// The specifications without those of columns that are to be counted for these keys, one of each.
pub(crate) fn without_repeats<'a>(
    modelled: &[Modelled],
    keys: impl IntoIterator<Item = &'a Key>,
) -> Vec<Modelled> {
    let mut left = modelled.to_vec();
    for key in keys {
        if let Some(place) = key.counted(&left) {
            left.remove(place);
        }
    }
    left
}

/// The column of a specification.
fn column(modelled: &Modelled) -> &str {
    modelled.spec.split('=').next().unwrap_or_default()
}

/// Whether the values are made by statistics and nearly all differ. Beside NULLs or values of another column, those of its own come last.
fn differs(spec: &str) -> bool {
    let distinct = || spec.rsplit_once("statistics(")?.1.split_once(',')?.0.trim().parse::<f64>().ok();
    distinct().is_some_and(|distinct| distinct <= ALL)
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|one| one == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(columns: &[&str]) -> Key {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        Key { table: ("public".to_owned(), "t".to_owned()), columns }
    }

    #[test]
    fn one_column_of_each_key_is_counted() {
        let specs = [
            ("t", "n=statistics(-1,0,common(),histogram(1,9))"),
            ("t", "m=nulls(0.1,statistics(-0.9999,0,common(),histogram(1,9)))"),
            ("t", "day=statistics(20,1,common(),histogram(1,9))"),
            ("t", "since=statistics(-1,1,common(),histogram(1,9))"),
            (
                "t",
                "at=greater(since,statistics(-1,1,common(),histogram(1,9)),statistics(-1,1,common(),histogram(1,9)))",
            ),
            ("t", "code=repeated(-1,0,common(),random(4,9))"),
            ("other", "n=statistics(-1,0,common(),histogram(1,9))"),
        ];
        let modelled = |(table, spec): &(&str, &str)| Modelled {
            table: format!("public.{table}"),
            spec: (*spec).to_owned(),
        };
        let modelled: Vec<Modelled> = specs.iter().map(modelled).collect();
        let left_out = |keys: &[Key]| -> Vec<String> {
            let left = without_repeats(&modelled, keys);
            let is_left = |one: &&Modelled| {
                left.iter().any(|left| (&left.table, &left.spec) == (&one.table, &one.spec))
            };
            let gone = modelled.iter().filter(|one| !is_left(one));
            gone.map(|one| format!("{}.{}", one.table, column(one))).collect()
        };
        assert_eq!(left_out(&[key(&["n"])]), ["public.t.n"]);
        assert_eq!(left_out(&[key(&["day", "m"]), key(&["at"])]), ["public.t.m", "public.t.at"]);
        // Once is enough.
        assert_eq!(left_out(&[key(&["n"]), key(&["n", "m"])]), ["public.t.n"]);
        // The fill chooses the values of one column, another one depends on it, and others may repeat, or do not.
        for columns in [&["n", "id"][..], &["since"], &["day"], &["code"]] {
            assert!(left_out(&[key(columns)]).is_empty(), "{columns:?}");
        }
    }
}
