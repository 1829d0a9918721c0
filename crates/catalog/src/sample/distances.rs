//! Candidates whose values lie a little before or after each other, for conditions on their difference:
//! `ends - starts < interval '8 hours'`.

use rowgen::Kind;
use tokio_postgres::Client;

use super::judge::{Tuple, undone};
use super::random::Random;
use crate::error::CatalogError;

/// Parts of a distance that candidates have.
const PARTS: u64 = 16;
/// Distances of times and of numbers, if the conditions name none.
const OF_TIMES: [&str; 3] = ["01:00:00", "1 day", "30 days"];
const OF_NUMBERS: [&str; 3] = ["1", "10", "1000"];

/// Two columns whose difference a condition may limit.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    /// Positions in the tuple.
    columns: (usize, usize),
    line: Line,
    /// Distances in the conditions.
    distances: Vec<String>,
}

/// The line that the values of both columns lie on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Dates,
    Times,
    Zoned,
    Whole,
    Real,
}

impl Line {
    fn of(kind: &Kind) -> Option<Self> {
        match kind {
            Kind::Date => Some(Self::Dates),
            Kind::Timestamp => Some(Self::Times),
            Kind::TimestampTz => Some(Self::Zoned),
            Kind::Int2 | Kind::Int4 | Kind::Int8 => Some(Self::Whole),
            Kind::Numeric(_) | Kind::Float4 | Kind::Float8 => Some(Self::Real),
            _ => None,
        }
    }

    /// The type that adds intervals.
    fn sql(self) -> Option<&'static str> {
        match self {
            Self::Dates => Some("date"),
            Self::Times => Some("timestamp"),
            Self::Zoned => Some("timestamptz"),
            Self::Whole | Self::Real => None,
        }
    }
}

impl Pair {
    /// Of columns of these kinds, if both lie on one line. `literals` are those of the conditions on them.
    pub(super) fn of(columns: (usize, usize), kinds: (&Kind, &Kind), literals: &[String]) -> Option<Self> {
        let line = Line::of(kinds.0).filter(|line| Line::of(kinds.1) == Some(*line))?;
        let is_number = |text: &&String| text.parse::<f64>().is_ok_and(f64::is_finite);
        let distances: Vec<String> = if line.sql().is_some() {
            let unit = if line == Line::Dates { "days" } else { "seconds" };
            let numbers = literals.iter().filter(is_number).map(|number| format!("{number} {unit}"));
            literals.iter().filter(|text| is_interval(text)).cloned().chain(numbers).collect()
        } else {
            literals.iter().filter(is_number).cloned().collect()
        };
        let usual = || if line.sql().is_some() { OF_TIMES } else { OF_NUMBERS };
        let distances = if distances.is_empty() { usual().map(str::to_owned).to_vec() } else { distances };
        Some(Self { columns, line, distances })
    }

    /// Puts the second value of every second tuple at a distance from the first, on either side. The transaction is as it was
    /// before.
    pub(super) async fn apply(
        &self,
        client: &Client,
        tuples: &mut [Tuple],
        round: u64,
    ) -> Result<(), CatalogError> {
        let mut random = Random::new(round ^ 0xD157);
        let (first, second) = self.columns;
        let are_values = |at: &usize| tuples[*at][first].is_some() && tuples[*at][second].is_some();
        let places: Vec<usize> = (0..tuples.len()).filter(|at| at % 2 == 1 && are_values(at)).collect();
        let values: Vec<&str> = places.iter().filter_map(|at| tuples[*at][first].as_deref()).collect();
        let moves: Vec<(&String, f64)> = values
            .iter()
            .map(|_| {
                let part = (random.below(PARTS) + 1) as f64 / PARTS as f64;
                (random.one_of(&self.distances), if random.below(2) == 0 { part } else { -part })
            })
            .collect();
        let followers = match self.line.sql() {
            Some(sql) => later(client, sql, &values, &moves).await?,
            None => values.iter().zip(&moves).map(|(value, to)| self.beside(value, *to)).collect(),
        };
        for (at, value) in places.into_iter().zip(followers) {
            if value.is_some() {
                tuples[at][second] = value;
            }
        }
        Ok(())
    }

    /// A number at a distance from another.
    fn beside(&self, value: &str, (distance, part): (&String, f64)) -> Option<String> {
        let distance: f64 = distance.parse().ok()?;
        if self.line == Line::Whole {
            #[expect(clippy::cast_possible_truncation, reason = "a distance")]
            let whole = (distance * part).round() as i64;
            return Some(value.parse::<i64>().ok()?.checked_add(whole)?.to_string());
        }
        Some((value.parse::<f64>().ok()? + distance * part).to_string())
    }
}

/// Times at distances from others; none if the server cannot add them.
async fn later(
    client: &Client,
    sql: &str,
    values: &[&str],
    moves: &[(&String, f64)],
) -> Result<Vec<Option<String>>, CatalogError> {
    let query = format!(
        "SELECT coalesce(array_agg((value::{sql} + distance::interval * part)::{sql}::text ORDER BY number), '{{}}')
           FROM unnest($1::text[], $2::text[], $3::float8[]) WITH ORDINALITY AS of (value, distance, part, number)"
    );
    let distances: Vec<&str> = moves.iter().map(|(distance, _)| distance.as_str()).collect();
    let parts: Vec<f64> = moves.iter().map(|(_, part)| *part).collect();
    let answer = undone(client, client.query_one(&query, &[&values, &distances, &parts])).await?;
    Ok(answer.map_or_else(|_| Vec::new(), |row| row.get(0)))
}

/// Whether a literal is an interval as the server prints it: `08:00:00`, `1 day`, `2 years 3 mons`.
fn is_interval(text: &str) -> bool {
    let mut words = text.split_whitespace().peekable();
    let mut any = false;
    while let Some(word) = words.next() {
        let is_clock = word.contains(':') && word.bytes().all(|byte| b"0123456789:.-".contains(&byte));
        let is_unit = |next: &&str| {
            matches!(next.trim_end_matches('s'), "day" | "mon" | "year" | "hour" | "min" | "sec" | "week")
        };
        let is_counted = word.parse::<f64>().is_ok() && words.next_if(is_unit).is_some();
        if !is_clock && !is_counted {
            return false;
        }
        any = true;
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_told_from_other_literals() {
        for text in ["08:00:00", "1 day", "2 years 3 mons", "1 day 02:00:00", "-00:30:00"] {
            assert!(is_interval(text), "{text}");
        }
        for text in ["", "a", "2024-01-01", "5", "1 thing", "2024-01-01 00:00:00"] {
            assert!(!is_interval(text), "{text}");
        }
    }
}
