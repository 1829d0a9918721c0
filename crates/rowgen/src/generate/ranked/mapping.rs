//! Maps ranks of one column to ranks of another one.

use super::super::shuffle;
use super::arranged::{Stratum, arranged};
use super::counts::counts;
use super::shares::{STRATA, beside_nulls, fitted, normal};
use super::{part, scaled};
use crate::random::Stream;
use crate::ranking::{Correlated, Joint, Line, Link};

/// Maps ranks of one column to ranks of another one, each to a different one, as nearly as the
/// strata of both columns allow.
#[derive(Clone, Debug)]
pub(super) struct Mapping {
    stream: Stream,
    /// First ranks of the other column's strata, and the number of ranks.
    other: Vec<u64>,
    /// First ranks of this column's strata, and the number of ranks.
    own: Vec<u64>,
    /// Rows that lie in each stratum of this column.
    rows: Vec<u64>,
    /// Pairs of strata, those of each stratum of the other column one after another.
    cells: Vec<Cell>,
    /// The first cell of each stratum of the other column, and the number of all.
    first: Vec<usize>,
    /// The width of the windows within which ranks are shuffled; none if they are shuffled within
    /// strata.
    window: Option<u64>,
}

/// Rows in a stratum of the other column, and in one of this column.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Place after its last row within the other column's stratum.
    until: u64,
    own: usize,
    /// Place of its first row within this column's stratum.
    place: u64,
    rows: u64,
}

impl Mapping {
    pub(super) fn new(link: &Link, stream: Stream, count: u64) -> Self {
        let (other, own, shares, window) = match &link.joint {
            Joint::Cells(cells) => {
                let (other, own) = (firsts(&link.other, count), firsts(&link.own, count));
                let mut shares = vec![vec![None; own.len() - 1]; other.len() - 1];
                for &(one, two, share) in cells {
                    *shares[usize::from(one)][usize::from(two)].get_or_insert(0.0) += share;
                }
                let shares = fitted(&shares, &widths(&other), &widths(&own));
                (other, own, shares, None)
            }
            Joint::Normal { correlation } => {
                let (other, own) = (even(&link.other, STRATA, count), even(&link.own, STRATA, count));
                let shares = beside_nulls(&normal(*correlation), &widths(&own));
                (other, own, shares, None)
            }
            Joint::Stretches { count: stretches, window, share } => {
                let stretches = usize::from(*stretches);
                let (other, own) = (even(&link.other, stretches, count), even(&link.own, stretches, count));
                let each = (1.0 - share) / stretches as f64;
                let mut shares = vec![vec![each; stretches]; stretches];
                for (at, row) in shares.iter_mut().enumerate() {
                    let to = match stretches {
                        1 => 0,
                        _ => shuffle::place(at as u64, stretches as u64, stream.further()),
                    };
                    row[usize::try_from(to).unwrap_or(0)] += share;
                }
                let shares = beside_nulls(&shares, &widths(&own));
                (other, own, shares, Some(part(count, *window)))
            }
        };
        Self::of(stream, other, own, &shares, window)
    }

    fn of(stream: Stream, other: Vec<u64>, own: Vec<u64>, shares: &[Vec<f64>], window: Option<u64>) -> Self {
        let mut rows = vec![0; own.len() - 1];
        let (mut cells, mut first) = (Vec::new(), vec![0]);
        for counts in counts(shares, &widths(&other), &widths(&own)) {
            let mut until = 0;
            for (own, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
                until += count;
                cells.push(Cell { until, own, place: rows[own], rows: count });
                rows[own] += count;
            }
            first.push(cells.len());
        }
        Self { stream, other, own, rows, cells, first, window }
    }

    /// The ranks of few rows in this column, which has nearly the correlation that is wanted. `ranks` are those of the other column. None if groups
    /// of rows stay together.
    pub(super) fn arranged(&self, ranks: &[u64], wanted: &Correlated) -> Option<Vec<u64>> {
        if self.window.is_some() {
            return None;
        }
        let count = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
        let stratum = |pair: &[usize]| Stratum {
            rows: Vec::new(),
            cells: self.cells[pair[0]..pair[1]].iter().map(|cell| (cell.own, count(cell.rows))).collect(),
        };
        let mut strata: Vec<Stratum> = self.first.windows(2).map(stratum).collect();
        for (row, rank) in ranks.iter().enumerate() {
            strata[self.stratum(*rank)].rows.push(row);
        }
        Some(arranged(&strata, &self.own, wanted, self.stream))
    }

    /// The other column's stratum of a rank.
    fn stratum(&self, rank: u64) -> usize {
        self.other.partition_point(|first| *first <= rank).clamp(1, self.other.len() - 1) - 1
    }

    pub(super) fn rank(&self, rank: u64) -> u64 {
        let stratum = self.stratum(rank);
        let cells = &self.cells[self.first[stratum]..self.first[stratum + 1]];
        let Some(last) = cells.last() else { return rank };
        let mut place = rank - self.other[stratum];
        if cells.len() > 1 && self.window.is_none() {
            place = shuffle::place(place.min(last.until - 1), last.until, self.stream);
        }
        let cell = cells[cells.partition_point(|cell| cell.until <= place).min(cells.len() - 1)];
        let within = place.saturating_sub(cell.until - cell.rows).min(cell.rows - 1);
        let rows = self.rows[cell.own];
        let place = cell.place + within;
        let place = match self.window {
            None => shuffle::place(place, rows, self.stream),
            Some(window) if window > 1 => {
                let start = place - place % window;
                start + shuffle::place(place - start, window.min(rows - start), self.stream)
            }
            Some(_) => place,
        };
        let (start, end) = (self.own[cell.own], self.own[cell.own + 1]);
        start + scaled(place, end - start, rows)
    }
}

/// First ranks of a line's strata, and the number of ranks.
fn firsts(line: &Line, count: u64) -> Vec<u64> {
    let not_null = part(count, 1.0 - line.nulls);
    let cuts = line.cuts.iter().map(|cut| part(not_null, *cut));
    [0].into_iter().chain(cuts).chain([not_null, count]).collect()
}

/// First ranks of strata of equal width, and the number of ranks.
fn even(line: &Line, strata: usize, count: u64) -> Vec<u64> {
    let cuts = (1..strata).map(|at| at as f64 / strata as f64).collect();
    firsts(&Line { nulls: line.nulls, cuts }, count)
}

fn widths(firsts: &[u64]) -> Vec<u64> {
    firsts.windows(2).map(|pair| pair[1] - pair[0]).collect()
}
