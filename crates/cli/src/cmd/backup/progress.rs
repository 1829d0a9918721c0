//! Progress of a rehearsal: the plan, the stages, the trials.

use std::rc::Rc;
use std::time::Duration;

use backup::{DataSize, Held, Observer, Plan, Trial, WalOfLoad, Way};
use measure::human::{bytes, counted, time};

use crate::app::conduct::Recording;
use crate::app::numbers::clock;
use crate::app::steps::ShownSteps;
use crate::cmd::backup::text;

/// Tells of progress, and records plan and trials.
pub(crate) struct Progress<'a> {
    recording: Recording,
    plan: Option<Plan>,
    shown: Rc<ShownSteps<'a>>,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(recording: Recording, shown: Rc<ShownSteps<'a>>) -> Self {
        Self { recording, plan: None, shown }
    }

    /// Records the plan.
    pub(crate) fn record(&mut self, plan: &Plan) {
        self.recording.set_plan(plan);
        for (ways, why) in plan.left_out_by_reason() {
            self.recording.note(format!("pgrig left out {ways}: {why}"));
        }
        self.plan = Some(plan.clone());
        self.recording.save();
    }

    /// The document and the plan.
    pub(crate) fn end(self) -> (Recording, Option<Plan>) {
        (self.recording, self.plan)
    }
}

impl Observer for Progress<'_> {
    fn planned(&mut self, plan: &Plan) {
        self.shown.stage(text::plan(plan) + "\n");
        self.record(plan);
    }

    fn stage(&mut self, text: &str) {
        self.shown.stage(text);
    }

    fn step(&mut self, text: &str) {
        self.shown.step(text);
    }

    fn begins(&mut self, way: &Way, round: u32, at: Option<DataSize>) {
        let of = self.plan.as_ref().map_or(round, |plan| plan.trials);
        let at = at.map_or(String::new(), |at| format!(" at {}", bytes(at.asked)));
        self.shown.stage(format!("round {round} of {of}: {way}{at}"));
    }

    fn done(&mut self, trial: &Trial, left: Duration) {
        let Trial { backup, restore, size, .. } = trial;
        let left = if left.is_zero() {
            String::new()
        } else {
            format!("; about {} left for trials", clock(left.as_secs_f64()))
        };
        self.shown.stage(format!(
            "  {}, backup {}, restore {}{left}",
            bytes(*size),
            time(*backup),
            time(*restore)
        ));
        self.recording.add(trial.document());
    }

    fn counted(&mut self, trial: &Trial) {
        let Some(network) = trial.network else { return };
        let partial = if network.is_partial { "; most of the backup came by another path" } else { "" };
        self.shown.say(format!(
            "  {} from the server, {} to the server{partial}",
            bytes(network.received),
            bytes(network.sent)
        ));
        let document = trial.document();
        let last = self.recording.run.trials.iter_mut().rfind(|last| last.config == document.config);
        if let Some(last) = last {
            *last = document;
        }
        self.recording.save();
    }

    fn measured(&mut self, wal: &WalOfLoad) {
        self.shown.say(format!(
            "  {} of WAL in {}, {:.0} transactions a second",
            bytes(wal.bytes),
            time(wal.seconds),
            wal.tps()
        ));
        self.recording.add(wal.document());
    }

    fn held(&mut self, held: &Held) {
        self.shown.say(format!(
            "  {} of old row versions in {}, {:.0} transactions a second",
            bytes(held.dead),
            time(held.seconds),
            held.tps()
        ));
        self.recording.add(held.document());
    }

    fn cut_short(&mut self, way: &Way, trials: usize, why: &str) {
        let note = if trials == 0 {
            format!("{way} was not measured: {why}")
        } else {
            format!("{way} is not tried again, after {}: {why}", counted(trials as u64, "trial"))
        };
        self.shown.warn(&note);
        self.recording.note(note);
        self.recording.save();
    }

    fn failed(&mut self, way: &Way, why: &str) {
        self.shown.warn(format!("{way} failed, and is not tried again: {why}"));
        let name = way.to_string();
        let smaller = format!("{name} at ");
        self.recording.run.trials.retain(|trial| trial.config != name && !trial.config.starts_with(&smaller));
        self.recording.note(format!("{name} has no result: {why}"));
        self.recording.save();
    }
}
