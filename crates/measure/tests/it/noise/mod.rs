//! Rounds as shared machines make them.

use fastrand::Rng;
use measure::paired::Rounds;

/// Disturbances of samples, as shares of their time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise {
    pub(crate) name: &'static str,
    /// Of each sample: standard deviation of the logarithm.
    spread: f64,
    /// Of each sample above its least: mean of an exponential, so a heavy right tail.
    tail: f64,
    /// How often a sample is hit by a stall, and for how much longer it then takes on average.
    stalls: (f64, f64),
    /// Of all samples of a round alike, each round's another: standard deviation of the logarithm.
    round: f64,
    /// How much of an arm's own noise stays from one round to the next.
    memory: f64,
    /// Slowdown of all samples from the first round to the last.
    drift: f64,
}

const CALM: Noise =
    Noise { name: "calm", spread: 0.01, tail: 0.0, stalls: (0.0, 0.0), round: 0.0, memory: 0.0, drift: 0.0 };
pub(crate) const NOISES: [Noise; 7] = [
    CALM,
    Noise { name: "right tail", spread: 0.005, tail: 0.02, ..CALM },
    Noise { name: "stalls", stalls: (0.05, 0.5), ..CALM },
    Noise { name: "slow rounds", tail: 0.01, round: 0.1, ..CALM },
    Noise { name: "drift", stalls: (0.02, 0.3), drift: 0.2, ..CALM },
    Noise { name: "some memory", memory: 0.3, ..CALM },
    Noise { name: "much memory", memory: 0.5, ..CALM },
];

/// Nearly normal: twelve uniform numbers have variance 1.
fn normal(random: &mut Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

/// Rounds of candidates that take so many nanoseconds beyond a loop of 50.
pub(crate) fn rounds(noise: Noise, own: &[f64], count: usize, seed: u64) -> Rounds {
    let mut random = Rng::with_seed(seed);
    let mut rounds = Rounds::new(own.len(), true);
    let mut remembered = vec![0.0; own.len() + 2];
    let fresh = (1.0 - noise.memory * noise.memory).sqrt();
    for round in 0..count {
        let level =
            (noise.round * normal(&mut random)).exp() * (1.0 + noise.drift * round as f64 / count as f64);
        let arms = own.iter().copied().chain([0.0, own[0]]).enumerate();
        let sample = |(arm, own): (usize, f64)| {
            remembered[arm] = noise.memory * remembered[arm] + fresh * normal(&mut random);
            let mut time = (50.0 + own) * 1e-9 * level * (noise.spread * remembered[arm]).exp();
            time *= 1.0 - noise.tail * (1.0 - random.f64()).ln();
            if random.f64() < noise.stalls.0 {
                time *= 1.0 - noise.stalls.1 * (1.0 - random.f64()).ln();
            }
            time
        };
        let times: Vec<f64> = arms.map(sample).collect();
        rounds.push(&times);
    }
    rounds
}
