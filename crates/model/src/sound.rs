//! Refuses models that contradict themselves.

use rowgen::Alphabet;

use crate::error::ModelError;
use crate::file::{Column, Follows, How, Model, Others, Table, Values};
use crate::locale::Locale;
use crate::ranges::Ranges;

impl Model {
    /// # Errors
    /// If it contradicts itself.
    pub(crate) fn check(&self) -> Result<(), ModelError> {
        let mut names: Vec<&str> = self.tables.iter().map(|table| table.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(wrong(twice[0], "", "two tables have this name"));
        }
        if let Some(problem) = self.locale.as_ref().and_then(Locale::problem) {
            return Err(ModelError::Value(problem.to_owned()));
        }
        self.tables.iter().try_for_each(Table::check)
    }
}

fn wrong(table: &str, column: &str, problem: &str) -> ModelError {
    ModelError::Contradiction {
        table: table.to_owned(),
        column: column.to_owned(),
        problem: problem.to_owned(),
    }
}

impl Table {
    fn check(&self) -> Result<(), ModelError> {
        if !self.name.contains('.') {
            return Err(wrong(&self.name, "", "name the table with its schema, as public.orders"));
        }
        if self.sampled == 0 {
            return Err(wrong(&self.name, "", "sampled must be at least 1"));
        }
        for (at, column) in self.columns.iter().enumerate() {
            let wrong = |problem: &str| wrong(&self.name, &column.name, problem);
            if self.columns[..at].iter().any(|other| other.name == column.name) {
                return Err(wrong("two columns have this name"));
            }
            if !(0.0..=1.0).contains(&column.nulls) {
                return Err(wrong("\"nulls\" must be from 0 to 1"));
            }
            column.values.check().map_err(|problem| wrong(&problem))?;
            self.check_follows(column).map_err(|problem| wrong(&problem))?;
            self.check_nulls_follow(column).map_err(|problem| wrong(&problem))?;
            for other in column.not_below.iter().chain(&column.above) {
                let is_number = |column: &&Column| matches!(column.values, Values::Statistics { .. });
                let mut others = self.columns.iter().filter(is_number);
                if *other == column.name || !others.any(|column| column.name == *other) || !is_number(&column)
                {
                    return Err(wrong(&format!(
                        "\"not_below\" and \"above\" need statistics of both columns, this one and {other}: remove them, or give \
                         both columns \"statistics\""
                    )));
                }
            }
        }
        Ok(())
    }
}

fn are_rows(rows: &[(f64, f64)]) -> bool {
    let all: f64 = rows.iter().map(|(_, fraction)| fraction).sum();
    let within = rows.iter().all(|(rows, fraction)| (0.0..=1e12).contains(rows) && *fraction >= 0.0);
    within && (all - 1.0).abs() < 0.001 && rows.iter().any(|(rows, fraction)| *rows > 0.0 && *fraction > 0.0)
}

impl Table {
    /// The column that this one depends on, and how.
    pub(crate) fn followed<'a>(&'a self, column: &'a Column) -> Option<(&'a Column, &'a How)> {
        let follows = column.follows.as_ref()?;
        let other = self.columns.iter().find(|other| other.name == follows.column)?;
        Some((other, &follows.how))
    }

    fn check_follows(&self, column: &Column) -> Result<(), String> {
        let Some(Follows { column: name, how }) = &column.follows else { return Ok(()) };
        let Some((other, _)) = self.followed(column) else {
            return Err(format!(
                "\"follows\" names {name}, which is not a column of the table: correct the name"
            ));
        };
        if column.is_filled() || other.is_filled() {
            return Err(format!(
                "\"follows\" names {name}: both columns must have values of their own, not \"fill\" or \"serial\""
            ));
        }
        if let Some(problem) = how.problem() {
            return Err(format!("\"follows\" names {name}: {problem}"));
        }
        let mut links = 0;
        let mut last = column;
        while let Some((other, _)) = self.followed(last) {
            links += 1;
            last = other;
            if links > self.columns.len() {
                return Err("columns follow each other in a cycle: remove one \"follows\"".to_owned());
            }
        }
        Ok(())
    }

    /// The column that this one's NULLs depend on, and how.
    pub(crate) fn nulls_followed<'a>(&'a self, column: &'a Column) -> Option<(&'a Column, &'a How)> {
        let follows = column.nulls_follow.as_ref()?;
        let other = self.columns.iter().find(|other| other.name == follows.column)?;
        Some((other, &follows.how))
    }

    fn check_nulls_follow(&self, column: &Column) -> Result<(), String> {
        let Some(Follows { column: name, how }) = &column.nulls_follow else { return Ok(()) };
        let wrong = |problem: &str| Err(format!("\"nulls_follow\" names {name}{problem}"));
        let Some((other, _)) = self.nulls_followed(column) else {
            return wrong(", which is not a column of the table: correct the name");
        };
        if column.is_filled() || other.is_filled() {
            return wrong(": both columns must have values of their own, not \"fill\" or \"serial\"");
        }
        if let Some(problem) = how.problem() {
            return wrong(&format!(": {problem}"));
        }
        let of_nulls = |pairs: &[(i32, i32, f64)]| {
            pairs.iter().all(|(place, own, _)| *own == -1 && (*place == -1 || other.nulls_follow.is_none()))
        };
        let is_of_nulls = match how {
            How::Pairs { pairs } | How::Strata { own: false, pairs, .. } => of_nulls(pairs),
            How::Strata { own: true, .. }
            | How::Parts { .. }
            | How::Normal { .. }
            | How::Stretches { .. } => false,
        };
        if !is_of_nulls {
            return wrong(
                ": give pairs, or strata with own = false, whose second place is -1 (NULL), and the first, too, if the NULLs of the \
                 other column follow a column",
            );
        }
        let mut last = column;
        for _ in 0..self.columns.len() {
            let Some((other, _)) = self.nulls_followed(last) else { return Ok(()) };
            last = other;
        }
        Err("NULLs of columns follow each other in a cycle: remove one \"nulls_follow\"".to_owned())
    }
}

