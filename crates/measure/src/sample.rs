//! Observations of the same thing.

/// Values that were observed under the same conditions: at least one, all finite, in ascending order.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample(Vec<f64>);

impl Sample {
    /// None if there is no value, or one that is no finite number.
    pub fn new(mut values: Vec<f64>) -> Option<Self> {
        let sound = !values.is_empty() && values.iter().all(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        sound.then_some(Self(values))
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The middle value; of an even number the mean of the two in the middle.
    pub fn median(&self) -> f64 {
        let middle = self.0.len() / 2;
        if self.0.len() % 2 == 1 { self.0[middle] } else { f64::midpoint(self.0[middle - 1], self.0[middle]) }
    }

    /// The arithmetic mean.
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// The standard deviation of what the values are a sample of (n - 1); 0 of a single value.
    pub fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.0.iter().map(|value| (value - mean).powi(2)).sum();
        (squares / (self.0.len() as f64 - 1.0).max(1.0)).sqrt()
    }

    /// Without the tenth of the values at either end.
    #[must_use]
    pub fn without_tails(&self) -> Self {
        let tail = self.0.len() / 10;
        Self(self.0[tail..self.0.len() - tail].to_vec())
    }

    /// The least value.
    pub fn lowest(&self) -> f64 {
        self.0[0]
    }

    /// The greatest value.
    pub fn highest(&self) -> f64 {
        self.0[self.0.len() - 1]
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
    fn tails_do_not_move_what_is_left() {
        let sample = Sample::new((1..=20).map(f64::from).chain([1e6]).collect()).unwrap();
        let cut = sample.without_tails();
        assert_eq!((cut.count(), cut.lowest(), cut.highest()), (17, 3.0, 19.0));
        assert!((cut.mean() - 11.0).abs() < 1e-12);
        assert!((cut.deviation() - 25.5_f64.sqrt()).abs() < 1e-12, "{}", cut.deviation());
        assert!(Sample::new(vec![3.0]).unwrap().deviation().abs() < 1e-12);
        assert_eq!(Sample::new(vec![1.0, 2.0]).unwrap().without_tails().count(), 2);
    }

    #[test]
    fn nothing_and_nonsense_are_no_sample() {
        assert_eq!(Sample::new(Vec::new()), None);
        assert_eq!(Sample::new(vec![1.0, f64::NAN]), None);
    }
}
