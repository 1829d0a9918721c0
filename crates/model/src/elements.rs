//! Arrays with many different values: the statistics of their elements.

use fastrand::Rng;
use rowgen::Kind;

use crate::arrays;
use crate::estimate::RowCounts;
use crate::facts::Statistics;
use crate::file::{Others, Values};
use crate::lower::SAMPLED_PER_TARGET;
use crate::make::is_text;
use crate::numbers::Number;
use crate::replace::{self, alphabet_of};

/// Most elements that a model lists, as many as there are frequent values at the default statistics target.
const MOST: usize = 100;
/// Least number of different rare numbers from which the range of the elements that are not listed follows.
const FEW: usize = 20;
/// One of so many rare numbers lies beyond each end of that range.
const TRIM: usize = 50;
/// Elements that ANALYZE lists for each unit of the statistics target, if so many are frequent enough.
const PER_TARGET: f64 = 10.0;

/// Values of arrays by their elements. Elements of text are replaced by others of the same length, in the same order; numbers that
/// fewer rows than `least` (a share of all) have are among the other elements. None without statistics of elements, or if
/// elements are of another kind. `round` shortens shares.
pub(crate) fn of(
    element: &Kind,
    statistics: &Statistics,
    least: f64,
    rows: RowCounts,
    round: impl Fn(f64) -> f64,
    rng: &mut Rng,
) -> Option<Values> {
    let counts = counts(&statistics.element_counts)?;
    let mut listed = statistics.elements.clone();
    listed.sort_by(|one, other| other.1.total_cmp(&one.1));
    listed.truncate(MOST);
    let (others, different) = if is_text(element) {
        let different = count_others(statistics, &listed, &counts, rows);
        let texts = || statistics.elements.iter().map(|(text, _)| text.as_str());
        let lengths =
            || texts().map(|text| u32::try_from(text.chars().count()).unwrap_or(u32::MAX).clamp(1, 200));
        let lengths = (lengths().min()?, lengths().max()?);
        let alphabet = alphabet_of(texts()).name().to_owned();
        listed.sort_by(|one, other| one.0.cmp(&other.0));
        let originals: Vec<&str> = listed.iter().map(|(text, _)| text.as_str()).collect();
        let replaced = replace::texts(&originals, element.characters(), rng);
        for ((text, _), replaced) in listed.iter_mut().zip(replaced) {
            *text = replaced;
        }
        (Others::Letters { alphabet, lengths }, different)
    } else {
        element.units()?;
        listed.retain(|(text, share)| *share >= least && Number::read(element, text).is_some());
        let different = count_others(statistics, &listed, &counts, rows);
        (between(element, statistics, &listed, different, rng), different)
    };
    let others_distinct = if different > 0.1 * rows.all as f64 {
        -different / rows.all.max(1) as f64
    } else {
        different.ceil()
    };
    let distinct = if statistics.n_distinct == 0.0 { -1.0 } else { statistics.n_distinct };
    listed.sort_by(|one, other| other.1.total_cmp(&one.1));
    let elements =
        listed.into_iter().map(|(text, share)| (text, round(share))).filter(|(_, share)| *share > 0.0);
    let elements = elements.collect();
    Some(Values::Elements { distinct, counts, elements, others, others_distinct: round(others_distinct) })
}

/// The number of different elements that are not listed. ANALYZE lists all elements above a frequency (nine of a seventh of a thousand for
/// each place of its list, `array_typanalyze.c`), as far as its list has room. The others are between one row and that frequency: pgrig takes the
/// geometric mean of both.
fn count_others(statistics: &Statistics, listed: &[(String, f64)], counts: &[u32], rows: RowCounts) -> f64 {
    let there = rows.all as f64 * (1.0 - statistics.null_frac);
    let mean = counts.iter().copied().map(f64::from).sum::<f64>() / counts.len() as f64;
    let known: f64 = statistics.elements.iter().map(|(_, share)| share).sum();
    let rarest = statistics.elements.iter().map(|(_, share)| *share).fold(1.0, f64::min);
    let places = PER_TARGET * rows.sampled as f64 / SAMPLED_PER_TARGET as f64;
    let has_room = (statistics.elements.len() as f64) < places;
    let most = if has_room { rarest.min(9.0 * mean * 7.0 / (1e3 * (places + 10.0))) } else { rarest };
    let each = (most * there).max(1.0).sqrt();
    let unknown = mean - known;
    let unknown = if unknown > 0.01 * mean { unknown * there / each } else { 0.0 };
    (statistics.elements.len() - listed.len()) as f64 + unknown
}

/// The range of numbers that are not listed: of the rare ones in the statistics, without the outermost ones. If there are too few of them,
/// the range of the listed ones, widened until it has room for as many `different` numbers.
fn between(
    element: &Kind,
    statistics: &Statistics,
    listed: &[(String, f64)],
    different: f64,
    rng: &mut Rng,
) -> Others {
    if matches!(element, Kind::Bool | Kind::Enum { .. }) {
        return Others::Any;
    }
    let number = |text: &str| Number::read(element, text).filter(|number| !number.is_infinite(element));
    let sorted = |mut numbers: Vec<Number>| {
        numbers.sort_by(|one, other| one.at.total_cmp(&other.at));
        numbers.dedup_by(|one, other| one.at.total_cmp(&other.at).is_eq());
        numbers
    };
    let is_listed = |text: &String| listed.iter().any(|(each, _)| each == text);
    let in_arrays = statistics.bounds.iter().filter_map(|array| arrays::elements(array)).flatten().flatten();
    let rare = statistics.elements.iter().map(|(text, _)| text.clone()).chain(in_arrays);
    let rare = sorted(rare.filter(|text| !is_listed(text)).filter_map(|text| number(&text)).collect());
    let ends = if rare.len() >= FEW {
        let (first, last) = (rare.len() / TRIM, rare.len() - 1 - rare.len() / TRIM);
        let mut inwards = |from: &Number, to: &Number| {
            let moved = (to.at - from.at) * rng.f64().mul_add(0.5, 0.25);
            Number::near(element, from.at, from.at + moved, 1.0)
        };
        inwards(&rare[first], &rare[first + 1]).zip(inwards(&rare[last], &rare[last - 1]))
    } else {
        let kept = sorted(listed.iter().filter_map(|(text, _)| number(text)).collect());
        widened(element, &kept, different)
    };
    match ends {
        Some((low, high)) if low.at < high.at => Others::Between { low: low.text, high: high.text },
        _ => Others::Any,
    }
}