impl Column {
    /// Whether the fill decides on its values.
    fn is_filled(&self) -> bool {
        matches!(self.values, Values::Fill { .. } | Values::Serial { .. })
    }

    /// Fraction of NULLs in the order of its values: none if NULLs have an order of their own.
    pub(crate) fn ranked_nulls(&self) -> f64 {
        if self.nulls_follow.is_some() { 0.0 } else { self.nulls }
    }
}

fn check_elements(
    counts: &[u32],
    elements: &[(String, f64)],
    others: &Others,
    others_distinct: f64,
) -> Result<(), String> {
    if !others_distinct.is_finite() {
        return Err(
            "\"others_distinct\" must be a number of elements, or below 0 a multiple of the rows".to_owned()
        );
    }
    if counts.is_empty() || !counts.is_sorted() {
        return Err("\"counts\" must be numbers of elements in ascending order".to_owned());
    }
    if elements.iter().any(|(_, share)| !(0.0..=1.0).contains(share) || *share <= 0.0) {
        return Err("the share of an element must be above 0, and at most 1".to_owned());
    }
    match others {
        Others::Letters { alphabet, .. } if Alphabet::find(alphabet).is_none() => {
            Err(format!("the alphabet {alphabet} is not digits, hex, upper, lower, mixed or words"))
        }
        Others::Letters { lengths: (least, greatest), .. } if !(1..=*greatest).contains(least) => {
            Err("\"lengths\" must be the least length, 1 or more, and the greatest one".to_owned())
        }
        _ => Ok(()),
    }
}

const WRONG_CUTS: &str = "cuts must be fractions from 0 to 1 in ascending order";
const WRONG_PARTS: &str = "numbers of parts must not be above the number of cuts";

impl How {
    fn problem(&self) -> Option<&'static str> {
        let are_wrong = |cuts: &[f64]| !cuts.is_sorted() || !cuts.iter().all(|cut| (0.0..=1.0).contains(cut));
        let is_above = |part: i32, cuts: &[f64]| usize::try_from(part).is_ok_and(|part| part > cuts.len());
        match self {
            Self::Strata { cuts, .. } if are_wrong(cuts) => Some(WRONG_CUTS),
            Self::Parts { cuts, own_cuts, .. } if are_wrong(cuts) || are_wrong(own_cuts) => Some(WRONG_CUTS),
            Self::Strata { cuts, own, pairs }
                if pairs.iter().any(|(one, other, _)| is_above(if *own { *other } else { *one }, cuts)) =>
            {
                Some(WRONG_PARTS)
            }
            Self::Parts { cuts, own_cuts, pairs }
                if pairs.iter().any(|(one, other, _)| is_above(*one, cuts) || is_above(*other, own_cuts)) =>
            {
                Some(WRONG_PARTS)
            }
            Self::Pairs { pairs } | Self::Strata { pairs, .. } | Self::Parts { pairs, .. } => {
                let all: f64 = pairs.iter().map(|(.., share)| share).sum();
                let fits =
                    pairs.iter().all(|(one, other, share)| *one >= -1 && *other >= -1 && *share >= 0.0);
                (!fits || all > 1.001)
                    .then_some("shares of pairs must be at least 0, and add up to at most 1")
            }
            Self::Normal { correlation } => {
                (!(-1.0..=1.0).contains(correlation)).then_some("the correlation must be from -1 to 1")
            }
            Self::Stretches { count, window, share } => {
                let fits = (1..=1_000).contains(count)
                    && (0.0..=1.0).contains(window)
                    && (0.0..=1.0).contains(share);
                (!fits).then_some("count must be from 1 to 1000, window and share from 0 to 1")
            }
        }
    }
}

