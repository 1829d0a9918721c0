//! Verdicts on made-up rounds: how often they are right. All seeds are fixed.

use crate::noise::{NOISES, Noise, rounds};
use measure::Verdict;
use measure::paired::{Arm, Estimate, Judged, Rounds, judge};

/// The least difference that matters in all of these.
const THRESHOLD: f64 = 0.01;
/// A's own time, ns.
const OWN: f64 = 100.0;

/// Judges B, which takes so much more than A as a share.
fn judged(noise: Noise, more: f64, count: usize, seed: u64) -> Judged {
    let rounds = rounds(noise, &[OWN, OWN * (1.0 + more)], count, seed * 1000 + count as u64);
    judge(&rounds, &[(0, 1)], THRESHOLD, seed).unwrap()
}

fn tells_a_difference(judged: &Judged) -> bool {
    judged.pairs.iter().any(|pair| matches!(pair.verdict, Verdict::Improved | Verdict::Regressed))
}

/// Of A against A, in at most 2 of 100 runs.
fn assert_false_verdicts_are_rare(count: usize, runs: u64) {
    for noise in NOISES {
        let found = (0..runs).filter(|seed| tells_a_difference(&judged(noise, 0.0, count, *seed))).count();
        assert!(found as u64 * 50 <= runs, "{found} of {runs} with {count} rounds, {}", noise.name);
    }
}

#[test]
fn what_does_not_differ_is_not_told_as_different_after_few_rounds() {
    assert_false_verdicts_are_rare(15, 300);
}

#[test]
fn what_does_not_differ_is_not_told_as_different_after_more_rounds() {
    assert_false_verdicts_are_rare(40, 200);
}

/// The result of a user who adds rounds until the intervals are narrow.
fn stopped(noise: Noise, more: f64, seed: u64) -> Judged {
    let counts = [20, 80, 160, 320, 640];
    let mut all = counts.into_iter().map(|count| judged(noise, more, count, seed));
    all.find(Judged::is_narrow_enough).unwrap_or_else(|| panic!("640 rounds are too few with {}", noise.name))
}

#[test]
fn with_enough_rounds_twice_the_threshold_is_found_and_nothing_is_denied() {
    const RUNS: u64 = 20;
    for noise in NOISES {
        let count = |more: f64, verdict: Verdict| {
            (0..RUNS).filter(|seed| stopped(noise, more, *seed).pairs[0].verdict == verdict).count() as u64
        };
        let slower = count(2.0 * THRESHOLD, Verdict::Regressed);
        assert!(slower * 10 >= RUNS * 9, "{slower} of {RUNS} with {}", noise.name);
        let same = count(0.0, Verdict::NoChange);
        assert!(same * 10 >= RUNS * 8, "{same} of {RUNS} with {}", noise.name);
    }
    let faster = stopped(NOISES[0], -2.0 * THRESHOLD, 3);
    assert_eq!(faster.pairs[0].verdict, Verdict::Improved);
}

fn has(estimate: Estimate, value: f64) -> bool {
    estimate.low <= value && value <= estimate.high
}

#[test]
fn intervals_of_95_percent_hold_the_truth_in_92_to_98() {
    const RUNS: usize = 300;
    for noise in NOISES {
        let (mut seconds, mut shares, mut repeats) = (0, 0, 0);
        for seed in 0..RUNS as u64 {
            let judged = judged(noise, 0.03, 60, seed);
            seconds += usize::from(has(judged.pairs[0].difference, 0.03 * OWN * 1e-9 * middle(noise)));
            shares += usize::from(has(judged.pairs[0].relative.unwrap(), 0.03));
            repeats += usize::from(has(judged.repeat, 0.0));
        }
        for (what, held) in [("seconds", seconds), ("shares", shares), ("repeats", repeats)] {
            let share = held as f64 / RUNS as f64;
            assert!((0.92..=0.98).contains(&share), "{what}: {share} with {}", noise.name);
        }
    }
}

