//! Class and strongest lock of the statements of a migration (runs of `pgrig ddl`). They do not vary from run to run, so one run on each side is
//! enough for a verdict.

use std::collections::{BTreeMap, BTreeSet};

use ddl::find::{Class, LockMode};
use measure::compare::Sides;
use measure::{Run, Trial, Verdict};
use serde::Serialize;
use serde_json::Value;

use crate::app::plain::plain;

/// The verb whose runs have them.
const VERB: &str = "ddl";

/// A class or lock that differs between the sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Changed {
    /// Number and text of the statement.
    statement: String,
    /// `class` or `lock`.
    effect: &'static str,
    baseline: String,
    candidate: String,
    pub(crate) verdict: Verdict,
}

impl Changed {
    /// A sentence for people.
    pub(crate) fn in_words(&self) -> String {
        let Self { statement, effect, baseline, candidate, verdict } = self;
        plain(&format!("{effect} of {statement} {verdict}: {candidate} instead of {baseline}")).into_owned()
    }
}

/// Class and locks of a statement.
#[derive(Clone, Debug, PartialEq)]
struct Effects {
    class: Class,
    /// The strongest mode on relations that were there, and these.
    lock: Option<(LockMode, BTreeSet<String>)>,
}

/// The differences between the sides, for statements with the same effects in all runs of a side; nothing for other verbs.
pub(crate) fn of(sides: &Sides) -> Vec<Changed> {
    let [(baseline, _), (candidate, _)] = [sides.baseline(), sides.candidate()].map(of_runs);
    let both =
        baseline.iter().filter_map(|(statement, one)| Some((statement, one, candidate.get(statement)?)));
    both.flat_map(|(statement, one, other)| changed(statement, one, other)).collect()
}

/// Lines for people; nothing for other verbs.
pub(crate) fn lines(sides: &Sides, changed: &[Changed]) -> Vec<String> {
    if sides.baseline()[0].verb != VERB {
        return Vec::new();
    }
    let [baseline, candidate] = [sides.baseline(), sides.candidate()].map(of_runs);
    let (are_compared, missing) = compared(&baseline, &candidate);
    let mut lines: Vec<String> = changed.iter().map(Changed::in_words).collect();
    if changed.is_empty() && are_compared {
        lines.push("classes and locks: no change".to_owned());
    }
    if !missing.is_empty() {
        let text = format!(
            "classes and locks not compared, because only one side has the statement, or they vary on a side: {}",
            missing.join("; ")
        );
        lines.push(plain(&text).into_owned());
    }
    lines
}

/// Effects by statement, and the statements whose effects vary from run to run.
type OfRuns = (BTreeMap<String, Effects>, BTreeSet<String>);

/// Whether any statement is compared, and the statements that are not.
fn compared(baseline: &OfRuns, candidate: &OfRuns) -> (bool, Vec<String>) {
    let sides = [baseline, candidate];
    let all: BTreeSet<&String> =
        sides.iter().flat_map(|(known, varying)| known.keys().chain(varying)).collect();
    let is_on_both = |statement: &&&String| sides.iter().all(|(known, _)| known.contains_key(**statement));
    let missing: Vec<String> =
        all.iter().filter(|statement| !is_on_both(statement)).map(|statement| (*statement).clone()).collect();
    (missing.len() < all.len(), missing)
}

/// The effects of each statement that has the same ones in all runs, and the other statements.
fn of_runs(runs: &[Run]) -> OfRuns {
    let mut known: BTreeMap<String, Effects> = BTreeMap::new();
    let mut varying = BTreeSet::new();
    for trial in runs.iter().filter(|run| run.verb == VERB).flat_map(|run| &run.trials) {
        let Some(effects) = of_trial(trial) else { continue };
        if known.get(&trial.config).is_some_and(|first| *first != effects) {
            varying.insert(trial.config.clone());
        }
        known.insert(trial.config.clone(), effects);
    }
    known.retain(|statement, _| !varying.contains(statement));
    (known, varying)
}

fn of_trial(trial: &Trial) -> Option<Effects> {
    let event = trial.events.iter().find(|event| event.what["event"] == "found")?;
    let found = &event.what["found"];
    let class = Class::ALL.into_iter().find(|class| is_named(class, &found["class"]))?;
    let locks = found["locks"].as_array()?.iter().filter(|lock| lock["is_new"] != true);
    let locks = locks.filter_map(|lock| {
        let mode = LockMode::ALL.into_iter().find(|mode| is_named(mode, &lock["mode"]))?;
        Some((mode, lock["relation"].as_str()?.to_owned()))
    });
    let locks: Vec<(LockMode, String)> = locks.collect();
    let lock = locks.iter().map(|(mode, _)| *mode).max().map(|strongest| {
        let of_mode = locks.into_iter().filter(|(mode, _)| *mode == strongest);
        (strongest, of_mode.map(|(_, relation)| relation).collect())
    });
    Some(Effects { class, lock })
}

