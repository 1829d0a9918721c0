//! How far distributions of a copy's columns are from the original's, counted in rows that were drawn from both.

mod distances;

use fastrand::Rng;

use self::distances::{ks_of_counts, rank_correlation, shares, variation};

/// Rows that were drawn from a database's tables, and how many rows refer to each key.
#[derive(Clone, Debug, Default)]
pub struct Drawn {
    /// The tables of which rows were drawn.
    pub tables: Vec<DrawnTable>,
    /// The foreign keys, with the numbers of rows that refer to a key.
    pub keys: Vec<DrawnKey>,
    /// Tables and keys that could not be read, with the reason: a sentence each.
    pub unseen: Vec<String>,
}

/// Rows of a table.
#[derive(Clone, Debug)]
pub struct DrawnTable {
    /// `schema.name`.
    pub name: String,
    /// Columns with their values, all equally long, in the order of the rows.
    pub columns: Vec<(String, Cells)>,
}

/// Values of a column, none for NULL.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Numbers; dates and times as seconds.
    Numbers(Vec<Option<f64>>),
    /// Text, of few different values.
    Labels(Vec<Option<String>>),
    /// Text, each with its hash and its length in characters.
    Texts(Vec<Option<(i64, u32)>>),
}

/// A foreign key.
#[derive(Clone, Debug)]
pub struct DrawnKey {
    /// `schema.table (columns)`.
    pub name: String,
    /// Of two parts of the keys that can be referred to: numbers of rows, each with the number of keys to which so many refer.
    pub rows: [Vec<(u64, u64)>; 2],
    /// Rows that refer to no key.
    pub orphans: u64,
}

/// Distances of distributions: 0 is the same, 1 has nothing in common.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    /// Distances of single columns.
    pub columns: Vec<Distance>,
    /// Distances of pairs of columns.
    pub pairs: Vec<Distance>,
    /// Distances of the numbers of rows that refer to a key.
    pub keys: Vec<Distance>,
    /// Foreign keys of the copy with rows that refer to no key, and how many.
    pub orphans: Vec<(String, u64)>,
    /// Tables and keys that could not be compared, with the reason: a sentence each.
    pub unseen: Vec<String>,
}

/// How far one distribution of the copy is from the original's.
#[derive(Clone, Debug)]
pub struct Distance {
    /// The column, the two columns, or the foreign key.
    pub name: String,
    /// How it is measured.
    pub measure: Measure,
    /// Distance of the copy from one half of the original's rows.
    pub copy: f64,
    /// Distance of the original's other half from the same.
    pub itself: f64,
}

impl Distance {
    /// Means of the copy's distances, and of the original's from itself.
    pub fn means(distances: &[Self]) -> Option<(f64, f64)> {
        let count = distances.len() as f64;
        let mean = |of: fn(&Self) -> f64| distances.iter().map(of).sum::<f64>() / count;
        (!distances.is_empty()).then(|| (mean(|one| one.copy), mean(|one| one.itself)))
    }
}

/// How a distance is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Kolmogorov and Smirnov's: the greatest difference between the shares of rows up to a value.
    Ks,
    /// The same of lengths of texts.
    Lengths,
    /// Total variation: the share of the rows that would have to have another value.
    Variation,
    /// The same of frequencies, whatever the values: of the most frequent one, the next, and so on.
    Frequencies,
    /// Half the difference of rank correlations.
    Correlation,
    /// Total variation of which of two columns are NULL.
    Nulls,
}

impl Measure {
    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ks => "KS",
            Self::Lengths => "KS of lengths",
            Self::Variation => "total variation",
            Self::Frequencies => "total variation of frequencies",
            Self::Correlation => "half the difference of rank correlations",
            Self::Nulls => "total variation of NULLs",
        }
    }
}

/// Rows of a table that are compared need at least so many in each half.
const LEAST: usize = 50;
/// Columns of a table that are paired at most.
const PAIRED: usize = 40;

