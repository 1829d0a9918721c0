//! Specifications of orders in which columns follow each other.

use std::fmt::Write;

use crate::depend::{common, correlated, cuts, round};
use crate::file::{Column, How};
use crate::lower::quoted;

/// The order of a column that follows the first one by these links: `first,correlation,nulls,links(…)`. The table has so many rows.
pub(crate) fn order(first: &Column, rows: u64, links: &[String]) -> String {
    let correlation = with_rows(first, rows).unwrap_or_else(|| "0".to_owned());
    format!("{},{correlation},{},links({})", quoted(&first.name), first.ranked_nulls(), links.join(","))
}

/// The column's correlation with the order of the rows: `rows(correlation,share*values,…)`.
fn with_rows(column: &Column, rows: u64) -> Option<String> {
    let (correlation, levels) = correlated(column, rows)?;
    let text = levels.iter().fold(format!("rows({correlation}"), |mut text, level| {
        let _ = write!(text, ",{}*{}", round(level.share), round(level.values));
        text
    });
    Some(text + ")")
}

/// The link from the other column's order to this column's NULLs. Of a column whose NULLs have an order of their own, NULLs alone
/// lead to others.
pub(crate) fn link_of_nulls(column: &Column, (other, how): (&Column, &How)) -> String {
    let (other, cells) = match how {
        How::Pairs { pairs } if other.nulls_follow.is_none() => {
            (line(other), cells(pairs, common(other).len(), 0))
        }
        How::Strata { cuts, pairs, .. } if other.nulls_follow.is_none() => {
            let cells = pairs.iter().map(|(stratum, _, share)| format!("{}:1*{share}", part(*stratum, cuts)));
            (parts(other, cuts), cells.collect::<Vec<String>>().join(","))
        }
        How::Pairs { pairs } | How::Strata { pairs, .. } => (of_nulls(other), cells(pairs, 0, 0)),
        How::Parts { .. } | How::Normal { .. } | How::Stretches { .. } => return String::new(),
    };
    let name = quoted(&format!("{} IS NULL", column.name));
    format!("cells({name},{other},{},pairs({cells}))", of_nulls(column))
}

/// The column's rows in the order of values, cut into parts.
fn parts(column: &Column, cuts: &[f64]) -> String {
    let numbers = [column.ranked_nulls()].into_iter().chain(cuts.iter().copied());
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    format!("line({})", numbers.join(","))
}

/// The stratum of a part: the same number, and NULL's is the last one.
fn part(at: i32, cuts: &[f64]) -> usize {
    usize::try_from(at).unwrap_or(cuts.len() + 1)
}

/// A line of a column's NULLs and its other rows.
fn of_nulls(column: &Column) -> String {
    format!("line({})", column.nulls)
}

/// Pairs of strata with their shares.
fn cells(pairs: &[(i32, i32, f64)], count: usize, own_count: usize) -> String {
    // A frequent value's stratum comes after the one of the values before it, NULL's is the last.
    let stratum = |at: i32, count: usize| match usize::try_from(at) {
        Ok(at) if at < count => Some(2 * at + 1),
        Ok(_) => None,
        Err(_) => Some(2 * count + 1),
    };
    let pairs = pairs.iter().filter_map(|(one, two, share)| {
        Some(format!("{}:{}*{share}", stratum(*one, count)?, stratum(*two, own_count)?))
    });
    pairs.collect::<Vec<String>>().join(",")
}

/// The link from the other column's order to this column's. The table has so many rows.
pub(crate) fn link(other: &Column, column: &Column, how: &How, rows: u64) -> String {
    let name = quoted(&column.name);
    let own_order = with_rows(column, rows).map(|text| format!(",{text}")).unwrap_or_default();
    let (nulls, own_nulls) = (other.ranked_nulls(), column.ranked_nulls());
    match how {
        How::Pairs { pairs } => {
            let cells = cells(pairs, common(other).len(), common(column).len());
            format!("cells({name},{},{},pairs({cells}){own_order})", line(other), line(column))
        }
        How::Strata { cuts, own, pairs } => {
            let count = common(if *own { other } else { column }).len();
            let value = |at: i32| match usize::try_from(at) {
                Ok(at) if at < count => Some(2 * at + 1),
                Ok(_) => None,
                Err(_) => Some(2 * count + 1),
            };
            let cells = pairs.iter().filter_map(|&(one, two, share)| {
                let (one, two) =
                    if *own { (value(one)?, part(two, cuts)) } else { (part(one, cuts), value(two)?) };
                Some(format!("{one}:{two}*{share}"))
            });
            let cells = cells.collect::<Vec<String>>().join(",");
            let (other, own) =
                if *own { (line(other), parts(column, cuts)) } else { (parts(other, cuts), line(column)) };
            format!("cells({name},{other},{own},pairs({cells}){own_order})")
        }
        How::Parts { cuts, own_cuts, pairs } => {
            let cells = pairs
                .iter()
                .map(|(one, two, share)| format!("{}:{}*{share}", part(*one, cuts), part(*two, own_cuts)));
            let cells = cells.collect::<Vec<String>>().join(",");
            format!(
                "cells({name},{},{},pairs({cells}){own_order})",
                parts(other, cuts),
                parts(column, own_cuts)
            )
        }
        How::Normal { correlation } => format!("normal({name},{correlation},{nulls},{own_nulls}{own_order})"),
        How::Stretches { count, window, share } => {
            format!("stretches({name},{count},{window},{share},{nulls},{own_nulls})")
        }
    }
}

