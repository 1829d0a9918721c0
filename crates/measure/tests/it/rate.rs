//! Changes of rate in made-up series: those that are there are found, those that are not are not.

use fastrand::Rng;
use measure::{RateChange, Unit, rate_changes, rate_sentences};
use proptest::prelude::*;

/// A second of each rate, with noise: `spread` is its standard deviation as a share, `memory` how
/// much of it stays from one second to the next.
fn series(rates: &[f64], spread: f64, memory: f64, seed: u64) -> Vec<(f64, f64)> {
    let mut random = Rng::with_seed(seed);
    let mut noise = 0.0;
    let mut second = 0.0;
    let mut point = |rate: &f64| {
        second += 1.0;
        noise = memory * noise + (1.0 - memory * memory).sqrt() * normal(&mut random);
        (second, (rate * (1.0 + spread * noise)).max(0.0))
    };
    rates.iter().map(&mut point).collect()
}

/// Nearly normal: twelve uniform numbers have variance 1.
fn normal(random: &mut Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

fn levels(levels: &[(f64, usize)]) -> Vec<f64> {
    levels.iter().flat_map(|&(rate, seconds)| std::iter::repeat_n(rate, seconds)).collect()
}

/// Number of series, of a thousand, in which a change is reported.
fn alarms(make: impl Fn(u64) -> Vec<(f64, f64)>) -> usize {
    (0..1000).filter(|&seed| !rate_changes(&make(seed)).is_empty()).count()
}

#[test]
fn noise_about_a_level_is_no_change() {
    for seconds in [30, 60, 300] {
        for (spread, memory) in [(0.1, 0.0), (0.1, 0.8), (0.3, 0.0), (0.3, 0.5)] {
            let found = alarms(|seed| series(&levels(&[(400.0, seconds)]), spread, memory, seed));
            assert!(found <= 15, "{found} of 1000 with {seconds} s, spread {spread}, memory {memory}");
        }
    }
}

#[test]
fn stalls_are_no_change() {
    let checkpoints: Vec<f64> = (0..300).map(|second| if second % 30 < 2 { 20.0 } else { 400.0 }).collect();
    assert_eq!(alarms(|seed| series(&checkpoints, 0.1, 0.3, seed)), 0);
    for (seconds, stall) in [(40, 3), (60, 5), (300, 20)] {
        let found = alarms(|seed| {
            let start = Rng::with_seed(seed).usize(0..=seconds - stall);
            let rates = levels(&[(400.0, start), (0.0, stall), (400.0, seconds - stall - start)]);
            series(&rates, 0.1, 0.3, seed)
        });
        assert!(found <= 5, "{found} of 1000 with a stall of {stall} s in {seconds} s");
    }
}

#[test]
fn a_slow_decline_has_no_when() {
    let decline: Vec<f64> = (0..300).map(|second| 400.0 - f64::from(second)).collect();
    assert_eq!(alarms(|seed| series(&decline, 0.05, 0.3, seed)), 0);
}

#[test]
fn a_change_is_found_when_it_came() {
    let parts = [(132, 200), (20, 20), (20, 80), (300, 100)];
    for (before, after) in parts {
        for (from, to) in [(410.0, 95.0), (95.0, 410.0), (400.0, 200.0)] {
            let right = (0..1000).filter(|&seed| {
                let changes = rate_changes(&series(&levels(&[(from, before), (to, after)]), 0.15, 0.3, seed));
                matches!(changes[..], [change] if is_near(change, before, from, to))
            });
            let right = right.count();
            assert!(right >= 950, "{right} of 1000: {from} for {before} s, {to} for {after} s");
        }
    }
}

fn is_near(change: RateChange, at: usize, before: f64, after: f64) -> bool {
    (change.at - at as f64).abs() <= 3.0
        && (change.before / before - 1.0).abs() < 0.2
        && (change.after / after - 1.0).abs() < 0.2
}

#[test]
fn several_changes_are_found_and_told() {
    let rates = levels(&[(410e6, 60), (95e6, 80), (410e6, 60)]);
    let changes = rate_changes(&series(&rates, 0.0, 0.0, 0));
    assert_eq!(
        rate_sentences("the write rate", &changes, Unit::Bytes),
        [
            "the write rate fell from 410 MB/s to 95.0 MB/s at 60 s and stayed there for 80 s",
            "the write rate rose from 95.0 MB/s to 410 MB/s at 140 s and stayed there",
        ]
    );
    let changes = rate_changes(&series(&levels(&[(3e6, 132), (7e5, 100)]), 0.0, 0.0, 0));
    assert_eq!(
        rate_sentences("the write rate", &changes, Unit::Rows),
        ["the write rate fell from 3.00 M rows/s to 700 k rows/s at 132 s and stayed there"]
    );
}

#[test]
fn a_second_that_was_longer_or_cut_short_is_no_change() {
    let mut points = series(&levels(&[(400.0, 40)]), 0.0, 0.0, 0);
    points[20] = (21.9, 760.0);
    points[21] = (22.0, 40.0);
    points.push((40.3, 120.0));
    assert_eq!(rate_changes(&points), []);
}

proptest! {
    /// Whatever the series: changes are in order, inside it, between rates that differ, and the same
    /// in another unit.
    #[test]
    fn changes_make_sense(rates in prop::collection::vec(0.0..1e3_f64, 0..200), step in 0..150_usize) {
        let raised: Vec<f64> =
            rates.iter().enumerate().map(|(second, rate)| if second < step { *rate } else { rate + 900.0 }).collect();
        let points = series(&raised, 0.0, 0.0, 0);
        let changes = rate_changes(&points);
        for change in &changes {
            prop_assert!(change.at >= 15.0 && change.until - change.at >= 15.0);
            prop_assert!((change.before - change.after).abs() >= 0.25 * change.before.max(change.after));
        }
        let ends: Vec<f64> = changes.iter().map(|change| change.until).collect();
        let starts = changes.iter().skip(1).map(|change| change.at).chain(changes.last().map(|_| rates.len() as f64));
        prop_assert_eq!(ends, starts.collect::<Vec<f64>>());
        let eightfold: Vec<(f64, f64)> = points.iter().map(|(end, amount)| (*end, amount * 8.0)).collect();
        let times = |changes: &[RateChange]| changes.iter().map(|change| change.at).collect::<Vec<f64>>();
        prop_assert_eq!(times(&changes), times(&rate_changes(&eightfold)));
    }
}
