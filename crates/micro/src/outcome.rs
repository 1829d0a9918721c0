//! The outcome of a run, and its form in a run document.

use measure::paired::{Judged, Judgement};
use measure::{Event, Sample, Trial, Unit};
use serde_json::json;

use crate::plan::{Plan, Role};
use crate::request::Request;
use crate::run::rounds::{Round, add, empty_rounds, judged};

/// The configuration of the first round, which warms up.
pub(crate) const COLD: &str = "cold";
/// The configuration of all other rounds.
pub const ROUND: &str = "round";
/// The configuration of the results over all rounds.
pub(crate) const VERDICTS: &str = "verdicts";

/// Plan and rounds; all results are computed from them.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The plan that was timed.
    pub plan: Plan,
    /// The rounds in order, the cold one first.
    pub rounds: Vec<Round>,
}

impl Outcome {
    /// An outcome without rounds.
    pub fn new(plan: Plan) -> Self {
        Self { plan, rounds: Vec::new() }
    }

    /// The judgement of the rounds; none if they are too few.
    pub fn judged(&self, request: &Request) -> Option<Judged> {
        let mut rounds = empty_rounds(&self.plan);
        for round in self.rounds.iter().filter(|round| !round.cold) {
            add(&mut rounds, &self.plan, round);
        }
        judged(&rounds, request)
    }

    /// Seconds per row of each sample of an arm, without the cold round.
    pub fn per_row(&self, arm: usize) -> Option<Sample> {
        let warm = self.rounds.iter().filter(|round| !round.cold);
        Sample::new(warm.map(|round| round.seconds[arm] / self.plan.rows as f64).collect())
    }

    /// Median over the rounds of the WAL per row, bytes; none if the server did not tell it.
    pub fn wal_per_row(&self, arm: usize) -> Option<f64> {
        let warm = self.rounds.iter().filter(|round| !round.cold);
        let bytes = warm.filter_map(|round| round.wal[arm]).map(|bytes| bytes / self.plan.rows as f64);
        Sample::new(bytes.collect()).map(|sample| sample.median())
    }

    /// The trials of a run document: one for each round, and one with the results over all rounds.
    pub fn trials(&self, request: &Request) -> Vec<Trial> {
        let verdicts = self.judged(request).map(|judged| self.verdicts(&judged));
        self.rounds.iter().map(|round| self.trial(round)).chain(verdicts).collect()
    }

    /// One round; its observations are in the order in which the arms ran.
    fn trial(&self, round: &Round) -> Trial {
        let config = if round.cold { COLD } else { ROUND };
        let mut trial = Trial { config: config.to_owned(), ..Trial::default() };
        for &arm in &round.order {
            let name = &self.plan.arms[arm].name;
            trial.observe(name, round.seconds[arm], Unit::Seconds);
            if let Some(bytes) = round.wal[arm] {
                trial.observe(&wal_name(name), bytes, Unit::Bytes);
            }
        }
        trial.observe("rows", self.plan.rows as f64, Unit::Rows);
        trial
    }

    fn verdicts(&self, judged: &Judged) -> Trial {
        let names: Vec<&str> = self.plan.candidates().collect();
        let own = judged.own.iter().zip(&names).enumerate().map(|(candidate, (own, name))| {
            let is_measurable = judged.is_measurable(candidate);
            let text = if is_measurable {
                format!("{name}: {} ns a row", nanoseconds(own.value))
            } else {
                format!("{name}: not measurable: the empty loop takes the same time")
            };
            let what =
                json!({ "event": "own-time", "candidate": name, "time": own, "measurable": is_measurable });
            Event { at: 0.0, text, what }
        });
        let pairs = judged.pairs.iter().map(|pair| Event {
            at: 0.0,
            text: format!(
                "{} compared with {}: {}",
                names[pair.candidate], names[pair.baseline], pair.verdict
            ),
            what: verdict(pair, &names),
        });
        let noise = Event {
            at: 0.0,
            text: format!(
                "the first candidate compared with itself: {} ns a row",
                nanoseconds(judged.repeat.value)
            ),
            what: json!({
                "event": "noise", "repeat": judged.repeat, "empty": judged.empty, "drift": judged.drift,
            }),
        };
        let events = own.chain(pairs).chain([noise]).collect();
        Trial { config: VERDICTS.to_owned(), events, ..Trial::default() }
    }

    /// Indexes of the plan's arms that have this role.
    pub fn arms(&self, role: Role) -> impl Iterator<Item = usize> {
        let arms = self.plan.arms.iter().enumerate();
        arms.filter(move |(_, arm)| arm.role == role).map(|(number, _)| number)
    }
}

fn verdict(pair: &Judgement, names: &[&str]) -> serde_json::Value {
    json!({
        "event": "verdict",
        "baseline": names[pair.baseline],
        "candidate": names[pair.candidate],
        "verdict": pair.verdict,
        "difference": pair.difference,
        "relative": pair.relative,
        "margin": pair.margin,
        "noise_floor": pair.noise_floor,
        "autocorrelated": pair.autocorrelated,
        "rounds_needed": pair.rounds_needed,
    })
}

/// Name of the observation of the WAL that an arm's sample wrote.
pub(crate) fn wal_name(arm: &str) -> String {
    format!("{arm}-wal")
}

fn nanoseconds(seconds: f64) -> String {
    format!("{:.2}", seconds * 1e9)
}