/// Average factor by which the noise lengthens a nanosecond, from the times of a long run.
fn middle(noise: Noise) -> f64 {
    let long = rounds(noise, &[OWN, OWN * 3.0], 20_000, 1);
    let differences: Vec<f64> =
        long.times(Arm::Candidate(1)).zip(long.times(Arm::Candidate(0))).map(|(b, a)| b - a).collect();
    trimmed_mean(differences) / (2.0 * OWN * 1e-9)
}

fn trimmed_mean(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let kept = &values[values.len() / 5..values.len() - values.len() / 5];
    kept.iter().sum::<f64>() / kept.len() as f64
}

/// The middle of the means of all pairs.
fn hodges_lehmann(values: &[f64]) -> f64 {
    let pairs = values
        .iter()
        .enumerate()
        .flat_map(|(place, one)| values[place..].iter().map(move |other| one + other));
    let mut means: Vec<f64> = pairs.map(|sum| sum / 2.0).collect();
    means.sort_by(f64::total_cmp);
    means[means.len() / 2]
}

/// Why the trimmed mean: Hodges and Lehmann's estimator is no better, and costs the square of the rounds in each
/// of thousands of resamples; the mean is much worse.
#[test]
fn the_trimmed_mean_is_as_good_as_hodges_and_lehmanns_and_better_than_the_mean() {
    const RUNS: usize = 2000;
    for noise in NOISES {
        let mut squares = [0.0; 3];
        for seed in 0..RUNS as u64 {
            let rounds = rounds(noise, &[OWN, OWN], 30, seed);
            let a = rounds.times(Arm::Candidate(0));
            let differences: Vec<f64> = rounds.times(Arm::Candidate(1)).zip(a).map(|(b, a)| b - a).collect();
            let mean = differences.iter().sum::<f64>() / differences.len() as f64;
            for (sum, value) in
                squares.iter_mut().zip([hodges_lehmann(&differences), mean, trimmed_mean(differences)])
            {
                *sum += value * value;
            }
        }
        let [hodges_lehmann, mean, trimmed] = squares.map(|sum| (sum / RUNS as f64).sqrt());
        assert!(trimmed <= 1.08 * hodges_lehmann, "{}: {}", noise.name, trimmed / hodges_lehmann);
        if noise.name == "stalls" {
            assert!(trimmed <= 0.5 * mean, "{}", trimmed / mean);
        }
    }
}

#[test]
fn of_many_pairs_one_false_one_is_as_rare_as_of_one() {
    const RUNS: u64 = 150;
    let pairs: Vec<(usize, usize)> = (1..8).map(|candidate| (0, candidate)).collect();
    let false_ones = (0..RUNS).filter(|seed| {
        let rounds = rounds(NOISES[1], &[OWN; 8], 20, *seed);
        tells_a_difference(&judge(&rounds, &pairs, THRESHOLD, *seed).unwrap())
    });
    let found = false_ones.count() as u64;
    assert!(found * 50 <= RUNS, "{found} of {RUNS}");
}

/// Rounds in which A′ differs from A: order or place makes a difference where there is none.
fn with_a_biased_repeat(bias: f64) -> Rounds {
    let fair = rounds(NOISES[0], &[OWN, OWN * 1.03], 200, 5);
    let mut biased = Rounds::new(2, true);
    let times = fair.arms().into_iter().map(|arm| fair.times(arm).collect::<Vec<_>>()).collect::<Vec<_>>();
    for round in 0..fair.count() {
        let mut round: Vec<f64> = times.iter().map(|arm| arm[round]).collect();
        round[3] *= 1.0 + bias;
        biased.push(&round);
    }
    biased
}

