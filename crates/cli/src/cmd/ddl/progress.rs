//! Progress of a measurement: the plan, the stages, the statements.

use std::time::Duration;

use ddl::{Observer, Plan, Request, Statement};

use crate::app::conduct::Recording;
use crate::app::json;
use crate::app::printer::Printer;
use crate::cmd::ddl::text::{self, rough};

/// Tells of progress, and records the plan.
pub(crate) struct Progress<'a> {
    recording: Recording,
    request: &'a Request,
    printer: &'a Printer,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(recording: Recording, request: &'a Request, printer: &'a Printer) -> Self {
        Self { recording, request, printer }
    }

    /// The document.
    pub(crate) fn end(self) -> Recording {
        self.recording
    }
}

impl Observer for Progress<'_> {
    fn planned(&mut self, plan: &Plan) {
        self.printer.say(text::plan(plan, self.request) + "\n");
        for warning in &plan.warnings {
            self.printer.warn(warning);
        }
        match json::value(plan) {
            Ok(plan) => self.recording.run.plan = plan,
            Err(failure) => self.recording.keep(failure),
        }
        self.recording.save();
    }

    fn stage(&mut self, stage: &str) {
        self.printer.say(stage);
    }

    fn left(&mut self, left: Duration) {
        self.printer.say(format!("about {} left", rough(left)));
    }

    fn statement(&mut self, number: usize, of: usize, statement: &Statement) {
        self.printer.say(format!("  {number} of {of}: {}", text::cut(&statement.in_one_line(), 60)));
    }

    fn warned(&mut self, warning: &str) {
        self.printer.warn(warning);
    }
}
