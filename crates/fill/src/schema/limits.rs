//! Limits of a schema fill: the time is that of all tables, and a mark is reported once.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use connect::Connection;
use server::Survey;

use crate::error::FillError;
use crate::limits::{Event, EventKind, Limits, Mark, StopReason, VolumeMonitor};
use crate::plan::{Plan, volume_monitor};
use crate::run::Arrival;

/// The limits of a schema fill.
pub struct SchemaLimits<'a> {
    /// As for a table. A limit of space that ends a fill is for one table.
    pub limits: Limits,
    /// Survey of the server that is filled.
    pub survey: &'a Survey,
    /// The arrival, if this process is one of several parts.
    pub arrival: Option<Arrival>,
}

/// The limits of a fill that is being carried out.
pub(super) struct Clock<'a> {
    limits: Limits,
    survey: &'a Survey,
    began: OnceLock<Instant>,
    /// Marks that were not reported.
    marks: Mutex<Vec<Mark>>,
}

impl<'a> Clock<'a> {
    pub(super) fn new(limits: Limits, survey: &'a Survey) -> Self {
        let marks = Mutex::new(limits.marks.clone());
        Self { limits, survey, began: OnceLock::new(), marks }
    }

    /// Begins to count the time.
    pub(super) fn begin(&self) {
        self.began.get_or_init(Instant::now);
    }

    /// The limit, if the time is over.
    pub(super) fn stopped(&self) -> Option<StopReason> {
        let duration = self.limits.duration?;
        let is_over = self.began.get().is_some_and(|began| began.elapsed() >= duration);
        is_over.then_some(StopReason::Duration { seconds: duration.as_secs_f64() })
    }

    /// The limits of the next table, and the monitor of the volumes, if pgrig can read them.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub(super) async fn of_table(
        &self,
        connection: &Connection,
        plan: &Plan,
    ) -> Result<(Limits, Option<VolumeMonitor>), FillError> {
        let Limits { duration, .. } = self.limits;
        if self.limits == Limits::default() {
            return Ok((Limits::default(), None));
        }
        let passed = self.began.get().map_or_else(Default::default, Instant::elapsed);
        let duration = duration.map(|duration| duration.saturating_sub(passed));
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let limits = Limits { duration, marks, ..self.limits.clone() };
        let volume_monitor = volume_monitor(self.survey, connection, plan, &limits).await?;
        Ok((limits, volume_monitor))
    }

    /// Records the marks that a table has reported.
    pub(super) fn told(&self, events: &[Event]) {
        let is_told = |mark: &Mark| {
            events.iter().any(|event| match &event.what {
                EventKind::MarkPassedBefore { mark: told, .. }
                | EventKind::MarkCrossed { mark: told, .. } => told == mark,
                _ => false,
            })
        };
        self.marks.lock().unwrap_or_else(PoisonError::into_inner).retain(|mark| !is_told(mark));
    }
}