/// The least and the greatest of these numbers, so far apart that as many `different` numbers lie between them; none of them below 0 if none was.
fn widened(element: &Kind, numbers: &[Number], different: f64) -> Option<(Number, Number)> {
    let (low, high) = (numbers.first()?, numbers.last()?);
    let missing = 2.0 * (different + numbers.len() as f64) - (high.at - low.at);
    if missing <= 0.0 || matches!(element, Kind::Float4 | Kind::Float8) {
        return Some((low.clone(), high.clone()));
    }
    let least = if low.at < 0.0 { low.at - missing / 2.0 } else { (low.at - missing / 2.0).max(0.0) };
    let greatest = least + (high.at - low.at) + missing;
    Number::near(element, low.at, least, 1.0).zip(Number::near(element, high.at, greatest, 1.0))
}

/// Quantiles of numbers of elements, without the least and the greatest one, which may be of single rows.
fn counts(bounds: &[f64]) -> Option<Vec<u32>> {
    let inner = if bounds.len() > 2 { &bounds[1..bounds.len() - 1] } else { bounds };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of elements")]
    let counts: Vec<u32> = inner.iter().map(|count| count.round().clamp(0.0, 1e4) as u32).collect();
    counts.iter().any(|count| *count > 0).then_some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics(elements: &[(&str, f64)]) -> Statistics {
        Statistics {
            n_distinct: -0.4,
            elements: elements.iter().map(|(text, share)| ((*text).to_owned(), *share)).collect(),
            element_counts: vec![0.0, 1.0, 2.0, 2.0, 3.0, 9.0],
            ..Statistics::default()
        }
    }

    fn made_of(element: &Kind, statistics: &Statistics) -> Option<Values> {
        let rows = RowCounts { all: 2_000, sampled: 30_000 };
        of(element, statistics, 0.01, rows, |share| share, &mut Rng::with_seed(1))
    }

    fn made(element: &Kind, elements: &[(&str, f64)]) -> (Vec<(String, f64)>, Others) {
        let made = made_of(element, &statistics(elements)).unwrap();
        let Values::Elements { counts, elements, others, .. } = made else { panic!() };
        assert_eq!(counts, [1, 2, 2, 3]);
        (elements, others)
    }

    #[test]
    fn texts_are_replaced_and_rare_numbers_are_others() {
        let (elements, others) = made(&Kind::Text, &[("subject", 0.5), ("topic", 0.25), ("rare one", 0.001)]);
        assert_eq!(
            elements.iter().map(|(text, share)| (text.len(), *share)).collect::<Vec<_>>(),
            [(7, 0.5), (5, 0.25), (8, 0.001)]
        );
        assert!(elements.iter().all(|(text, _)| !["subject", "topic", "rare one"].contains(&text.as_str())));
        // In the order of the originals.
        assert!(elements[2].0 < elements[0].0 && elements[0].0 < elements[1].0);
        assert_eq!(others, Others::Letters { alphabet: "words".to_owned(), lengths: (5, 8) });
        let (elements, others) = made(&Kind::Int4, &[("7", 0.5), ("12", 0.25), ("4711", 0.001)]);
        assert_eq!(elements, [("7".to_owned(), 0.5), ("12".to_owned(), 0.25)]);
        // Too few rare ones: around the frequent ones, with room.
        let Others::Between { low, high } = others else { panic!() };
        let (low, high): (i64, i64) = (low.parse().unwrap(), high.parse().unwrap());
        assert!(low == 0 && high > 1_000, "{low} {high}");
        assert!(made_of(&Kind::Jsonb, &statistics(&[("1", 0.5)])).is_none());
    }

    #[test]
    fn rare_elements_are_drawn_from_their_own_range() {
        // 7 in each array, one of ten digits in a tenth of them each, and a number that no other array has.
        let mut found = statistics(&[("7", 1.0)]);
        found.elements.extend((0..10).filter(|digit| *digit != 7).map(|digit| (digit.to_string(), 0.1)));
        found.element_counts = [vec![2.0; 10], vec![3.0; 90]].concat();
        found.bounds = (0..100).map(|at| format!("{{{},{},7}}", at % 10, 100_000 + 20 * at)).collect();
        let Some(Values::Elements { elements, others, others_distinct, .. }) = made_of(&Kind::Int4, &found)
        else {
            panic!()
        };
        assert_eq!(elements.len(), 10);
        let Others::Between { low, high } = others else { panic!() };
        let (low, high): (i64, i64) = (low.parse().unwrap(), high.parse().unwrap());
        assert!(low > 100_040 && high < 101_940 && high - low > 1_800, "{low} {high}");
        // Nearly as many as arrays.
        assert!((-1.1..-0.8).contains(&others_distinct), "{others_distinct}");
    }
}
