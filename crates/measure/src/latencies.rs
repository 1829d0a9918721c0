//! Many latencies in little memory.

use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Deserializer as Reader, Serialize, Serializer as Writer, de::Error as _};
use thiserror::Error;

/// Resolution, nanoseconds: with [`DIGITS`], all three digits are right from 16 µs on.
const FINEST: u64 = 16;
/// Largest value before the histogram grows for the first time, nanoseconds.
const ROOM: u64 = 10_000_000;
/// Largest value, nanoseconds: 100 days. Longer times count as this.
const LONGEST: u64 = 100 * 24 * 3600 * 1_000_000_000;
/// Significant digits.
const DIGITS: u8 = 3;

/// Latencies as an HDR histogram of nanoseconds: three significant digits, 16 ns at best, 100 days at most.
///
/// It takes 90 kB for any number of latencies up to 16 ms; 8 kB more each time the greatest latency
/// doubles. Recording one takes 4 ns. A run document holds it as base64, about a kilobyte.
#[derive(Clone, PartialEq)]
pub struct Latencies(Histogram<u64>);

/// The percentiles that results show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Percentile {
    /// The median.
    P50,
    /// One in ten exceeds it.
    P90,
    /// One in twenty.
    P95,
    /// One in a hundred.
    P99,
    /// One in a thousand.
    P99_9,
    /// One in ten thousand.
    P99_99,
    /// The longest latency.
    Max,
}

/// The value of each [`Percentile`] of at least one latency. It takes about a hundred bytes, so
/// that one can be kept for every second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentiles([Duration; Percentile::ALL.len()]);

/// A text that holds no latencies.
#[derive(Debug, Error)]
pub enum LatenciesError {
    /// The text is not base64.
    #[error("the latencies are not valid base64: {0}; give a run document that pgrig wrote")]
    Base64(#[from] base64::DecodeError),
    /// It is base64 of something else.
    #[error(
        "the latencies are not an HDR histogram in the compressed V2 format: {0}; give a run document that pgrig wrote"
    )]
    Histogram(#[from] hdrhistogram::serialization::DeserializeError),
    /// Its values cannot be merged with others without a loss.
    #[error(
        "this HDR histogram has {digits} significant digits from {finest} ns on, not {DIGITS} from {FINEST} ns on: give a \
         run document that pgrig wrote"
    )]
    Precision {
        /// Its significant digits.
        digits: u8,
        /// The smallest value that it distinguishes, nanoseconds.
        finest: u64,
    },
}

impl Default for Latencies {
    fn default() -> Self {
        let mut empty = Histogram::new_with_bounds(FINEST, ROOM, DIGITS).expect("these bounds are possible");
        empty.auto(true);
        Self(empty)
    }
}

impl Latencies {
    /// Adds a latency. Latencies over 100 days count as 100 days.
    #[expect(clippy::missing_panics_doc, reason = "it grows as far as that")]
    #[inline]
    pub fn record(&mut self, latency: Duration) {
        let seconds = latency.as_secs().saturating_mul(1_000_000_000);
        let nanoseconds = seconds.saturating_add(u64::from(latency.subsec_nanos())).min(LONGEST);
        self.0.record(nanoseconds).expect("it grows as far as that");
    }

