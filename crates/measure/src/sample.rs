//! Observations of the same thing.

use serde::Serialize;

/// Values that were observed under the same conditions: at least one, all finite, in ascending order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample(Vec<f64>);

impl Sample {
    /// The values as a sample; none if there is no value, or if one is not finite.
    pub fn new(mut values: Vec<f64>) -> Option<Self> {
        let sound = !values.is_empty() && values.iter().all(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        sound.then_some(Self(values))
    }

    /// Number of values.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The values, in ascending order.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// The middle value; of an even number the mean of the two in the middle.
    pub fn median(&self) -> f64 {
        let middle = self.0.len() / 2;
        if self.0.len() % 2 == 1 { self.0[middle] } else { f64::midpoint(self.0[middle - 1], self.0[middle]) }
    }

    /// The least value.
    pub fn lowest(&self) -> f64 {
        self.0[0]
    }

    /// The greatest value.
    pub fn highest(&self) -> f64 {
        self.0[self.0.len() - 1]
    }

    /// The sum divided by the count.
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// The standard deviation, as PostgreSQL's stddev(); none of a single value.
    pub fn deviation(&self) -> Option<f64> {
        let mean = self.mean();
        let squares: f64 = self.0.iter().map(|value| (value - mean).powi(2)).sum();
        (self.0.len() > 1).then(|| (squares / (self.0.len() as f64 - 1.0)).sqrt())
    }

    /// The sample without values below the 10th or above the 90th percentile, as PostgreSQL's
    /// percentile_cont() computes them; none of two values, because both are outside.
    pub fn truncated(&self) -> Option<Self> {
        let cut = (self.0.len() - 1).div_ceil(10);
        (2 * cut < self.0.len()).then(|| Self(self.0[cut..self.0.len() - cut].to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_what_was_observed() {
        for (values, median) in
            [(vec![3.0], 3.0), (vec![9.0, 1.0, 2.0], 2.0), (vec![4.0, 1.0, 2.0, 3.0], 2.5)]
        {
            let sample = Sample::new(values).unwrap();
            assert!((sample.median() - median).abs() < 1e-12);
            assert!(sample.lowest() <= median && median <= sample.highest());
        }
    }

    #[test]
    fn tails_are_cut_as_the_article_does() {
        let sample = |count: i32| Sample::new((1..=count).map(f64::from).collect()).unwrap();
        for (count, first, last) in [(200, 21.0, 180.0), (20, 3.0, 18.0), (11, 2.0, 10.0), (3, 2.0, 2.0)] {
            let kept = sample(count).truncated().unwrap();
            assert_eq!((kept.lowest(), kept.highest()), (first, last), "{count}");
        }
        assert_eq!(sample(1).truncated(), Some(sample(1)));
        assert_eq!(sample(2).truncated(), None);
    }

    #[test]
    fn mean_and_deviation_are_those_of_sql() {
        let sample = Sample::new(vec![2.0, 4.0, 4.0, 6.0]).unwrap();
        assert!((sample.mean() - 4.0).abs() < 1e-12);
        assert!((sample.deviation().unwrap() - (8.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(Sample::new(vec![2.0]).unwrap().deviation(), None);
    }

    #[test]
    fn nothing_and_nonsense_are_no_sample() {
        assert_eq!(Sample::new(Vec::new()), None);
        assert_eq!(Sample::new(vec![1.0, f64::NAN]), None);
    }
}