impl Shapes {
    /// Compares: one half of the original's rows, drawn by chance, with the other half and with as many of the copy's.
    pub fn of(original: &Drawn, copy: &Drawn) -> Self {
        let mut rng = Rng::with_seed(0);
        let mut shapes = Self { unseen: original.unseen.clone(), ..Self::default() };
        shapes.unseen.extend(copy.unseen.iter().map(|text| format!("copy: {text}")));
        for table in &original.tables {
            let Some(other) = copy.tables.iter().find(|other| other.name == table.name) else { continue };
            shapes.table(&mut rng, table, other);
        }
        for key in &original.keys {
            let Some(other) = copy.keys.iter().find(|other| other.name == key.name) else { continue };
            if other.orphans > 0 {
                shapes.orphans.push((key.name.clone(), other.orphans));
            }
            let few = |rows: &[(u64, u64)]| rows.iter().map(|(_, keys)| keys).sum::<u64>() < LEAST as u64;
            if key.rows.iter().chain(&other.rows).any(|rows| few(rows)) {
                continue;
            }
            shapes.keys.push(Distance {
                name: key.name.clone(),
                measure: Measure::Ks,
                copy: ks_of_counts(&key.rows[0], &other.rows[0]),
                itself: ks_of_counts(&key.rows[0], &key.rows[1]),
            });
        }
        shapes
    }

    fn table(&mut self, rng: &mut Rng, original: &DrawnTable, copy: &DrawnTable) {
        let rows = |table: &DrawnTable| table.columns.first().map_or(0, |(_, cells)| cells.len());
        let size = (rows(original) / 2).min(rows(copy));
        if size < LEAST {
            return;
        }
        let [mut ours, mut theirs] = [original, copy].map(|table| (0..rows(table)).collect::<Vec<usize>>());
        rng.shuffle(&mut ours);
        rng.shuffle(&mut theirs);
        let halves = |column: &(String, Cells)| {
            let other = copy.columns.iter().find(|other| other.0 == column.0)?;
            let parts =
                [column.1.at(&ours[..size]), column.1.at(&ours[size..2 * size]), other.1.at(&theirs[..size])];
            Some((column.0.clone(), parts))
        };
        let columns: Vec<(String, [Cells; 3])> = original.columns.iter().filter_map(halves).collect();
        for (name, [ours, own, theirs]) in &columns {
            for measure in ours.measures(theirs) {
                self.columns.push(Distance {
                    name: format!("{}.{name}", original.name),
                    measure,
                    copy: ours.distance(theirs, measure),
                    itself: ours.distance(own, measure),
                });
            }
        }
        let paired = &columns[..columns.len().min(PAIRED)];
        for (at, one) in paired.iter().enumerate() {
            for other in &paired[at + 1..] {
                let name = format!("{}.{} and {}", original.name, one.0, other.0);
                self.pairs.extend(pair(&name, &one.1, &other.1));
            }
        }
    }
}

