//! Arrays with few different values: each element of the original is replaced like a column's values.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use rowgen::Kind;

use crate::make::is_text;
use crate::numbers::Number;
use crate::replace;

/// An array's elements in one dimension; none for NULL.
pub(crate) type Elements = Vec<Option<String>>;

/// Arrays in ascending order with their shares; elements of text are replaced by others of the same
/// length and order, the same one everywhere. Arrays of numbers that fewer rows than `least` (a share of all) have are left
/// out. None if no array is left, one has several dimensions, or elements are of another kind.
pub(crate) fn replaced(
    element: &Kind,
    common: &[(String, f64)],
    least: f64,
    rng: &mut Rng,
) -> Option<Vec<(String, f64)>> {
    if !is_text(element) && element.units().is_none() {
        return None;
    }
    let mut arrays: Vec<(Elements, f64)> =
        common.iter().map(|(array, share)| Some((elements(array)?, *share))).collect::<Option<_>>()?;
    if !is_text(element) && !matches!(element, Kind::Bool | Kind::Enum { .. }) {
        arrays.retain(|(_, share)| *share >= least);
    }
    if arrays.is_empty() {
        return None;
    }
    arrays.sort_by(|(one, _), (other, _)| order(element, one, other));
    let each: BTreeSet<&String> = arrays.iter().flat_map(|(array, _)| array.iter().flatten()).collect();
    let map: BTreeMap<String, String> = if is_text(element) {
        let originals: Vec<&str> = each.iter().map(|text| text.as_str()).collect();
        let replaced = replace::texts(&originals, element.characters(), rng);
        originals.iter().map(|text| (*text).to_owned()).zip(replaced).collect()
    } else {
        let stays = |text: &&String| Number::read(element, text).map(|_| ((*text).clone(), (*text).clone()));
        each.iter().map(stays).collect::<Option<_>>()?
    };
    Some(arrays.into_iter().map(|(array, share)| (literal(&array, &map), share)).collect())
}

fn order(element: &Kind, one: &Elements, other: &Elements) -> Ordering {
    let compare = |one: &Option<String>, other: &Option<String>| match (one, other) {
        // NULL is the greatest.
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(one), Some(other)) => match (Number::read(element, one), Number::read(element, other)) {
            (Some(one), Some(other)) if !is_text(element) => one.at.total_cmp(&other.at),
            _ => one.cmp(other),
        },
    };
    let differing = one.iter().zip(other).map(|(one, other)| compare(one, other)).find(|found| found.is_ne());
    differing.unwrap_or_else(|| one.len().cmp(&other.len()))
}

/// The elements of an array as PostgreSQL writes it; none if it has several dimensions or bounds of
/// its own.
pub(crate) fn elements(array: &str) -> Option<Elements> {
    let inner = array.strip_prefix('{')?.strip_suffix('}')?;
    let mut elements = Vec::new();
    let mut characters = inner.chars().peekable();
    while characters.peek().is_some() {
        let mut text = String::new();
        let is_quoted = characters.next_if_eq(&'"').is_some();
        if is_quoted {
            loop {
                match characters.next()? {
                    '"' => break,
                    '\\' => text.push(characters.next()?),
                    other => text.push(other),
                }
            }
        } else {
            while let Some(other) = characters.next_if(|next| *next != ',') {
                if matches!(other, '{' | '}') {
                    return None;
                }
                text.push(other);
            }
        }
        elements.push((is_quoted || text != "NULL").then_some(text));
        match characters.next() {
            None => break,
            Some(',') => {}
            Some(_) => return None,
        }
    }
    Some(elements)
}

/// The array as PostgreSQL reads it, with other elements.
fn literal(elements: &Elements, map: &BTreeMap<String, String>) -> String {
    let element = |element: &Option<String>| match element {
        None => "NULL".to_owned(),
        Some(text) => {
            let text = map.get(text).unwrap_or(text);
            let is_plain = !text.is_empty()
                && text.chars().all(|each| each.is_ascii_alphanumeric() || matches!(each, '-' | '.' | '_'))
                && !text.eq_ignore_ascii_case("null");
            if is_plain {
                text.clone()
            } else {
                format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
            }
        }
    };
    format!("{{{}}}", elements.iter().map(element).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> Vec<(String, f64)> {
        values.iter().map(|value| ((*value).to_owned(), 0.25)).collect()
    }

    #[test]
    fn elements_are_read_as_the_server_writes_them() {
        let read = |array: &str| elements(array).unwrap();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            read("{a,\"b, \\\"c\\\"\",NULL,\"NULL\",\"\"}"),
            [some("a"), some("b, \"c\""), None, some("NULL"), some("")]
        );
        assert!(read("{}").is_empty());
        assert!(elements("{{1,2},{3,4}}").is_none() && elements("[0:1]={1,2}").is_none());
    }

    #[test]
    fn texts_are_replaced_in_the_same_way_in_every_array() {
        let common = of(&["{label2,tag1}", "{label1,tag1}", "{label1}", "{}"]);
        let found = replaced(&Kind::Text, &common, 0.1, &mut Rng::with_seed(1)).unwrap();
        let arrays: Vec<Elements> = found.iter().map(|(array, _)| elements(array).unwrap()).collect();
        assert_eq!(arrays.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1, 2, 2]);
        assert_eq!(arrays[1][0], arrays[2][0]);
        assert_eq!(arrays[2][1], arrays[3][1]);
        assert!(arrays[2][0] < arrays[3][0]);
        assert!(arrays.iter().flatten().flatten().all(|text| !text.starts_with("label") && text != "tag1"));
    }

    #[test]
    fn numbers_stay_if_enough_rows_have_them() {
        let common = of(&["{10,9}", "{9}", "{9,NULL}"]);
        let found = |least| replaced(&Kind::Int4, &common, least, &mut Rng::with_seed(1));
        let arrays: Vec<String> = found(0.2).unwrap().into_iter().map(|(array, _)| array).collect();
        assert_eq!(arrays, ["{9}", "{9,NULL}", "{10,9}"]);
        assert!(found(0.3).is_none(), "a quarter of the rows has 10");
        assert!(replaced(&Kind::Jsonb, &of(&["{1}"]), 0.1, &mut Rng::with_seed(1)).is_none());
    }
}
