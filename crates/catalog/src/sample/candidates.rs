//! Tuples that may fulfil a condition: values that the columns get otherwise, NULLs, and values near the condition's
//! constants.

use rowgen::{Constants, Encoder, Format, Kind, Table, Values};
use std::ops::Range;

use super::judge::Tuple;
use super::pattern::matching;
use super::random::Random;

/// Columns of a tuple that are decided together: one column, or those of a foreign key.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    /// Positions in the tuple.
    pub(super) columns: Vec<usize>,
    /// Whether all its columns may be NULL.
    pub(super) nullable: bool,
    /// Values near the constants; for single columns only.
    pub(super) near: Vec<String>,
    /// Values that conditions compare the column with; for single columns only.
    pub(super) named: Vec<String>,
}

/// Fractions of NULLs, and of values near constants, in thousandths. Successive candidates use all
/// pairs of the two.
const NULLS: [u64; 4] = [50, 300, 600, 900];
const NEAR: [u64; 3] = [100, 500, 900];
/// Characters up to which texts of a certain length are made.
const LONGEST: usize = 2_000;
/// Number of addresses, and of networks.
const ADDRESSES: u32 = 200;
/// Most points, or ranges.
const MOST_PLACES: usize = 2_000;
/// Texts that conditions often ask for.
const TEXTS: [&str; 12] = [
    "a",
    "A",
    "abc",
    "ABC",
    "true",
    "2024-01-01",
    "a@example.com",
    "https://example.com/a",
    "/a/b",
    "a-b",
    "{}",
    "00000000-0000-4000-8000-000000000000",
];

/// The encoder of a table's rows as text.
pub(super) fn encoder(table: &Table) -> Encoder {
    Encoder::new(table, Format::Text, Constants::Sent)
}

/// The values of rows, as text.
pub(super) fn texts(encoder: &Encoder, rows: impl IntoIterator<Item = Range<u64>>) -> Vec<Tuple> {
    let mut text = Vec::new();
    for stretch in rows {
        encoder.encode(stretch, &mut text);
    }
    let text = String::from_utf8(text).expect("rows in COPY's text format are UTF-8");
    text.lines().map(|line| line.split('\t').map(field).collect()).collect()
}

/// The table with only these columns, in this order, without those whose values are not sent.
pub(super) fn narrowed(table: &Table, columns: &[&str]) -> Table {
    let sent = |name: &&str| {
        table.columns.iter().find(|column| column.name == **name && column.values != Values::Server).cloned()
    };
    Table { columns: columns.iter().filter_map(sent).collect(), ..table.clone() }
}

/// The table without the NULLs that only a fraction of the rows have.
pub(super) fn without_nulls(table: &Table) -> Table {
    let mut table = table.clone();
    for column in &mut table.columns {
        if let Values::Nulls { values, .. } = &column.values {
            column.values = (**values).clone();
        }
    }
    table
}

/// A field of COPY's text format.
fn field(text: &str) -> Option<String> {
    if text == "\\N" {
        return None;
    }
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        plain.push(match (character, character == '\\') {
            (_, true) => match characters.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some('v') => '\u{b}',
                other => other.unwrap_or('\\'),
            },
            (character, false) => character,
        });
    }
    Some(plain)
}

/// Replaces some values of tuples by NULLs and by values near constants.
pub(super) fn mix(tuples: &mut [Tuple], units: &[Unit], round: u64) {
    let mut random = Random::new(round);
    for (number, tuple) in tuples.iter_mut().enumerate() {
        let (nulls, near) = (NULLS[number % NULLS.len()], NEAR[number / NULLS.len() % NEAR.len()]);
        for unit in units {
            if unit.nullable && random.below(1000) < nulls {
                for &column in &unit.columns {
                    tuple[column] = None;
                }
            } else if !unit.near.is_empty() && random.below(1000) < near {
                tuple[unit.columns[0]] = Some(random.one_of(&unit.near).clone());
            }
        }
    }
}