/// Whether a document has this value.
fn is_named(known: &impl Serialize, value: &Value) -> bool {
    serde_json::to_value(known).is_ok_and(|known| known == *value)
}

fn changed(statement: &str, baseline: &Effects, candidate: &Effects) -> Vec<Changed> {
    let of = |effect, [baseline, candidate]: [String; 2], verdict| Changed {
        statement: statement.to_owned(),
        effect,
        baseline,
        candidate,
        verdict,
    };
    let mut changed = Vec::new();
    if baseline.class != candidate.class {
        let verdict = if candidate.class > baseline.class { Verdict::Regressed } else { Verdict::Improved };
        changed.push(of("class", [baseline.class, candidate.class].map(|class| class.to_string()), verdict));
    }
    if baseline.lock != candidate.lock {
        let verdict = verdict_of_locks(baseline, candidate);
        changed.push(of("lock", [baseline, candidate].map(shown_lock), verdict));
    }
    changed
}

/// A stronger lock is worse, and one of the same mode on more relations.
fn verdict_of_locks(baseline: &Effects, candidate: &Effects) -> Verdict {
    let mode = |effects: &Effects| effects.lock.as_ref().map(|(mode, _)| *mode);
    let on = |effects: &Effects| effects.lock.clone().map(|(_, on)| on).unwrap_or_default();
    if mode(candidate) != mode(baseline) {
        return if mode(candidate) > mode(baseline) { Verdict::Regressed } else { Verdict::Improved };
    }
    let [before, after] = [on(baseline), on(candidate)];
    if after.is_superset(&before) {
        Verdict::Regressed
    } else if after.is_subset(&before) {
        Verdict::Improved
    } else {
        Verdict::Inconclusive
    }
}

fn shown_lock(effects: &Effects) -> String {
    effects.lock.as_ref().map_or_else(
        || "none".to_owned(),
        |(mode, on)| format!("{mode} on {}", on.iter().map(String::as_str).collect::<Vec<_>>().join(", ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_are_not_on_both_sides_are_named() {
        let of = |statements: &[&str], varying: &[&str]| -> OfRuns {
            let one = |statement: &&str| {
                ((*statement).to_owned(), effects(Class::Scan, LockMode::AccessShare, &["a"]))
            };
            let names = varying.iter().map(|statement| (*statement).to_owned());
            (statements.iter().map(one).collect(), names.collect())
        };
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(compared(&of(&["1"], &[]), &of(&["1"], &[])), (true, Vec::new()));
        assert_eq!(compared(&of(&["1", "2"], &[]), &of(&["1"], &["2"])), (true, names(&["2"])));
        assert_eq!(compared(&of(&["1"], &[]), &of(&["3"], &[])), (false, names(&["1", "3"])));
    }

    fn effects(class: Class, mode: LockMode, on: &[&str]) -> Effects {
        Effects { class, lock: Some((mode, on.iter().map(|name| (*name).to_owned()).collect())) }
    }

    #[test]
    fn heavier_classes_and_stronger_locks_are_worse() {
        let light = effects(Class::CatalogOnly, LockMode::Share, &["o"]);
        let heavy = effects(Class::Rewrite, LockMode::AccessExclusive, &["o"]);
        let verdicts = |one: &Effects, other: &Effects| -> Vec<(&'static str, Verdict)> {
            changed("1: ALTER", one, other).iter().map(|one| (one.effect, one.verdict)).collect()
        };
        assert!(verdicts(&light, &light).is_empty());
        assert_eq!(verdicts(&light, &heavy), [("class", Verdict::Regressed), ("lock", Verdict::Regressed)]);
        assert_eq!(verdicts(&heavy, &light), [("class", Verdict::Improved), ("lock", Verdict::Improved)]);
        let more = effects(Class::CatalogOnly, LockMode::Share, &["o", "p"]);
        let other = effects(Class::CatalogOnly, LockMode::Share, &["p"]);
        assert_eq!(verdicts(&light, &more), [("lock", Verdict::Regressed)]);
        assert_eq!(verdicts(&more, &light), [("lock", Verdict::Improved)]);
        assert_eq!(verdicts(&light, &other), [("lock", Verdict::Inconclusive)]);
        let words = changed("1: ALTER", &light, &heavy)[0].in_words();
        assert_eq!(words, "class of 1: ALTER regressed: rewrite instead of catalog only");
    }
}
