//! A non-negative least-squares fit of a + b·bytes + c·n·log n, its terms chosen by leave-one-out cross-validation.

/// A measured value at a size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Bytes of the data.
    pub bytes: f64,
    /// Number of their rows.
    pub rows: f64,
    /// The value that was measured, in the quantity's unit.
    pub value: f64,
}

/// Terms that a model may have.
const TERMS: usize = 3;
/// A model with more terms must have a smaller error than this part of the error of one with fewer.
const BETTER: f64 = 0.8;
/// Values below this weigh as much as this one: sums of the squares of the weights are finite.
const LEAST_VALUE: f64 = 1e-100;

/// The terms that a quantity may have, the models with fewer terms first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Models(&'static [&'static [usize]]);

impl Models {
    /// It need not grow with the data.
    pub const CONSTANT_OR_MORE: Self = Self(&[&[0], &[1], &[0, 1]]);
    /// It grows with the bytes.
    pub const OF_BYTES: Self = Self(&[&[1], &[0, 1]]);
    /// It grows, perhaps as a sort does.
    pub const OF_SORTS: Self = Self(&[&[1], &[2], &[0, 1], &[0, 2], &[0, 1, 2]]);

    /// Whether the quantity grows with the data in each of the models.
    pub fn grow(self) -> bool {
        self != Self::CONSTANT_OR_MORE
    }
}

/// A fitted model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Factors of 1, bytes and n·log n; 0 for terms that it has not.
    pub factors: [f64; TERMS],
}

impl Fit {
    /// The fitted value for data of so many bytes and rows, in the unit of the points.
    pub fn at(&self, bytes: f64, rows: f64) -> f64 {
        let terms = terms(bytes, rows);
        self.factors.iter().zip(terms).map(|(factor, term)| factor * term).sum()
    }

    /// The part of the value at a size that grows with it, from 0 to 1.
    pub(crate) fn growing_share(&self, bytes: f64, rows: f64) -> f64 {
        let whole = self.at(bytes, rows);
        if whole > 0.0 { 1.0 - self.factors[0] / whole } else { 1.0 }
    }

    /// The fit whose terms predict best the size that is left out; none with fewer than two sizes.
    pub fn best(points: &[Point], models: Models) -> Option<Self> {
        let sizes = sizes(points);
        if sizes.len() < 2 {
            return None;
        }
        let mut best: Option<(f64, &[usize])> = None;
        for model in models.0.iter().copied().filter(|model| model.len() < sizes.len()) {
            let Some(error) = left_out(points, &sizes, model) else { continue };
            if best.is_none_or(|(least, chosen)| {
                error < least * if model.len() > chosen.len() { BETTER } else { 1.0 }
            }) {
                best = Some((error, model));
            }
        }
        Self::of(points, best?.1)
    }

    /// The fit of a model to all points, with errors relative to the values.
    pub fn of(points: &[Point], model: &[usize]) -> Option<Self> {
        // So few terms that every subset of them can be tried: the best of those whose factors are not negative.
        let mut best: Option<(f64, Self)> = None;
        for chosen in 1..1_usize << model.len() {
            let subset: Vec<usize> =
                (0..model.len()).filter(|bit| chosen >> bit & 1 == 1).map(|bit| model[bit]).collect();
            let Some(factors) = solved(points, &subset) else { continue };
            if factors.iter().any(|factor| *factor < 0.0) {
                continue;
            }
            let fit = Self { factors };
            let error: f64 = points.iter().map(|point| fit.error(point).powi(2)).sum();
            if best.as_ref().is_none_or(|(least, _)| error < *least) {
                best = Some((error, fit));
            }
        }
        best.map(|(_, fit)| fit)
    }

    /// The standard error of the value at a size, as a part of it, if that of each point is 1, as a part of its value. It is larger if less of the
    /// points' values grows. 0 for a value of 0.
    pub(crate) fn leverage(&self, points: &[Point], bytes: f64, rows: f64) -> f64 {
        let model: Vec<usize> = (0..TERMS).filter(|term| self.factors[*term] > 0.0).collect();
        let (value, greatest) = (self.at(bytes, rows), greatest(points));
        if value <= 0.0 {
            return 0.0;
        }
        let at: Vec<f64> = model.iter().map(|term| terms(bytes, rows)[*term] / greatest[*term]).collect();
        let mut matrix = normal(points, &model, &greatest);
        for (line, term) in matrix.iter_mut().zip(&at) {
            line.push(*term);
        }
        let Some(solution) = eliminated(matrix) else { return 0.0 };
        let variance: f64 = solution.iter().zip(&at).map(|(one, other)| one * other).sum();
        variance.max(0.0).sqrt() / value
    }

