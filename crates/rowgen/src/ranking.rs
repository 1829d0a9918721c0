//! The rank of a row in the order of a column's values, where that depends on other columns of the
//! row.

use serde::{Deserialize, Serialize};

use crate::levels::Level;

/// Ranks of a column that follow from those of other columns.
///
/// A row's rank in the first column's order comes from the row number. Each link leads from there to the rank in the next
/// column's order, until the last link leads to the column itself. Columns with the same beginning depend on each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// Name of the column at the beginning.
    pub first: String,
    /// Its correlation with the order of the rows, -1 to 1, as ANALYZE computes it.
    pub correlation: f64,
    /// Its values in their order; empty if each row has a value of its own.
    #[serde(default)]
    pub levels: Vec<Level>,
    /// Fraction of NULLs in this column.
    pub nulls: f64,
    /// The links from one column to the next.
    pub links: Vec<Link>,
}

/// How ranks of one column depend on ranks of another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Name of the column that it leads to.
    pub name: String,
    /// The dependence between the two columns.
    pub joint: Joint,
    /// The other column's rows in the order of their values.
    pub other: Line,
    /// This column's rows in the order of their values.
    pub own: Line,
    /// This column's correlation with the order of the rows; tables of few rows have it, as far as the dependence allows.
    #[serde(default)]
    pub correlated: Option<Correlated>,
}

/// How the values of a column are correlated with the order of the rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Correlated {
    /// -1 to 1, as ANALYZE computes it.
    pub correlation: f64,
    /// The column's values in their order; empty if each row has a value of its own.
    pub levels: Vec<Level>,
}

/// All rows in the order of a column's values, cut into strata; rows with NULL are the last stratum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Fraction of NULLs.
    pub nulls: f64,
    /// Where strata end, as fractions of the rows that are not NULL, in ascending order; the last one ends at 1.
    pub cuts: Vec<f64>,
}

/// Dependence between the strata of two lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Joint {
    /// Shares of the rows that lie in a stratum of the other line and in one of this line. The other rows lie in other
    /// pairs of strata, as if the columns were independent.
    Cells(Vec<(u16, u16, f64)>),
    /// A normal copula between rows where neither is NULL.
    Normal {
        /// Its correlation, -1 to 1.
        correlation: f64,
    },
    /// Stretches of the other line lie on stretches of this one, in another order, so that groups of rows stay together.
    Stretches {
        /// How many.
        count: u16,
        /// Ranks are shuffled within windows of this share of all rows; 0 for no shuffling.
        window: f64,
        /// Share of the rows to which this applies; the others are independent.
        share: f64,
    },
}

impl Line {
    /// Number of strata, with the one of NULLs.
    pub(crate) fn strata(&self) -> usize {
        self.cuts.len() + 2
    }

    /// The reason for which it is invalid; none if it is valid.
    fn problem(&self) -> Option<&'static str> {
        if !(0.0..=1.0).contains(&self.nulls) {
            return Some("a fraction of NULLs must be from 0 to 1");
        }
        let within = self.cuts.iter().all(|cut| (0.0..=1.0).contains(cut)) && self.cuts.is_sorted();
        (!within || self.cuts.len() > 60_000).then_some("cuts must be places from 0 to 1 in ascending order")
    }
}

impl Ranking {
    /// The reason for which it is invalid; none if it is valid.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        if !(-1.0..=1.0).contains(&self.correlation) || !(0.0..=1.0).contains(&self.nulls) {
            return Some("the correlation must be from -1 to 1, and the fraction of NULLs from 0 to 1");
        }
        problem_of_levels(&self.levels).or_else(|| self.links.iter().find_map(Link::problem))
    }
}

impl Correlated {
    fn problem(&self) -> Option<&'static str> {
        if !(-1.0..=1.0).contains(&self.correlation) {
            return Some("the correlation must be from -1 to 1");
        }
        problem_of_levels(&self.levels)
    }
}

fn problem_of_levels(levels: &[Level]) -> Option<&'static str> {
    let is_valid =
        |level: &Level| (0.0..=1.0).contains(&level.share) && level.values >= 1.0 && level.values.is_finite();
    let shares: f64 = levels.iter().map(|level| level.share).sum();
    let are_valid = levels.iter().all(is_valid) && (levels.is_empty() || shares > 0.0);
    (!are_valid).then_some("values must have shares from 0 to 1, and be 1 or more")
}

impl Link {
    fn problem(&self) -> Option<&'static str> {
        let line = self.other.problem().or_else(|| self.own.problem());
        let correlated = self.correlated.as_ref().and_then(Correlated::problem);
        line.or(correlated).or_else(|| match &self.joint {
            Joint::Cells(cells) => {
                let exist = |(other, own, _): &(u16, u16, f64)| {
                    usize::from(*other) < self.other.strata() && usize::from(*own) < self.own.strata()
                };
                let shares = cells.iter().all(|(.., share)| (0.0..=1.0).contains(share));
                let all: f64 = cells.iter().map(|(.., share)| share).sum();
                (!cells.iter().all(exist) || !shares || all > 1.001).then_some(
                    "cells must be pairs of strata that exist, with shares that add up to at most 1",
                )
            }
            Joint::Normal { correlation } => (!(-1.0..=1.0).contains(correlation))
                .then_some("the correlation of two columns must be from -1 to 1"),
            Joint::Stretches { count, window, share } => {
                let fits = (1..=1_000).contains(count)
                    && (0.0..=1.0).contains(window)
                    && (0.0..=1.0).contains(share);
                (!fits).then_some("stretches are 1 to 1000, and window and share from 0 to 1")
            }
        })
    }
}
