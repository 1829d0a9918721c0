//! Run documents as a report reads them.

use measure::{Run, Trial, UnreadableRun};
use serde_json::Value;

/// A run, and the text of its document as it was saved.
#[derive(Clone, Debug)]
pub struct Document {
    /// The document: a report contains it byte for byte.
    pub text: String,
    /// The document, parsed.
    pub run: Run,
}

impl Document {
    /// Reads a document.
    ///
    /// # Errors
    /// If the text is not a run document.
    pub fn read(text: String) -> Result<Self, UnreadableRun> {
        Run::read(&text).map(|run| Self { text, run })
    }
}

/// The name of a run among others: its label, or its start.
pub(crate) fn name(run: &Run) -> String {
    run.label.clone().unwrap_or_else(|| began(run))
}

/// Start of a run, without parts of a second: `2026-11-24 08:00:00`.
pub(crate) fn began(run: &Run) -> String {
    run.started_at.split('.').next().unwrap_or_default().trim_end_matches('Z').replace('T', " ")
}

/// PostgreSQL's release: `PostgreSQL 18.6`.
pub(crate) fn release(run: &Run) -> &str {
    run.environment.server.release()
}

/// The points of a series; none if the trial does not have it.
pub(crate) fn series<'a>(trial: &'a Trial, name: &str) -> Option<&'a [(f64, f64)]> {
    let found = trial.series.iter().find(|series| series.name == name)?;
    (!found.points.is_empty()).then_some(found.points.as_slice())
}

/// The values of an observation in the trials of a configuration.
pub(crate) fn values(run: &Run, config: &str, name: &str) -> Vec<f64> {
    run.trials.iter().filter(|trial| trial.config == config).filter_map(|trial| trial.value(name)).collect()
}

/// The configurations of the trials, in the order of the plan if there is one, else as they came first.
pub(crate) fn configs(run: &Run) -> Vec<String> {
    let planned = run.plan["cells"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut found: Vec<String> = Vec::new();
    for config in planned.chain(run.trials.iter().map(|trial| trial.config.as_str())) {
        if !found.iter().any(|known| known == config) {
            found.push(config.to_owned());
        }
    }
    found.retain(|config| run.trials.iter().any(|trial| trial.config == *config));
    found
}

/// The median; none of no values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    measure::Sample::new(values.to_vec()).map(|sample| sample.median())
}
