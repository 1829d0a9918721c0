//! Arrays by statistics of their elements: as many elements as the original's, each in its share of the arrays.
//!
//! For each number of elements there is a table of chances, one for each element, which add up to that number. An array takes
//! elements at equal distances along the table, from a random place on (systematic sampling), so that each has just its chance.

use std::collections::HashSet;

use super::Generator;
use super::spread::drawn;
use crate::random::{Draw, Stream};
use crate::spread::Elements;
use crate::value::Value;
use crate::{Column, Kind, Table, render};

/// Rounds in which chances are fitted to the shares of the elements.
const ROUNDS: usize = 40;
/// Different orders of the elements: in one, neighbours seldom come together.
const ORDERS: usize = 16;
/// Most chances of all tables.
const MOST: usize = 200_000;
/// Most elements that are not listed, if their number is not known.
const OTHERS: f64 = 10_000.0;
/// Elements that are drawn at most, until one is not listed.
const DRAWS: u32 = 16;

/// Makes arrays; the values of elements that are not listed are a column of their own.
#[derive(Clone, Debug)]
pub(super) struct Choosing {
    element: Kind,
    listed: Vec<String>,
    /// Number of elements, at equal distances.
    counts: Vec<u32>,
    tables: Vec<Chances>,
    others: Option<Others>,
}

/// Elements that are not listed.
#[derive(Clone, Debug)]
struct Others {
    values: Box<Generator>,
    number: u64,
    /// The listed ones, as numbers, dates and times are written.
    listed: HashSet<Vec<u8>>,
}

/// Chances of the elements in arrays of one size.
#[derive(Clone, Debug)]
struct Chances {
    count: u32,
    /// For each order, the elements, and the sums of their chances up to each; the last one stands for all that are not listed.
    orders: Vec<Vec<(usize, f64)>>,
}

impl Choosing {
    pub(super) fn new(elements: &Elements, element: &Kind, table: &Table, column: &Column) -> Self {
        let mean =
            elements.counts.iter().map(|count| f64::from(*count)).sum::<f64>() / elements.counts.len() as f64;
        let listed: f64 = elements.listed.iter().map(|(_, share)| share).sum();
        let least = elements.listed.iter().map(|(_, share)| *share).fold(1.0, f64::min);
        let rest = mean - listed;
        let number = if rest > 0.01 * mean { number(elements.distinct, rest, least, table.rows) } else { 0 };
        let mut sizes: Vec<(u32, f64)> = Vec::new();
        for count in &elements.counts {
            match sizes.last_mut() {
                Some(before) if before.0 == *count => before.1 += 1.0,
                _ => sizes.push((*count, 1.0)),
            }
        }
        for (_, share) in &mut sizes {
            *share /= elements.counts.len() as f64;
        }
        let mut wanted: Vec<(f64, f64)> = elements.listed.iter().map(|(_, share)| (*share, 1.0)).collect();
        if number > 0 {
            wanted.push((rest / number as f64, number as f64));
        }
        let chances = fitted(&wanted, &sizes);
        let orders = (MOST / (chances.len() * wanted.len()).max(1)).clamp(1, ORDERS);
        let stream = Stream::new(table.seed, &[&table.name, &column.name]).further();
        let tables = sizes.iter().zip(chances);
        let own = Column { kind: element.clone(), values: (*elements.others).clone(), ..column.clone() };
        let others = Table { rows: number.max(1), ..super::bare(table) };
        Self {
            element: element.clone(),
            listed: elements.listed.iter().map(|(value, _)| value.clone()).collect(),
            counts: elements.counts.clone(),
            tables: tables
                .map(|((count, _), chances)| Chances::new(*count, &chances, orders, stream))
                .collect(),
            others: (number > 0).then(|| Others {
                values: Box::new(Generator::of(&others, &own, &own.values)),
                number,
                listed: elements.listed.iter().filter_map(|(value, _)| written(element, value)).collect(),
            }),
        }
    }

    /// The array of a number, its text in `scratch`.
    pub(super) fn value<'a>(&self, mut draw: Draw, scratch: &'a mut Vec<u8>) -> Value<'a> {
        scratch.clear();
        let count = self.counts[usize::try_from(draw.below(self.counts.len() as u64)).expect("an index")];
        let at = self.tables.partition_point(|table| table.count < count);
        let mut chosen = self.tables[at].chosen(&mut draw);
        // In any order, as the original's may be.
        for last in (1..chosen.len()).rev() {
            chosen.swap(last, usize::try_from(draw.below(last as u64 + 1)).expect("an index"));
        }
        let mut other = Vec::new();
        render::sequence(render::array(&self.element), chosen, scratch, |place, out| {
            match (self.listed.get(place), &self.others) {
                (Some(text), _) => render::element(&self.element, Value::Text(text), out),
                (None, Some(others)) => {
                    let number = others.draw(&self.element, &mut draw, &mut other);
                    render::element(&self.element, others.values.value(number, &mut other), out);
                }
                (None, None) => unreachable!("only listed ones are chosen"),
            }
        });
        Value::text(scratch)
    }
}