/// Texts near constants for a column of this kind, and `patterns` texts for each pattern. Not all
/// of them suit the type; the server sorts them out.
pub(super) fn near(kind: &Kind, constants: &[String], patterns: usize) -> Vec<String> {
    let mut near: Vec<String> = constants.to_vec();
    let numbers = constants.iter().filter_map(|constant| constant.parse::<i64>().ok());
    let numbers: Vec<i64> = numbers
        .flat_map(|number| {
            [number, number.saturating_sub(1), number.saturating_add(1), number.saturating_mul(2)]
        })
        .collect();
    near.extend(numbers.iter().map(i64::to_string));
    match kind {
        Kind::Text | Kind::Varchar(_) | Kind::Char(_) | Kind::Name => {
            near.extend(TEXTS.map(str::to_owned));
            let mut random = Random::new(0);
            near.extend(constants.iter().flat_map(|pattern| matching(pattern, patterns, &mut random)));
            near.extend((0..200).map(|number| (number * number).to_string()));
            let lengths = numbers.iter().filter_map(|&number| usize::try_from(number).ok());
            near.extend(lengths.filter(|length| *length <= LONGEST).map(|length| "a".repeat(length)));
            let words = constants.iter().filter(|constant| constant.parse::<f64>().is_err());
            near.extend(words.flat_map(|word| {
                [
                    word.to_lowercase(),
                    word.to_uppercase(),
                    format!("{word}a"),
                    format!("a{word}"),
                    format!("a{word}a"),
                ]
            }));
        }
        Kind::Bytea => {
            let mut random = Random::new(0);
            let lengths = numbers.iter().filter_map(|&number| usize::try_from(number).ok());
            for length in lengths.filter(|length| (1..=LONGEST).contains(length)) {
                let mut digits = || char::from(*random.one_of(b"0123456789abcdef"));
                let mut bytes = || (0..2 * length).map(|_| digits()).collect::<String>();
                near.extend((0..patterns / length).map(|_| format!("\\x{}", bytes())));
            }
        }
        Kind::Json | Kind::Jsonb => near.extend(documents(constants)),
        Kind::Point => {
            let most = numbers.iter().map(|number| number.unsigned_abs()).max().unwrap_or(100).min(1_000_000);
            let mut random = Random::new(0);
            let mut place = || random.below(2 * most + 1).cast_signed() - most.cast_signed();
            near.extend((0..MOST_PLACES.min(patterns)).map(|_| format!("({},{})", place(), place())));
        }
        Kind::Range { element, .. }
            if matches!(**element, Kind::Int4 | Kind::Int8 | Kind::Numeric(_)) && !numbers.is_empty() =>
        {
            let low = numbers.iter().copied().min().unwrap_or(0);
            let length = numbers.iter().map(|number| number.abs_diff(low)).max().unwrap_or(0).max(1);
            let mut random = Random::new(0);
            let mut end = || low.saturating_add_unsigned(random.below(length));
            near.extend((0..MOST_PLACES.min(patterns)).map(|_| {
                let (one, other) = (end(), end());
                format!("[{},{})", one.min(other), one.max(other).saturating_add(1))
            }));
        }
        Kind::Inet | Kind::Cidr => {
            // Addresses of the range for documentation (RFC 3849), and networks.
            near.extend((0..ADDRESSES).map(|number| format!("2001:db8::{number:x}")));
            near.extend((0..ADDRESSES).map(|number| format!("10.0.{number}.0/24")));
        }
        Kind::Array(element) => {
            let elements = self::near(element, constants, patterns / 10);
            let mut random = Random::new(0);
            let quoted = |text: &String| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
            near.extend(elements.iter().map(|text| format!("{{{}}}", quoted(text))));
            near.extend((0..elements.len()).map(|_| {
                let some: Vec<String> =
                    (0..2 + random.below(2)).map(|_| quoted(random.one_of(&elements))).collect();
                format!("{{{}}}", some.join(","))
            }));
            near.push("{}".to_owned());
            near.extend(constants.iter().map(|constant| format!("{{{constant}}}")));
            near.push(format!("{{{}}}", constants.join(",")));
        }
        _ => near.extend(["0", "1", "2", "10", "100", "1000"].map(str::to_owned)),
    }
    near.sort_unstable();
    near.dedup();
    near
}

/// JSON documents with the constants as keys and as values.
fn documents(constants: &[String]) -> Vec<String> {
    let quoted: Vec<String> = constants.iter().map(|text| format!("{text:?}")).collect();
    let values: Vec<String> = ["\"a\"", "1", "true", "{}", "[]"]
        .into_iter()
        .map(str::to_owned)
        .chain(quoted.iter().cloned())
        .collect();
    let object = |keys: &[String], value: &str| {
        let fields: Vec<String> = keys.iter().map(|key| format!("{key}: {value}")).collect();
        format!("{{{}}}", fields.join(", "))
    };
    let mut documents: Vec<String> = values.clone();
    for value in &values {
        documents.push(object(&quoted, value));
        documents.push(format!("[{value}]"));
        documents.extend(quoted.iter().map(|key| object(std::slice::from_ref(key), value)));
    }
    documents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_back() {
        assert_eq!(field("\\N"), None);
        assert_eq!(field("a\\tb\\\\c\\nd"), Some("a\tb\\c\nd".to_owned()));
    }

    #[test]
    fn mixing_gives_nulls_only_where_they_may_be() {
        let mut tuples = vec![vec![Some("1".to_owned()), Some("2".to_owned())]; 1000];
        let unit = |column, nullable| Unit {
            columns: vec![column],
            nullable,
            near: vec!["9".to_owned()],
            named: Vec::new(),
        };
        mix(&mut tuples, &[unit(0, true), unit(1, false)], 0);
        assert!(tuples.iter().any(|tuple| tuple[0].is_none()));
        assert!(tuples.iter().all(|tuple| tuple[1].is_some()));
        assert!(tuples.iter().any(|tuple| tuple[1].as_deref() == Some("9")));
    }
}