    /// The difference from a point, relative to its value.
    pub fn error(&self, point: &Point) -> f64 {
        (self.at(point.bytes, point.rows) - point.value) * weight(point)
    }
}

/// The sizes of the points, ascending, each once.
pub fn sizes(points: &[Point]) -> Vec<f64> {
    let mut sizes: Vec<f64> = points.iter().map(|point| point.bytes).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    sizes
}

/// The mean squared relative error of predictions for each size from the others. With one size left to fit, only models of one
/// term can be judged.
fn left_out(points: &[Point], sizes: &[f64], model: &[usize]) -> Option<f64> {
    let mut sum = 0.0;
    for size in sizes {
        let is_out = |point: &&Point| point.bytes.total_cmp(size).is_eq();
        let rest: Vec<Point> = points.iter().filter(|point| !is_out(point)).copied().collect();
        let fit = Fit::of(&rest, model)?;
        let out: Vec<f64> = points.iter().filter(is_out).map(|point| fit.error(point).powi(2)).collect();
        sum += out.iter().sum::<f64>() / out.len() as f64;
    }
    Some(sum)
}

fn terms(bytes: f64, rows: f64) -> [f64; TERMS] {
    [1.0, bytes, rows * rows.max(2.0).log2()]
}

fn weight(point: &Point) -> f64 {
    1.0 / point.value.abs().max(LEAST_VALUE)
}

/// The least-squares solution for these terms, by the normal equations; none if they are not independent.
fn solved(points: &[Point], model: &[usize]) -> Option<[f64; TERMS]> {
    let greatest = greatest(points);
    if model.iter().any(|term| greatest[*term] <= 0.0) {
        return None;
    }
    let mut matrix = normal(points, model, &greatest);
    for (line, term) in matrix.iter_mut().zip(model) {
        let right = points.iter().map(|point| scaled(point, *term, &greatest) * point.value * weight(point));
        line.push(right.sum());
    }
    let solution = eliminated(matrix)?;
    let mut factors = [0.0; TERMS];
    for (term, value) in model.iter().zip(solution) {
        factors[*term] = value / greatest[*term];
    }
    Some(factors)
}

/// The greatest value of each term.
fn greatest(points: &[Point]) -> [f64; TERMS] {
    let mut greatest = [0.0_f64; TERMS];
    for point in points {
        for (most, term) in greatest.iter_mut().zip(terms(point.bytes, point.rows)) {
            *most = most.max(term);
        }
    }
    greatest
}

/// A term of a point with its weight, as a multiple of the greatest one, so that the equations are well conditioned.
fn scaled(point: &Point, term: usize, greatest: &[f64; TERMS]) -> f64 {
    terms(point.bytes, point.rows)[term] / greatest[term] * weight(point)
}

/// The left sides of the normal equations.
fn normal(points: &[Point], model: &[usize], greatest: &[f64; TERMS]) -> Vec<Vec<f64>> {
    let product = |one: usize, other: usize| {
        points.iter().map(|point| scaled(point, one, greatest) * scaled(point, other, greatest)).sum()
    };
    model.iter().map(|one| model.iter().map(|other| product(*one, *other)).collect()).collect()
}

