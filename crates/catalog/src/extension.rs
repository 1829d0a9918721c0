//! Values of types of extensions, in the text that their input functions read.

use rowgen::{Values, Weighted};

use super::info::{DataType, TypeShape};

/// Most and fewest different values.
const MOST: usize = 1_000;
const FEWEST: usize = 20;
/// Characters of all values, about, since the description of a table holds them.
const CHARACTERS: usize = 200_000;
/// Labels of paths and values of keys.
const WORDS: [&str; 6] = ["amber", "birch", "cedar", "dusk", "ember", "fern"];

/// The value of a number.
type Make = Box<dyn Fn(usize) -> String>;

/// Values of a type that rowgen does not know; none if its text is unknown, too.
pub(super) fn values(data_type: &DataType) -> Option<Values> {
    let base = data_type.base();
    let TypeShape::Scalar { name, built_in: false } = &base.shape else { return None };
    let value = make(name, base)?;
    let count = (CHARACTERS / value(0).len().max(1)).clamp(FEWEST, MOST);
    Some(Values::List((0..count).map(|number| Weighted { value: value(number), weight: 1.0 }).collect()))
}

fn make(name: &str, data_type: &DataType) -> Option<Make> {
    let word = |number: usize| WORDS[number % WORDS.len()];
    Some(match name {
        "ltree" => Box::new(move |number: usize| format!("top.{}.n{number}", word(number))),
        "hstore" => Box::new(move |number: usize| {
            format!("\"number\"=>\"{number}\", \"label\"=>\"{}\"", word(number))
        }),
        "cube" => Box::new(|number: usize| format!("({})", coordinates(number, 3))),
        "seg" => Box::new(|number: usize| format!("{number} .. {}", number + 1)),
        "vector" | "halfvec" => {
            let dimensions = data_type.modifiers.first().and_then(|&count| usize::try_from(count).ok());
            let dimensions = dimensions.unwrap_or(3);
            Box::new(move |number: usize| format!("[{}]", coordinates(number, dimensions)))
        }
        "geometry" | "geography" => shape(&data_type.sql)?,
        _ => return None,
    })
}

/// Shapes for a type such as `geometry(Point,4326)`.
fn shape(sql: &str) -> Option<Make> {
    let inside = sql.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or_default();
    let (kind, system) = inside.split_once(',').unwrap_or((inside, ""));
    let system = if system.is_empty() { String::new() } else { format!("SRID={system};") };
    let place = |number: usize, moved: f64| {
        let (east, north) = (100.0 * coordinate(number, 0), 50.0 * coordinate(number, 1));
        format!("{:.4} {:.4}", east + moved, north + moved * moved)
    };
    let ends = move |number: usize| format!("{}, {}", place(number, 0.0), place(number, 1.0));
    let ring =
        move |number: usize| format!("({}, {}, {})", ends(number), place(number, 2.0), place(number, 0.0));
    Some(match kind.to_lowercase().as_str() {
        "" | "geometry" | "point" => {
            Box::new(move |number: usize| format!("{system}POINT({})", place(number, 0.0)))
        }
        "multipoint" => Box::new(move |number: usize| format!("{system}MULTIPOINT({})", ends(number))),
        "linestring" => Box::new(move |number: usize| format!("{system}LINESTRING({})", ends(number))),
        "multilinestring" => {
            Box::new(move |number: usize| format!("{system}MULTILINESTRING(({}))", ends(number)))
        }
        "polygon" => Box::new(move |number: usize| format!("{system}POLYGON({})", ring(number))),
        "multipolygon" => Box::new(move |number: usize| format!("{system}MULTIPOLYGON(({}))", ring(number))),
        _ => return None,
    })
}

/// As many numbers from -1 to 1, separated by commas.
fn coordinates(number: usize, count: usize) -> String {
    let each: Vec<String> = (0..count).map(|at| format!("{:.3}", coordinate(number, at))).collect();
    each.join(",")
}

/// A number from -1 to 1 that looks random.
fn coordinate(number: usize, at: usize) -> f64 {
    let mut bits = (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        ^ (at as u64 + 1).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((bits >> 33) % 2_001) as f64 / 1_000.0 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(name: &str, sql: &str, modifiers: &[i32]) -> Option<String> {
        let shape = TypeShape::Scalar { name: name.to_owned(), built_in: false };
        let data_type = DataType { sql: sql.to_owned(), modifiers: modifiers.to_vec(), shape };
        match values(&data_type)? {
            Values::List(values) => Some(values[0].value.clone()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn vectors_have_their_dimensions() {
        let vector = first("vector", "vector(1536)", &[1536]).unwrap();
        assert_eq!(vector.split(',').count(), 1_536);
        assert!(vector.starts_with('[') && vector.ends_with(']'), "{vector}");
    }

    #[test]
    fn shapes_have_their_kind_and_reference_system() {
        for (sql, beginning) in [
            ("geometry(Point,4326)", "SRID=4326;POINT("),
            ("geography(Polygon,4326)", "SRID=4326;POLYGON(("),
            ("geometry(MultiPolygon)", "MULTIPOLYGON((("),
            ("geometry", "POINT("),
        ] {
            let (name, _) = sql.split_once('(').unwrap_or((sql, ""));
            let value = first(name, sql, &[]).unwrap();
            assert!(value.starts_with(beginning), "{value}");
        }
        assert_eq!(first("geometry", "geometry(PointZ,4326)", &[]), None);
        assert_eq!(first("raster", "raster", &[]), None);
    }
}
