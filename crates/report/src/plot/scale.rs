//! Converts values to pixels and back, and chooses the ticks of an axis.

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    /// Equal differences have equal lengths.
    Linear,
    /// By their logarithm.
    Log,
    /// Shares by log 1/(1−p): 90 %, 99 % and 99.9 % are equally far apart.
    Nines,
}

/// A range of values on a range of pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    pub(crate) spread: Spread,
    /// Lowest value, and highest.
    pub(crate) values: (f64, f64),
    /// Pixels of both.
    pub(crate) pixels: (f64, f64),
}

impl Spread {
    /// The name for the script of a page.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Log => "log",
            Self::Nines => "nines",
        }
    }

    fn straight(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.max(f64::MIN_POSITIVE).log10(),
            Self::Nines => -(1.0 - value).max(1e-12).log10(),
        }
    }

    #[cfg(test)]
    fn back(self, straight: f64) -> f64 {
        match self {
            Self::Linear => straight,
            Self::Log => 10f64.powf(straight),
            Self::Nines => 1.0 - 10f64.powf(-straight),
        }
    }
}

impl Scale {
    /// The pixel of a value; those outside the range are at its end.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let [low, high, value] =
            [self.values.0, self.values.1, value].map(|value| self.spread.straight(value));
        let share = if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 0.5 };
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }

    /// The value of a pixel.
    #[cfg(test)]
    pub(crate) fn back(&self, pixel: f64) -> f64 {
        let [low, high] = [self.values.0, self.values.1].map(|value| self.spread.straight(value));
        let share = (pixel - self.pixels.0) / (self.pixels.1 - self.pixels.0);
        self.spread.back(low + share * (high - low))
    }

    /// Values for the thin lines of a logarithmic grid: 1 to 9 times each power of ten, or none where they would be too many.
    pub(crate) fn between(&self) -> Vec<f64> {
        let (low, high) = self.values;
        if (high / low).log10() > 5.0 {
            return Vec::new();
        }
        #[expect(clippy::cast_possible_truncation, reason = "a power of ten of a number")]
        let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let all = powers.flat_map(|power| (1..10).map(move |digit| f64::from(digit) * 10f64.powi(power)));
        all.filter(|value| *value > low && *value < high).collect()
    }

    /// Values for ticks, about `most` at most.
    pub(crate) fn ticks(&self, most: usize, is_elapsed: bool) -> Vec<f64> {
        let (low, high) = self.values;
        match self.spread {
            Spread::Linear => linear_ticks(low, high, most, is_elapsed),
            Spread::Log => log_ticks(low, high, most),
            Spread::Nines => nines(high),
        }
    }
}

/// The least round step that gives no more ticks than `most`.
fn step(range: f64, most: usize, is_elapsed: bool) -> f64 {
    const TIMES: [f64; 19] = [
        1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 10800.0,
        21600.0, 43200.0, 86400.0, 172_800.0,
    ];
    let least = range / most.max(1) as f64;
    if is_elapsed
        && least > 0.5
        && let Some(step) = TIMES.into_iter().find(|step| *step >= least)
    {
        return step;
    }
    let power = 10f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|times| times * power);
    steps.into_iter().find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(power * 10.0)
}

fn linear_ticks(low: f64, high: f64, most: usize, is_elapsed: bool) -> Vec<f64> {
    if high <= low {
        return vec![low];
    }
    let step = step(high - low, most, is_elapsed);
    let first = (low / step - 1e-9).ceil();
    let mut ticks = Vec::new();
    let mut number = first;
    while number * step <= high + step * 1e-9 {
        // Not -0, nor a tenth that is not quite one.
        ticks.push(if number == 0.0 { 0.0 } else { number * step });
        number += 1.0;
    }
    ticks
}