/// Distances of two columns' joint distribution: none if one of them is text with many values that is never NULL.
fn pair(
    name: &str,
    [one, own_one, copy_one]: &[Cells; 3],
    [two, own_two, copy_two]: &[Cells; 3],
) -> Vec<Distance> {
    let words = |one: [Vec<u32>; 3], two: [Vec<u32>; 3], measure| {
        let joint = [0, 1, 2].map(|at| one[at].iter().zip(&two[at]).collect::<Vec<(&u32, &u32)>>());
        let [ours, own, theirs] = joint.each_ref().map(|all| shares(all));
        Distance {
            name: name.to_owned(),
            measure,
            copy: variation(&ours, &theirs),
            itself: variation(&ours, &own),
        }
    };
    if !matches!((one, two), (Cells::Numbers(_), Cells::Numbers(_))) {
        let both = (one.words([own_one, copy_one]), two.words([own_two, copy_two]));
        let (Some(one), Some(two)) = both else { return Vec::new() };
        return vec![words(one, two, Measure::Variation)];
    }
    let mut found = Vec::new();
    if let Some(ours) = rank_correlation(one, two) {
        let apart = |one, two| (rank_correlation(one, two).unwrap_or_default() - ours).abs() / 2.0;
        let (copy, itself) = (apart(copy_one, copy_two), apart(own_one, own_two));
        found.push(Distance { name: name.to_owned(), measure: Measure::Correlation, copy, itself });
    }
    let nulls = |one: &Cells, others: [&Cells; 2]| {
        one.has_nulls().then(|| [one, others[0], others[1]].map(Cells::nulls))
    };
    if let (Some(one), Some(two)) = (nulls(one, [own_one, copy_one]), nulls(two, [own_two, copy_two])) {
        found.push(words(one, two, Measure::Nulls));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(columns: Vec<(&str, Cells)>) -> Drawn {
        let columns = columns.into_iter().map(|(name, cells)| (name.to_owned(), cells)).collect();
        Drawn { tables: vec![DrawnTable { name: "s.t".to_owned(), columns }], ..Drawn::default() }
    }

    fn labels(name: impl Fn(u32) -> Option<String>) -> Cells {
        Cells::Labels((0..8_000).map(name).collect())
    }

    fn numbers(number: impl Fn(u32) -> f64) -> Cells {
        Cells::Numbers((0..8_000_u32).map(|row| (!row.is_multiple_of(10)).then(|| number(row))).collect())
    }

    fn found(shapes: &[Distance], name: &str) -> (f64, f64) {
        let one = shapes.iter().find(|one| one.name == name).unwrap();
        (one.copy, one.itself)
    }

    #[test]
    fn replaced_labels_and_numbers_alike_are_near_and_others_far() {
        let city = |row: u32| (!row.is_multiple_of(7)).then(|| format!("City {}", row % 7 / 3));
        let replaced = |row: u32| (!row.is_multiple_of(7)).then(|| format!("Xity {}", row % 7 / 3));
        let level = |row: u32| Some(format!("level {}", row % 7 / 3));
        let original = table(vec![
            ("city", labels(city)),
            ("level", labels(level)),
            ("n", numbers(|row| f64::from(row % 100))),
        ]);
        let copy = table(vec![
            ("city", labels(replaced)),
            ("level", labels(level)),
            ("n", numbers(|row| f64::from(row % 100))),
        ]);
        let shapes = Shapes::of(&original, &copy);
        assert_eq!(shapes.columns.len(), 3);
        for one in shapes.columns.iter().chain(&shapes.pairs) {
            // Pairs are spread over up to 33 cells.
            assert!(one.copy < 0.08 && one.itself < 0.08, "{one:?}");
        }
        // The same shares of each column, but other pairs.
        let apart = table(vec![
            ("city", labels(|row| city(row / 7))),
            ("level", labels(level)),
            ("n", numbers(|row| f64::from(row % 100) + f64::from(row % 2) * 30.0)),
        ]);
        let shapes = Shapes::of(&original, &apart);
        assert!(found(&shapes.pairs, "s.t.city and level").0 > 0.3, "{shapes:?}");
        let (copy, itself) = found(&shapes.columns, "s.t.n");
        assert!((copy - 0.15).abs() < 0.03 && itself < 0.05, "{copy} {itself}");
        assert!(found(&shapes.columns, "s.t.city").0 < 0.05);
    }

    #[test]
    fn correlations_and_nulls_that_come_together_are_compared() {
        let original = table(vec![("a", numbers(f64::from)), ("b", numbers(|row| 7.0 * f64::from(row)))]);
        let other =
            Cells::Numbers((0..8_000).map(|row| (row % 10 != 5).then(|| f64::from(8_000 - row))).collect());
        let copy = table(vec![("a", numbers(f64::from)), ("b", other)]);
        let shapes = Shapes::of(&original, &copy);
        let of = |measure| shapes.pairs.iter().find(|one| one.measure == measure).unwrap();
        assert!((of(Measure::Correlation).copy - 1.0).abs() < 1e-9 && of(Measure::Correlation).itself < 1e-9);
        assert!((of(Measure::Nulls).copy - 0.2).abs() < 0.03, "{shapes:?}");
    }

    #[test]
    fn rows_for_each_key_are_compared() {
        let drawn = |rows: &[(u64, u64)], orphans| Drawn {
            keys: vec![DrawnKey {
                name: "s.t (k)".to_owned(),
                rows: [rows.to_vec(), rows.to_vec()],
                orphans,
            }],
            ..Drawn::default()
        };
        let shapes = Shapes::of(&drawn(&[(0, 50), (2, 50)], 0), &drawn(&[(1, 100)], 3));
        assert!((shapes.keys[0].copy - 0.5).abs() < 1e-9 && shapes.keys[0].itself < 1e-9);
        assert_eq!(shapes.orphans, [("s.t (k)".to_owned(), 3)]);
    }
}