impl Others {
    /// The number of an element that is not listed, if a few draws find one.
    fn draw(&self, element: &Kind, draw: &mut Draw, scratch: &mut Vec<u8>) -> u64 {
        let mut number = draw.below(self.number);
        if self.listed.is_empty() {
            return number;
        }
        let mut text = Vec::new();
        for _ in 0..DRAWS {
            text.clear();
            render::value(element, self.values.value(number, scratch), &mut text);
            if !self.listed.contains(&text) {
                break;
            }
            number = draw.below(self.number);
        }
        number
    }
}

/// The number of elements to draw from for those that are not listed, of which an array has `rest` on average. The rarest of the list is at least
/// as frequent (`least`) as each of them.
fn number(distinct: f64, rest: f64, least: f64, rows: u64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let whole = |number: f64| number.ceil().clamp(1.0, 1e15) as u64;
    if distinct == 0.0 {
        return whole((2.0 * rest / least.max(1e-4)).clamp(20.0, OTHERS));
    }
    let draws = whole(rest * rows as f64);
    // Nearly all differ at most: for all, the set would have to be infinite.
    let wanted =
        whole(if distinct < 0.0 { -distinct * rows as f64 } else { distinct }).min(draws - draws / 500);
    drawn(wanted, draws).unwrap_or(wanted).max(whole(rest / least))
}

/// A listed number, date or time as it is written; none of other types.
fn written(element: &Kind, text: &str) -> Option<Vec<u8>> {
    if element.is_text() || matches!(element, Kind::Float4 | Kind::Float8) {
        return None;
    }
    element.read_units(text).map(|units| element.write_units(units).into_bytes())
}

impl Chances {
    fn new(count: u32, chances: &[f64], orders: usize, stream: Stream) -> Self {
        let order = |number: usize| {
            let mut draw = stream.draw(number as u64);
            let mut places: Vec<usize> = (0..chances.len()).collect();
            for last in (1..places.len()).rev() {
                places.swap(last, usize::try_from(draw.below(last as u64 + 1)).expect("an index"));
            }
            let mut sum = 0.0;
            let until = |place: usize| {
                sum += chances[place];
                (place, sum)
            };
            places.into_iter().map(until).collect()
        };
        Self { count, orders: (0..orders).map(order).collect() }
    }

    fn chosen(&self, draw: &mut Draw) -> Vec<usize> {
        let order = &self.orders[usize::try_from(draw.below(self.orders.len() as u64)).expect("an index")];
        let first = draw.fraction();
        let places = (0..self.count).map(|number| f64::from(number) + first);
        places
            .filter_map(|place| {
                order.get(order.partition_point(|(_, until)| *until <= place)).map(|one| one.0)
            })
            .collect()
    }
}

/// Chances of each element in arrays of each size, so that an element has its share of all arrays, and the chances of a size
/// add up to it. `wanted` has shares, each with the number of elements that have it; `sizes` have numbers of elements with their shares of the
/// arrays. The chance of an element is w t / (1 + w t), where w is the element's and t the size's.
fn fitted(wanted: &[(f64, f64)], sizes: &[(u32, f64)]) -> Vec<Vec<f64>> {
    let chance = |weight: f64, scale: f64| weight * scale / (1.0 + weight * scale);
    let mut weights: Vec<f64> = wanted.iter().map(|(share, _)| share / (1.0 - share).max(1e-6)).collect();
    let scale_of = |weights: &[f64], count: u32| {
        let sum = |scale: f64| -> f64 {
            weights.iter().zip(wanted).map(|(weight, (_, number))| number * chance(*weight, scale)).sum()
        };
        let (mut low, mut high) = (-60.0_f64, 60.0_f64);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if sum(middle.exp()) < f64::from(count) { low = middle } else { high = middle }
        }
        if count == 0 { 0.0 } else { high.exp() }
    };
    for _ in 0..ROUNDS {
        let scales: Vec<f64> = sizes.iter().map(|(count, _)| scale_of(&weights, *count)).collect();
        for (weight, (share, _)) in weights.iter_mut().zip(wanted) {
            let there: f64 =
                sizes.iter().zip(&scales).map(|((_, of), scale)| of * chance(*weight, *scale)).sum();
            if there > 0.0 && *share > 0.0 {
                *weight = (*weight * (share / there) * ((1.0 - there).max(1e-6) / (1.0 - share).max(1e-6)))
                    .min(1e9);
            }
        }
    }
    let of_size = |(count, _): &(u32, f64)| {
        let scale = scale_of(&weights, *count);
        weights.iter().zip(wanted).map(|(weight, (_, number))| number * chance(*weight, scale)).collect()
    };
    sizes.iter().map(of_size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_have_the_shares_of_elements_and_the_sizes_of_arrays() {
        // On average 1.9 elements, of which 0.6 are rare.
        let wanted = [(0.8, 1.0), (0.4, 1.0), (0.1, 1.0), (0.005, 120.0)];
        let sizes = [(0, 0.1), (1, 0.4), (2, 0.2), (3, 0.1), (4, 0.2)];
        let fitted = fitted(&wanted, &sizes);
        for (chances, (count, _)) in fitted.iter().zip(&sizes) {
            assert!((chances.iter().sum::<f64>() - f64::from(*count)).abs() < 1e-6, "{chances:?}");
        }
        for (at, (share, number)) in wanted.iter().enumerate() {
            let found: f64 =
                fitted.iter().zip(&sizes).map(|(chances, (_, of))| of * chances[at] / number).sum();
            assert!((found - share).abs() < 0.01, "{share}: {found}");
        }
    }
}