    /// Removes all latencies, and keeps the memory.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// Number of latencies.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The value that this share of them (0 to 1) does not exceed; none if there are none.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        self.some(|histogram| histogram.value_at_quantile(share))
    }

    /// All percentiles that results show; none if there are no latencies.
    pub fn percentiles(&self) -> Option<Percentiles> {
        let value =
            |percentile: Percentile| Duration::from_nanos(self.0.value_at_quantile(percentile.share()));
        (!self.0.is_empty()).then(|| Percentiles(Percentile::ALL.map(value)))
    }

    /// The arithmetic mean; none if there are none.
    pub fn mean(&self) -> Option<Duration> {
        self.some(|histogram| whole(histogram.mean()))
    }

    /// The shortest; none if there are none.
    pub fn min(&self) -> Option<Duration> {
        self.some(Histogram::min)
    }

    /// The longest; none if there are none.
    pub fn max(&self) -> Option<Duration> {
        self.some(Histogram::max)
    }

    fn some(&self, nanoseconds: impl Fn(&Histogram<u64>) -> u64) -> Option<Duration> {
        (!self.0.is_empty()).then(|| Duration::from_nanos(nanoseconds(&self.0)))
    }

    /// HDR's compressed V2 format in base64, as every HDR library and plotter reads it. Values are nanoseconds.
    pub(crate) fn to_base64(&self) -> String {
        // How far it had grown depends on the order of the latencies; the text depends on the latencies alone.
        let longest = self.0.max().max(ROOM);
        let mut fitting =
            Histogram::new_with_bounds(FINEST, longest, DIGITS).expect("these bounds are possible");
        fitting.add(&self.0).expect("it has room for the longest");
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&fitting, &mut bytes)
            .expect("memory takes it, and counts are below 2^63");
        STANDARD.encode(bytes)
    }

    /// Reads the text that `to_base64` wrote.
    ///
    /// # Errors
    /// If it is something else.
    pub fn from_base64(text: &str) -> Result<Self, LatenciesError> {
        let bytes = STANDARD.decode(text)?;
        let mut read: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice())?;
        if (read.low(), read.sigfig()) != (FINEST, DIGITS) {
            return Err(LatenciesError::Precision { digits: read.sigfig(), finest: read.low() });
        }
        read.auto(true);
        Ok(Self(read))
    }
}

/// Shows only a summary, not the thousands of counts.
impl fmt::Debug for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Latencies").field("count", &self.count()).field("of", &self.percentiles()).finish()
    }
}

impl AddAssign<&Self> for Latencies {
    fn add_assign(&mut self, other: &Self) {
        self.0.add(&other.0).expect("it grows as far as the longest");
    }
}

/// As base64.
impl Serialize for Latencies {
    fn serialize<W: Writer>(&self, writer: W) -> Result<W::Ok, W::Error> {
        writer.serialize_str(&self.to_base64())
    }
}

impl<'de> Deserialize<'de> for Latencies {
    fn deserialize<R: Reader<'de>>(reader: R) -> Result<Self, R::Error> {
        Self::from_base64(&String::deserialize(reader)?).map_err(R::Error::custom)
    }
}

impl Percentile {
    /// All, from the lowest to the highest.
    pub const ALL: [Self; 7] =
        [Self::P50, Self::P90, Self::P95, Self::P99, Self::P99_9, Self::P99_99, Self::Max];

    /// The share of all latencies that do not exceed it.
    pub fn share(self) -> f64 {
        match self {
            Self::P50 => 0.5,
            Self::P90 => 0.9,
            Self::P95 => 0.95,
            Self::P99 => 0.99,
            Self::P99_9 => 0.999,
            Self::P99_99 => 0.9999,
            Self::Max => 1.0,
        }
    }

    /// Its name: `p99.9`, `max`.
    pub fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P99_9 => "p99.9",
            Self::P99_99 => "p99.99",
            Self::Max => "max",
        }
    }
}

impl Percentiles {
    /// The value of a percentile.
    pub fn get(&self, percentile: Percentile) -> Duration {
        self.0[percentile as usize]
    }

