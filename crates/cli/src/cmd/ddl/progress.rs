//! Progress of a measurement: the plan, the stages, the statements.

use std::time::Duration;

use ddl::{Observer, Plan, Request, Statement};

use crate::app::conduct::Recording;
use crate::app::printer::Printer;
use crate::app::steps::ShownSteps;
use crate::cmd::ddl::text::{self, rough};

/// Tells of progress, and records the plan.
pub(crate) struct Progress<'a> {
    recording: &'a mut Recording,
    request: &'a Request,
    shown: ShownSteps<'a>,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(recording: &'a mut Recording, request: &'a Request, printer: &'a Printer) -> Self {
        Self { recording, request, shown: ShownSteps::new(printer, "") }
    }
}

impl Observer for Progress<'_> {
    fn planned(&mut self, plan: &Plan) {
        self.shown.stage(text::plan(plan, self.request) + "\n");
        for warning in &plan.warnings {
            self.shown.warn(warning);
            self.recording.note_seen(warning);
        }
        self.recording.set_plan(plan);
        self.recording.save();
    }

    fn stage(&mut self, stage: &str) {
        self.shown.stage(stage);
    }

    fn step(&mut self, step: &str) {
        self.shown.step(step);
    }

    fn left(&mut self, left: Duration) {
        self.shown.say(format!("about {} left", rough(left)));
    }

    fn statement(&mut self, number: usize, of: usize, statement: &Statement) {
        self.shown.stage(format!("  {number} of {of}: {}", text::cut(&statement.in_one_line(), 60)));
    }

    fn warned(&mut self, warning: &str) {
        self.shown.warn(warning);
        self.recording.note_seen(warning);
    }
}