/// 1, 2 and 5 of each power of ten, or fewer where these are too many.
fn log_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let decades = (low.log10().floor(), high.log10().ceil());
    let of = |factors: &[f64], every: f64| {
        let mut ticks = Vec::new();
        let mut power = decades.0;
        while power <= decades.1 {
            ticks.extend(factors.iter().map(|factor| factor * 10f64.powf(power)));
            power += every;
        }
        ticks.retain(|tick| *tick >= low * (1.0 - 1e-9) && *tick <= high * (1.0 + 1e-9));
        ticks
    };
    let choices = [of(&[1.0, 2.0, 5.0], 1.0), of(&[1.0, 3.0], 1.0), of(&[1.0], 1.0), of(&[1.0], 2.0)];
    let mut ticks = choices.into_iter().find(|ticks| ticks.len() <= most).unwrap_or_else(|| of(&[1.0], 3.0));
    // Both ends have a name where there is room for it.
    let room = (high / low).powf(0.12);
    if ticks.first().is_none_or(|first| first / low > room) {
        ticks.insert(0, low);
    }
    if ticks.last().is_none_or(|last| high / last > room) {
        ticks.push(high);
    }
    ticks
}

fn nines(high: f64) -> Vec<f64> {
    [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999_999]
        .into_iter()
        .filter(|share| *share <= high)
        .collect()
}

/// The range of an axis that contains the values and ends at round ticks.
pub(crate) fn range(
    spread: Spread,
    values: impl Iterator<Item = f64>,
    from_zero: bool,
    most: usize,
) -> (f64, f64) {
    let values = values.filter(|value| value.is_finite() && (spread != Spread::Log || *value > 0.0));
    let (mut low, mut high) = values
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low > high {
        (low, high) = (if spread == Spread::Log { 0.1 } else { 0.0 }, 1.0);
    }
    match spread {
        Spread::Log => {
            let ends = |value: f64, up: bool| {
                let power = 10f64.powf(value.log10().floor());
                let all = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
                let mut found = all.into_iter().filter(|end| if up { *end >= value } else { *end <= value });
                (if up { found.next() } else { found.next_back() }).unwrap_or(value)
            };
            let (low, high) = (ends(low, false), ends(high, true));
            if high > low { (low, high) } else { (low / 2.0, high * 2.0) }
        }
        Spread::Linear => {
            if from_zero {
                (low, high) = (low.min(0.0), high.max(0.0));
            }
            if low >= high {
                (low, high) = if low.abs() < f64::MIN_POSITIVE {
                    (0.0, 1.0)
                } else {
                    (low - low.abs() / 10.0, high + high.abs() / 10.0)
                };
            }
            let step = step(high - low, most, false);
            ((low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step)
        }
        Spread::Nines => (0.0, high),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(linear_ticks(0.0, 300.0, 6, true), [0.0, 60.0, 120.0, 180.0, 240.0, 300.0]);
        assert_eq!(linear_ticks(-0.1, 0.1, 5, false), [-0.1, -0.05, 0.0, 0.05, 0.1]);
        assert_eq!(log_ticks(0.5, 5.0, 6), [0.5, 1.0, 2.0, 5.0]);
        assert_eq!(nines(0.9995), [0.0, 0.5, 0.9, 0.99, 0.999]);
        assert_eq!(range(Spread::Linear, [3.0, 9.7].into_iter(), true, 5), (0.0, 10.0));
        assert_eq!(range(Spread::Log, [0.003, 0.7].into_iter(), false, 5), (0.002, 1.0));
        assert_eq!(range(Spread::Linear, [].into_iter(), true, 5), (0.0, 1.0));
    }

    proptest! {
        #[test]
        fn a_range_has_all_values_and_few_ticks(values in prop::collection::vec(1e-9..1e15f64, 1..9), log: bool) {
            let spread = if log { Spread::Log } else { Spread::Linear };
            let (low, high) = range(spread, values.iter().copied(), false, 5);
            prop_assert!(low < high);
            prop_assert!(values.iter().all(|value| low <= *value * (1.0 + 1e-9) && *value <= high * (1.0 + 1e-9)));
            let scale = Scale { spread, values: (low, high), pixels: (10.0, 500.0) };
            let ticks = scale.ticks(5, false);
            prop_assert!(!ticks.is_empty() && ticks.len() <= 9, "{:?}", ticks);
            for value in values {
                prop_assert!((scale.back(scale.at(value)) / value - 1.0).abs() < 1e-6 || !log);
            }
        }
    }
}