#[test]
fn a_difference_within_the_noise_floor_is_none_and_none_is_denied_there() {
    let fair = judge(&with_a_biased_repeat(0.0), &[(0, 1)], THRESHOLD, 1).unwrap();
    assert_eq!(fair.pairs[0].verdict, Verdict::Regressed);
    // 4 % of 150 ns is more than 3 % of 100.
    let biased = judge(&with_a_biased_repeat(0.04), &[(0, 1)], THRESHOLD, 1).unwrap();
    assert_eq!(biased.pairs[0].difference, fair.pairs[0].difference);
    assert!(biased.pairs[0].difference.excludes_zero());
    assert!(biased.pairs[0].noise_floor > biased.pairs[0].difference.value);
    assert_eq!(biased.pairs[0].verdict, Verdict::Inconclusive);
    let within = judge(&with_a_biased_repeat(0.04), &[(0, 1)], 0.045, 1).unwrap();
    assert_eq!(within.pairs[0].verdict, Verdict::Inconclusive);
    let wide = judge(&with_a_biased_repeat(0.04), &[(0, 1)], 0.1, 1).unwrap();
    assert_eq!(wide.pairs[0].verdict, Verdict::NoChange);
}

#[test]
fn what_is_needed_for_a_verdict_is_about_right() {
    let few = judged(NOISES[1], 0.02, 15, 2);
    assert_eq!(few.pairs[0].verdict, Verdict::Inconclusive, "{few:#?}");
    let needed = few.pairs[0].rounds_needed.unwrap();
    assert!((1..500).contains(&needed), "{needed}");
    let more = judged(NOISES[1], 0.02, 15 + 4 * needed as usize, 2);
    assert_eq!(more.pairs[0].verdict, Verdict::Regressed, "{more:#?}");
    assert_eq!(more.pairs[0].rounds_needed, None);
}

#[test]
fn the_empty_loop_is_subtracted_and_what_is_no_more_than_that_has_no_share() {
    let judged =
        judge(&rounds(NOISES[0], &[OWN, 2.0 * OWN, 0.0], 100, 9), &[(0, 1), (2, 0)], THRESHOLD, 9).unwrap();
    let near = |value: f64, ns: f64| (value * 1e9 - ns).abs() < 0.5;
    assert!(near(judged.own[0].value, 100.0) && near(judged.own[1].value, 200.0), "{judged:#?}");
    assert!(near(judged.empty.unwrap().value, 50.0) && near(judged.own[2].value, 0.0), "{judged:#?}");
    assert!((judged.pairs[0].relative.unwrap().value - 1.0).abs() < 0.01);
    assert_eq!(judged.pairs[1].relative, None);
    // A hundredth of the loop then.
    assert!(near(judged.pairs[1].margin, 0.5), "{judged:#?}");
    assert_eq!(judged.pairs[1].verdict, Verdict::Regressed);
}

#[test]
fn drift_is_told_and_does_not_count() {
    let drifting = NOISES.into_iter().find(|noise| noise.name == "drift").unwrap();
    let with_drift = judged(drifting, 0.0, 200, 4);
    // Two thirds of 20 %, beside the first third's mean.
    let told = with_drift.drift.unwrap();
    assert!((0.11..0.15).contains(&told), "{told}");
    assert_eq!(with_drift.pairs[0].verdict, Verdict::NoChange);
    assert_eq!(judged(NOISES[0], 0.0, 200, 4).drift, None);
}

#[test]
fn rounds_that_hang_together_are_noticed() {
    let told = |noise: Noise| judged(noise, 0.0, 200, 6).pairs[0].autocorrelated;
    assert!(told(NOISES[6]) && !told(NOISES[0]));
}

#[test]
fn few_rounds_tell_nothing_and_the_same_rounds_the_same() {
    let few = rounds(NOISES[0], &[OWN, OWN], 14, 1);
    assert_eq!(judge(&few, &[(0, 1)], THRESHOLD, 1), None);
    assert_eq!(judged(NOISES[2], 0.01, 50, 8), judged(NOISES[2], 0.01, 50, 8));
}
