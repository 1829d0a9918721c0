//! The trials of a `tps` run, one after the other.

pub(crate) mod text;

use connect::Connection;
use failure::Class;
use tps::watch::Watched;
use tps::{End, Outcome, Plan, TpsError};

use crate::app::interrupt::{interrupted, interrupted_telling};
use crate::app::printer::Printer;
use crate::app::target::Chosen;
use crate::cmd::tps::args::TpsArgs;
use crate::cmd::tps::live::Live;
use crate::cmd::tps::matrix::LINE_INTERVAL;
use crate::cmd::tps::targets::Targets;
use crate::cmd::tps::{matrix, watched};

/// A trial with the observations made beside it.
pub(crate) struct Measured {
    pub(crate) outcome: Outcome,
    pub(crate) watched: Watched,
}

/// End of a run's trials.
pub(crate) enum Ended {
    Complete,
    Interrupted,
    /// Clients were lost: the reasons, and whether the scripts are the cause.
    Lost(Vec<String>, Class),
    Failed(TpsError),
}

/// The results of a run's trials.
pub(crate) struct Done {
    /// The complete trials; or only the first one, if that is not complete.
    pub(crate) trials: Vec<Measured>,
    pub(crate) ended: Ended,
    /// Number of a trial that is not complete and not kept.
    pub(crate) left_out: Option<usize>,
}

/// Trials to be run.
pub(crate) struct Trials<'a> {
    pub(crate) arguments: &'a TpsArgs,
    pub(crate) plan: &'a Plan,
    pub(crate) chosen: &'a Chosen,
    pub(crate) targets: &'a Targets,
    pub(crate) printer: &'a Printer,
}

impl Trials<'_> {
    /// Runs trials until one is not complete. `keep` is called with each kept trial and its number.
    pub(crate) async fn run(&self, connection: Connection, mut keep: impl FnMut(usize, &Measured)) -> Done {
        let all = self.arguments.trials();
        let mut trials: Vec<Measured> = Vec::new();
        let mut connection = Some(connection);
        for number in 1..=all {
            if all > 1 {
                self.printer.say(format!("trial {number} of {all}"));
            }
            let left_out = (!trials.is_empty()).then_some(number);
            let measured = match self.one(number, connection.take()).await {
                Ok(measured) => measured,
                Err(TpsError::Interrupted) if left_out.is_some() => {
                    return Done { trials, ended: Ended::Interrupted, left_out };
                }
                Err(error) => return Done { trials, ended: Ended::Failed(error), left_out },
            };
            if all > 1 {
                self.printer.say(matrix::text::trial(&self.plan.request, &measured.outcome));
            }
            let ended = match measured.outcome.end {
                End::Complete => None,
                End::Interrupted => Some(Ended::Interrupted),
                End::Parted => Some(Ended::Lost(parted(&measured.outcome), Class::Machine)),
                End::Lost => {
                    let outcome = &measured.outcome;
                    Some(Ended::Lost(super::text::lost(self.plan, outcome), outcome.class_of_loss()))
                }
            };
            if ended.is_none() || left_out.is_none() {
                keep(number, &measured);
                trials.push(measured);
            }
            if let Some(ended) = ended {
                return Done { trials, ended, left_out };
            }
        }
        Done { trials, ended: Ended::Complete, left_out: None }
    }

    async fn one(&self, number: usize, connection: Option<Connection>) -> Result<Measured, TpsError> {
        tokio::select! {
            biased;
            () = interrupted(self.printer) => return Err(TpsError::Interrupted),
            prepared = self.prepare(connection) => prepared?,
        }
        let every = self.arguments.progress.or((self.arguments.trials() > 1).then_some(LINE_INTERVAL));
        let live = Live::new(&self.plan.request, every, self.printer);
        let interrupt = Box::pin(interrupted_telling(|text| live.tell(text)));
        let plan = self.plan.of_trial(number);
        let (result, watched) = watched::run(self.targets.all(), &plan, &live, interrupt).await;
        drop(live);
        Ok(Measured { outcome: result?, watched })
    }

    /// Prepares the tables. (The trial has sessions of its own.)
    async fn prepare(&self, connection: Option<Connection>) -> Result<(), TpsError> {
        if connection.is_none() && !self.plan.request.vacuum {
            return Ok(());
        }
        let connection = match connection {
            Some(connection) => connection,
            // Of this run: other parts may still measure the trial before.
            None => {
                watched::told_apart(&self.chosen.target, self.plan.request.part.as_ref()).connect().await?
            }
        };
        for failure in self.plan.prepare(&connection).await? {
            self.printer.warn(failure);
        }
        connection.close().await;
        Ok(())
    }
}

/// The reason why a part stopped early.
fn parted(outcome: &Outcome) -> Vec<String> {
    outcome.parted.iter().map(ToString::to_string).collect()
}