/// The column's rows in the order of values, cut before and after each frequent value.
fn line(column: &Column) -> String {
    let cuts =
        cuts(column).into_iter().fold(String::new(), |text, (begin, end)| text + &format!(",{begin},{end}"));
    format!("line({}{cuts})", column.ranked_nulls())
}

#[cfg(test)]
mod tests {
    use rowgen::Kind;

    use super::*;
    use crate::facts::{ColumnRole, Joint, Pair, Statistics};
    use crate::file::{Follows, Model};
    use crate::make::Privacy;
    use crate::testing::{column, facts, strings};

    /// A model of two columns of numbers; halves of each come together, and their ranks are correlated.
    fn model(correlation: f64, nulls: f64) -> Model {
        let number = |name: &str| {
            let bounds = strings(&["0", "250", "500", "1000"]);
            let statistics =
                Statistics { n_distinct: -1.0, null_frac: nulls, bounds, ..Statistics::default() };
            column(name, Kind::Int4, ColumnRole::Free, statistics)
        };
        let mut facts = facts(100_000, vec![number("size"), number("length")]);
        let pair = |joint| Pair { columns: ("size".to_owned(), "length".to_owned()), joint };
        let shares = vec![(Some(0), Some(0), 0.5), (Some(1), Some(1), 0.5)];
        let parts = Joint::Parts { cuts: (vec![0.5], vec![0.5]), shares };
        facts.tables[0].pairs = vec![pair(Joint::Rank(correlation)), pair(parts)];
        Model::of(&facts, &Privacy { k: 20, keep: Vec::new(), seed: 1 })
    }

    fn how(model: &Model) -> &How {
        let mut follows = model.tables[0].columns.iter().filter_map(|column| column.follows.as_ref());
        let Some(Follows { how, .. }) = follows.next() else { panic!("no column follows") };
        how
    }

    #[test]
    fn parts_of_numbers_come_together_if_that_tells_more_than_a_correlation() {
        let found = model(0.5, 0.0);
        let How::Parts { cuts, own_cuts, pairs } = how(&found) else { panic!("{:?}", how(&found)) };
        assert_eq!(
            (&cuts[..], &own_cuts[..], &pairs[..]),
            (&[0.5][..], &[0.5][..], &[(0, 0, 0.5), (1, 1, 0.5)][..])
        );
        assert_eq!(Model::read(&found.write()).unwrap(), found);
        let specs = found.tables[0].specs();
        assert!(
            specs.iter().any(|spec| spec.contains("line(0,0.5),line(0,0.5),pairs(0:0*0.5,1:1*0.5)")),
            "{specs:?}"
        );
        for spec in specs {
            let parsed: rowgen::ColumnSpec = spec.parse().unwrap();
            parsed.spec.values(&Kind::Int4, None).unwrap();
        }
        for found in [model(0.95, 0.0), model(0.5, 0.1)] {
            assert!(matches!(how(&found), How::Normal { .. }), "{:?}", how(&found));
        }
    }

    #[test]
    fn numbers_of_parts_are_checked() {
        let text = model(0.5, 0.0).write();
        let changed = |from: &str, to: &str| Model::read(&text.replace(from, to)).unwrap_err().to_string();
        let many = changed("[1, 1, 0.5]", "[1, 2, 0.5]");
        assert!(many.contains("numbers of parts must not be above the number of cuts"), "{many}");
        let wrong = changed("own_cuts = [0.5]", "own_cuts = [1.5]");
        assert!(wrong.contains("cuts must be fractions from 0 to 1"), "{wrong}");
    }
}
