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
    fn nothing_and_nonsense_are_no_sample() {
        assert_eq!(Sample::new(Vec::new()), None);
        assert_eq!(Sample::new(vec![1.0, f64::NAN]), None);
    }
}