    /// Each with its percentile, from the lowest to the highest.
    pub fn iter(&self) -> impl Iterator<Item = (Percentile, Duration)> {
        Percentile::ALL.into_iter().zip(self.0)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the longest")]
fn whole(nanoseconds: f64) -> u64 {
    nanoseconds.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(microseconds: impl IntoIterator<Item = u64>) -> Latencies {
        let mut latencies = Latencies::default();
        microseconds.into_iter().for_each(|each| latencies.record(Duration::from_micros(each)));
        latencies
    }

    /// Within three digits.
    #[track_caller]
    fn assert_near(found: Option<Duration>, expected: Duration) {
        let found = found.unwrap();
        let error = found.abs_diff(expected);
        assert!(error <= expected / 1000 + Duration::from_nanos(FINEST), "{found:?}, not {expected:?}");
    }

    #[test]
    fn what_is_told_has_three_digits() {
        let latencies = of(1..=10_000);
        assert_eq!(latencies.count(), 10_000);
        assert_near(latencies.min(), Duration::from_micros(1));
        assert_near(latencies.max(), Duration::from_millis(10));
        assert_near(latencies.mean(), Duration::from_nanos(5_000_500));
        let percentiles = latencies.percentiles().unwrap();
        for (percentile, microseconds) in
            Percentile::ALL.into_iter().zip([5000, 9000, 9500, 9900, 9990, 9999, 10_000])
        {
            let expected = Duration::from_micros(microseconds);
            assert_near(Some(percentiles.get(percentile)), expected);
            assert_near(latencies.quantile(percentile.share()), expected);
        }
        assert!(percentiles.iter().map(|(_, latency)| latency).is_sorted());
    }

    #[test]
    fn of_nothing_there_is_nothing_to_tell() {
        let mut latencies = of([5]);
        latencies.clear();
        assert_eq!(latencies.count(), 0);
        assert_eq!(latencies.percentiles(), None);
        let told = [latencies.quantile(0.5), latencies.mean()];
        assert_eq!(told, [None; 2]);
        assert_eq!([latencies.min(), latencies.max()], [None; 2]);
    }

    #[test]
    fn it_grows_with_what_is_recorded_and_merged() {
        let (short, long) = (of([20]), of([3_600_000_000]));
        for (mut sum, other) in [(short.clone(), &long), (long.clone(), &short)] {
            sum += other;
            assert_eq!(sum.count(), 2);
            assert_near(sum.min(), Duration::from_micros(20));
            assert_near(sum.max(), Duration::from_hours(1));
        }
        let mut latencies = short;
        latencies.record(Duration::MAX);
        assert_near(latencies.max(), Duration::from_hours(24 * 100));
        latencies.record(Duration::ZERO);
        assert_eq!(latencies.count(), 3);
    }

    #[test]
    fn what_is_written_is_read() {
        for latencies in [Latencies::default(), of([0]), of(1..=10_000), of([20, 3_600_000_000])] {
            let document = serde_json::to_string(&latencies).unwrap();
            let mut read: Latencies = serde_json::from_str(&document).unwrap();
            assert_eq!(format!("{read:?}"), format!("{latencies:?}"));
            assert_eq!((read.min(), read.mean()), (latencies.min(), latencies.mean()));
            assert_eq!(read.to_base64(), latencies.to_base64());
            // And continues.
            read += &of([1_000_000_000]);
            assert_eq!(read.count(), latencies.count() + 1);
        }
    }

    #[test]
    fn the_text_depends_on_the_latencies_alone() {
        let all = [20, 30_000, 25_000_000, 45_000_000, 3_600_000_000];
        let once = of(all).to_base64();
        assert_eq!(of(all.into_iter().rev()).to_base64(), once);
        let mut sum = of([45_000_000, 20]);
        sum += &of([3_600_000_000, 25_000_000]);
        sum += &of([30_000]);
        assert_eq!(sum.to_base64(), once);
    }

    #[test]
    fn what_is_something_else_is_told() {
        let coarse = Histogram::<u64>::new_with_bounds(1000, 1_000_000, 2).unwrap();
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&coarse, &mut bytes).unwrap();
        let whole = of(1..=100).to_base64();
        for (text, why) in [
            ("no base64!", "base64"),
            ("", "HDR"),
            ("AAAA", "HDR"),
            (&whole[..whole.len() / 8 * 4], "HDR"),
            (&STANDARD.encode(bytes), "2 significant digits from 1000 ns on"),
        ] {
            let error = Latencies::from_base64(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
            assert!(error.ends_with("give a run document that pgrig wrote"), "{text}: {error}");
        }
    }
}
