//! The runs of a migration in copies of the filled databases: to look at it, to time it at each size, and with readers and
//! writers meanwhile.

use std::time::Duration;

use super::Observer;
use super::clock::{Clock, Work};
use super::copies::{Copies, set_sizes};
use super::fill::Filled;
use super::stall::waiting_transactions;
use crate::error::DdlError;
use crate::outcome::{Probed, StatementOutcome};
use crate::request::{Effort, Probes};

/// See the module.
pub(crate) struct Rounds<'a> {
    pub(crate) site: &'a Copies<'a>,
    pub(crate) effort: Effort,
    pub(crate) probes: Option<&'a Probes>,
    pub(crate) seed: u64,
    /// Whether no rounds follow, so that nothing needs the filled databases afterwards.
    pub(crate) are_last: bool,
    pub(crate) clock: &'a mut Clock,
    pub(crate) observer: &'a mut dyn Observer,
}

/// The readers and writers: without a blocker, and with one.
pub(crate) type BothProbed = (Option<Probed>, Option<Probed>);

/// The work of a migration in [`Rounds::first`] and [`Rounds::all`]. What the look disturbs runs once more after each look. So many transactions
/// (`waiting`) wait for a blocker.
pub(crate) fn works(
    effort: Effort,
    probes: Option<&Probes>,
    (is_disturbed, waiting): (bool, u32),
) -> Vec<Work> {
    let sizes = effort.sizes();
    let runs = sizes.iter().flat_map(|(part, runs)| std::iter::repeat_n(Work::Run(*part), *runs));
    let mut works: Vec<Work> = runs.collect();
    let looks = if effort == Effort::Quick { vec![1.0] } else { vec![sizes[0].0, 1.0] };
    // The only look of a quick measurement is its run, too.
    if effort != Effort::Quick {
        works.extend(looks.iter().copied().map(Work::Run));
    }
    if is_disturbed {
        works.extend(looks.into_iter().map(Work::Run));
    }
    if let Some(probes) = probes {
        works.push(Work::Probed(Duration::ZERO));
        works.extend(probes.blocker.map(|blocker| Work::Probed(blocker.saturating_mul(waiting))));
    }
    works
}

impl Rounds<'_> {
    /// Looks at the statements in the smallest size and times them there. One that fails does so early, and this run tells
    /// how long all take.
    pub(crate) async fn first(
        &mut self,
        filled: &[Filled],
        statements: &mut [StatementOutcome],
    ) -> Result<(), DdlError> {
        let part = self.effort.sizes()[0].0;
        self.observer.stage("looking at each statement at the smallest size");
        self.look((&filled[0], 0), statements, false).await?;
        self.timing(1);
        self.site.time(statements, (&filled[0], 0), self.observer).await?;
        self.clock.did(Work::Run(part));
        self.observer.left(self.clock.left());
        Ok(())
    }

    /// All that is measured, but for the [`Self::first`] run.
    pub(crate) async fn all(
        &mut self,
        filled: &[Filled],
        statements: &mut [StatementOutcome],
    ) -> Result<BothProbed, DdlError> {
        let Some(largest) = filled.last() else { return Ok((None, None)) };
        let is_timed = self.effort == Effort::Quick;
        self.observer.stage(if is_timed {
            "looking at each statement, and timing it"
        } else {
            "looking at each statement"
        });
        self.look((largest, filled.len() - 1), statements, is_timed).await?;
        if !is_timed || self.probes.is_some() {
            self.observer.left(self.clock.left());
        }
        if !is_timed {
            self.timed(filled, statements).await?;
        }
        set_sizes(statements, filled);
        self.stalls(largest, statements).await
    }

    /// Looks at the statements in the size at this place.
    async fn look(
        &mut self,
        (filled, place): (&Filled, usize),
        statements: &mut [StatementOutcome],
        is_timed: bool,
    ) -> Result<(), DdlError> {
        let again =
            Box::pin(self.site.look_at_all((filled, place), statements, is_timed, self.observer)).await?;
        for _ in 0..=usize::from(again) {
            self.clock.did(Work::Run(self.effort.sizes()[place].0));
        }
        Ok(())
    }

    /// Times the statements at several sizes: in turn, so that a machine which becomes slower changes all sizes alike.
    async fn timed(
        &mut self,
        filled: &[Filled],
        statements: &mut [StatementOutcome],
    ) -> Result<(), DdlError> {
        let sizes = self.effort.sizes();
        let most = sizes.iter().map(|(_, runs)| *runs).max().unwrap_or_default();
        let all = self.runs();
        // The first run at the smallest size was before.
        let mut done = 1;
        for round in 0..most {
            for (place, (part, _)) in sizes.iter().enumerate().filter(|(_, (_, runs))| round < *runs) {
                if round == 0 && place == 0 {
                    continue;
                }
                done += 1;
                self.timing(done);
                self.site.time(statements, (&filled[place], place), self.observer).await?;
                self.clock.did(Work::Run(*part));
                if done < all || self.probes.is_some() {
                    self.observer.left(self.clock.left());
                }
            }
        }
        Ok(())
    }

    /// Runs in which statements are timed, at all sizes.
    fn runs(&self) -> usize {
        self.effort.sizes().iter().map(|(_, runs)| runs).sum()
    }

    /// Tells of such a run, by its number.
    fn timing(&mut self, number: usize) {
        let all = self.runs();
        self.observer.stage(&format!("timing the statements, run {number} of {all}"));
    }

    /// Measures the waits of readers and writers at the largest size; again with a blocker, if there is one.
    async fn stalls(
        &mut self,
        largest: &Filled,
        statements: &mut [StatementOutcome],
    ) -> Result<BothProbed, DdlError> {
        let Some(probes) = self.probes else { return Ok((None, None)) };
        self.observer.stage("measuring the waits of readers and writers during the migration");
        let is_last = self.are_last && probes.blocker.is_none();
        let (free, found) =
            self.site.stall((largest, is_last), statements, probes, (None, self.seed), self.observer).await?;
        statements.iter_mut().zip(found).for_each(|(one, stall)| one.stall = stall);
        self.clock.did(Work::Probed(Duration::ZERO));
        let Some(blocker) = probes.blocker else { return Ok((Some(free), None)) };
        let stage = format!("the same, with a transaction that is open for {} s", blocker.as_secs_f64());
        self.observer.stage(&stage);
        let (is_last, run) = (self.are_last, (Some(blocker), self.seed));
        let (behind, found) =
            self.site.stall((largest, is_last), statements, probes, run, self.observer).await?;
        statements.iter_mut().zip(found).for_each(|(one, stall)| one.blocked = stall);
        self.clock.did(Work::Probed(blocker.saturating_mul(waiting_transactions(statements))));
        Ok((Some(free), Some(behind)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_look_disturbs_runs_once_more_for_each_look() {
        for (effort, undisturbed, looks) in [(Effort::Quick, 1, 1), (Effort::Full, 13 + 2, 2)] {
            assert_eq!(works(effort, None, (false, 0)).len(), undisturbed);
            assert_eq!(works(effort, None, (true, 0)).len(), undisturbed + looks);
        }
    }
}