/// Solves linear equations, the right side in the last column; none if they are not independent.
fn eliminated(mut matrix: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let size = matrix.len();
    for column in 0..size {
        let pivot =
            (column..size).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        matrix.swap(column, pivot);
        let scale = matrix[column].iter().fold(0.0_f64, |most, cell| most.max(cell.abs()));
        if matrix[column][column].abs() <= scale * 1e-9 {
            return None;
        }
        for row in (0..size).filter(|row| *row != column) {
            let factor = matrix[row][column] / matrix[column][column];
            let above = matrix[column].clone();
            for (cell, above) in matrix[row].iter_mut().zip(above) {
                *cell -= factor * above;
            }
        }
    }
    Some((0..size).map(|row| matrix[row][size] / matrix[row][row]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(value: impl Fn(f64, f64) -> f64) -> Vec<Point> {
        let size = |bytes: f64| Point { bytes, rows: bytes / 50.0, value: value(bytes, bytes / 50.0) };
        [1e6, 4e6, 16e6].into_iter().flat_map(|bytes| [size(bytes), size(bytes)]).collect()
    }

    #[test]
    fn the_law_behind_the_points_is_found() {
        type Law = fn(f64, f64) -> f64;
        let laws: [(Models, Law); 4] = [
            (Models::CONSTANT_OR_MORE, |_, _| 0.003),
            (Models::OF_BYTES, |bytes, _| 1e-8 * bytes),
            (Models::OF_SORTS, |bytes, _| 0.002 + 1e-8 * bytes),
            (Models::OF_SORTS, |_, rows| 0.001 + 2e-8 * rows * rows.log2()),
        ];
        for (number, (models, law)) in laws.into_iter().enumerate() {
            let fit = Fit::best(&points(law), models).unwrap();
            let (predicted, true_value) = (fit.at(160e6, 3.2e6), law(160e6, 3.2e6));
            assert!(
                (predicted / true_value - 1.0).abs() < 0.01,
                "{number}: {fit:?} {predicted} {true_value}"
            );
        }
    }

    #[test]
    fn factors_are_never_negative() {
        // Falls with the size: nothing that grows.
        let fit = Fit::best(&points(|bytes, _| 1.0 / bytes), Models::CONSTANT_OR_MORE).unwrap();
        assert!(fit.factors.iter().all(|factor| *factor >= 0.0), "{fit:?}");
        // Starts below zero, which only a negative constant would show.
        let fit = Fit::of(&points(|bytes, _| 1e-8 * bytes - 0.005), &[0, 1]).unwrap();
        assert!(fit.factors[0] == 0.0 && fit.factors[1] > 0.0, "{fit:?}");
    }

    #[test]
    fn noise_has_no_growing_share() {
        let noisy = points(|bytes, _| if bytes < 2e6 { 0.0011 } else { 0.001 });
        let share = |models| Fit::best(&noisy, models).unwrap().growing_share(16e6, 3.2e5);
        assert!(share(Models::OF_SORTS) < 0.05 && share(Models::CONSTANT_OR_MORE) < 0.05);
        let growing = points(|bytes, _| 0.002 + 1e-8 * bytes);
        let share = Fit::best(&growing, Models::OF_BYTES).unwrap().growing_share(16e6, 3.2e5);
        assert!((share - 0.16 / 0.162).abs() < 0.01, "{share}");
    }

    #[test]
    fn errors_of_runs_weigh_more_where_less_of_a_value_grows() {
        let of = |value: fn(f64, f64) -> f64, model: &[usize], bytes: f64| {
            let points = points(value);
            Fit::of(&points, model).unwrap().leverage(&points, bytes, bytes / 50.0)
        };
        // The mean of six.
        let mean = 1.0 / 6.0_f64.sqrt();
        assert!((of(|_, _| 0.5, &[0], 1e9) - mean).abs() < 1e-9);
        assert!((of(|bytes, _| 1e-8 * bytes, &[1], 1e9) - mean).abs() < 1e-9);
        let growing = |share: f64| move |bytes: f64, _: f64| 1.0 - share + share * bytes / 16e6;
        let (little, much) = (growing(0.3), growing(0.9));
        let at = |value: &dyn Fn(f64, f64) -> f64, bytes: f64| {
            let points = points(value);
            Fit::of(&points, &[0, 1]).unwrap().leverage(&points, bytes, bytes / 50.0)
        };
        assert!(at(&little, 160e6) > 2.0 * at(&much, 160e6) && at(&little, 160e6) > 2.0 * at(&little, 16e6));
        assert!(of(|_, _| 0.0, &[0], 1e9).abs() < 1e-9);
    }

    #[test]
    fn one_size_gives_no_fit() {
        assert_eq!(Fit::best(&points(|_, _| 1.0)[..2], Models::OF_SORTS), None);
    }

    #[test]
    fn a_value_that_is_always_zero_stays_zero() {
        for models in [Models::CONSTANT_OR_MORE, Models::OF_BYTES, Models::OF_SORTS] {
            let fit = Fit::best(&points(|_, _| 0.0), models).unwrap();
            assert_eq!((fit.at(1e9, 1e7), fit.growing_share(1e9, 1e7)), (0.0, 1.0), "{models:?}");
        }
        // Another session wrote a little in a single run.
        let mut points = points(|_, _| 0.0);
        points[5].value = 48.0;
        let value = Fit::best(&points, Models::CONSTANT_OR_MORE).unwrap().at(1e9, 1e7);
        assert!(value < 48.0, "{value}");
    }
}
