//! Arrays with many different values: the statistics of their elements.

use fastrand::Rng;
use rowgen::Kind;

use crate::facts::Statistics;
use crate::file::{Others, Values};
use crate::make::is_text;
use crate::numbers::Number;
use crate::replace::{self, alphabet_of};

/// Most elements that a model lists, as many as there are frequent values at the default statistics target.
const MOST: usize = 100;

/// Values of arrays by their elements. Elements of text are replaced by others of the same length, in the same order; numbers that
/// fewer rows than `least` (a share of all) have are among the other elements. None without statistics of elements, or if
/// elements are of another kind. `round` shortens shares.
pub(crate) fn of(
    element: &Kind,
    statistics: &Statistics,
    least: f64,
    round: impl Fn(f64) -> f64,
    rng: &mut Rng,
) -> Option<Values> {
    let counts = counts(&statistics.element_counts)?;
    let mut listed = statistics.elements.clone();
    listed.sort_by(|one, other| other.1.total_cmp(&one.1));
    listed.truncate(MOST);
    let others = if is_text(element) {
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
        Others::Letters { alphabet, lengths }
    } else {
        element.units()?;
        listed.retain(|(text, share)| *share >= least && Number::read(element, text).is_some());
        let mut numbers: Vec<Number> =
            listed.iter().filter_map(|(text, _)| Number::read(element, text)).collect();
        numbers.sort_by(|one, other| one.at.total_cmp(&other.at));
        match (numbers.first(), numbers.last()) {
            (Some(low), Some(high))
                if low.at < high.at && !matches!(element, Kind::Bool | Kind::Enum { .. }) =>
            {
                Others::Between { low: low.text.clone(), high: high.text.clone() }
            }
            _ => Others::Any,
        }
    };
    let distinct = if statistics.n_distinct == 0.0 { -1.0 } else { statistics.n_distinct };
    listed.sort_by(|one, other| other.1.total_cmp(&one.1));
    let elements =
        listed.into_iter().map(|(text, share)| (text, round(share))).filter(|(_, share)| *share > 0.0);
    Some(Values::Elements { distinct, counts, elements: elements.collect(), others })
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

    fn made(element: &Kind, elements: &[(&str, f64)]) -> (Vec<(String, f64)>, Others) {
        let made = of(element, &statistics(elements), 0.01, |share| share, &mut Rng::with_seed(1)).unwrap();
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
        assert_eq!(others, Others::Between { low: "7".to_owned(), high: "12".to_owned() });
        assert!(
            of(&Kind::Jsonb, &statistics(&[("1", 0.5)]), 0.01, |share| share, &mut Rng::with_seed(1))
                .is_none()
        );
    }
}