impl Values {
    /// Places in the order of all values, and the parameters of letters.
    fn check_places(&self) -> Result<(), String> {
        if let Self::Letters { alphabet, lengths, .. } = self {
            if Alphabet::find(alphabet).is_none() {
                return Err(format!(
                    "the alphabet {alphabet} is not digits, hex, upper, lower, mixed or words"
                ));
            }
            if lengths.is_empty() {
                return Err("\"lengths\" must have a number".to_owned());
            }
            if !lengths.is_sorted() {
                return Err("\"lengths\" must ascend".to_owned());
            }
        }
        if let Self::Elements { counts, elements, others, others_distinct, .. } = self {
            return check_elements(counts, elements, others, *others_distinct);
        }
        if let Self::Ranges { of, empty, unbounded, low, lengths, .. } = self {
            return Ranges { of, empty: *empty, unbounded: *unbounded, low, lengths }.check();
        }
        if let Self::Any { lengths: Some((least, greatest)), .. } = self
            && !(1..=*greatest).contains(least)
        {
            return Err("\"lengths\" must be the least length, 1 or more, and the greatest one".to_owned());
        }
        let (Self::Keys { common, .. } | Self::Letters { common, .. } | Self::Any { common, .. }) = self
        else {
            return Ok(());
        };
        if !common.iter().all(|(place, share)| (0.0..=1.0).contains(place) && *share >= 0.0) {
            return Err(
                "each entry of \"common\" must have a place from 0 to 1 and a share of at least 0".to_owned()
            );
        }
        if let Self::Keys { bounds, .. } = self
            && !(bounds.is_sorted()
                && bounds.len() != 1
                && bounds.iter().all(|place| (0.0..=1.0).contains(place)))
        {
            return Err("\"bounds\" must be two or more places from 0 to 1, in ascending order".to_owned());
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        if let Some(distinct) = self.distinct()
            && (distinct == 0.0 || distinct < -1.0 || !distinct.is_finite())
        {
            return Err(
                "\"distinct\" must be above 0, or at least -1 and below 0; a list needs at least one value"
                    .to_owned(),
            );
        }
        let correlation = match self {
            Self::Keys { correlation, .. }
            | Self::Statistics { correlation, .. }
            | Self::Letters { correlation, .. }
            | Self::List { correlation, .. } => *correlation,
            Self::Fill { .. }
            | Self::Serial { .. }
            | Self::Any { .. }
            | Self::Elements { .. }
            | Self::Ranges { .. } => 0.0,
        };
        if !(-1.0..=1.0).contains(&correlation) {
            return Err("the correlation must be from -1 to 1".to_owned());
        }
        self.check_places()?;
        if let Self::Statistics { common, .. } | Self::List { values: common, .. } = self
            && common.iter().any(|(_, share)| !(0.0..=1.0).contains(share))
        {
            return Err("each share must be from 0 to 1".to_owned());
        }
        let shares: f64 = match self {
            Self::Serial { step: 0, .. } => return Err("the step must not be 0".to_owned()),
            Self::Fill { .. } | Self::Serial { .. } | Self::Elements { .. } | Self::Ranges { .. } => 0.0,
            Self::Keys { common, .. } | Self::Letters { common, .. } | Self::Any { common, .. } => {
                common.iter().map(|(_, share)| share).sum()
            }
            Self::Statistics { common, bounds, .. } => {
                if common.is_empty() && bounds.len() < 2 {
                    return Err("give common values, or at least two bounds".to_owned());
                }
                common.iter().map(|(_, share)| share).sum()
            }
            Self::List { values, .. } => values.iter().map(|(_, share)| share).sum(),
        };
        if let Self::Keys { rows, .. } = self
            && !rows.is_empty()
            && !are_rows(rows)
        {
            return Err(
                "\"rows\" must be numbers, 0 or more, with fractions that add up to 1; at least one number must be above 0"
                    .to_owned(),
            );
        }
        if (0.0..=1.001).contains(&shares) {
            Ok(())
        } else {
            Err(format!("the shares add up to {shares:.3}, and must not exceed 1"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_of_earlier_formats_are_read_and_of_later_ones_refused() {
        let read = |format: u32| Model::read(&format!("format = {format}\n"));
        for format in 4..=7 {
            assert_eq!(read(format).map(|model| model.format), Ok(format));
        }
        assert_eq!(read(8), Err(ModelError::Newer(8)));
    }
}
