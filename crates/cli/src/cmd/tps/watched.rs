//! Carries out a run of `tps` while its progress is shown and the server is observed.

use std::hash::{DefaultHasher, Hash, Hasher};

use connect::{APPLICATION_NAME, Target};
use tps::watch::{Watch, Watched, Watching};
use tps::{self, Debugged, Moves, Observer, Outcome, Part, Phase, Plan, Second, TpsError};

use crate::app::interrupt::Interrupt;
use crate::cmd::tps::live::Live;

/// Carries the plan out, and observes the first of the targets. The observations are returned even if the run failed.
pub(crate) async fn run(
    targets: &[Target],
    plan: &Plan,
    live: &Live<'_>,
    interrupt: Interrupt<'_>,
) -> (Result<Outcome, TpsError>, Watched) {
    let part = plan.request.part.as_ref();
    let targets: Vec<Target> = targets.iter().map(|target| told_apart(target, part)).collect();
    let target = &targets[0];
    let watching = Watching {
        clients: target.application_name().to_owned(),
        of_all_parts: part.map(mark_of_run),
        jobs: plan.request.jobs,
    };
    let watch = Watch::start(target, watching).await;
    let observer = WatchedRun::new(plan, live, &watch);
    let result = tps::run(&targets, plan, &observer, interrupt).await;
    (result, watch.finish().await)
}

/// Tolerance of times, seconds.
const TOLERANCE: f64 = 0.05;

/// Passes the progress of a run on, and tells the watch when the measured part begins.
struct WatchedRun<'a> {
    live: &'a Live<'a>,
    watch: &'a Watch,
    /// Seconds from the first transaction until measuring begins.
    measured_from: f64,
}

impl<'a> WatchedRun<'a> {
    fn new(plan: &Plan, live: &'a Live<'a>, watch: &'a Watch) -> Self {
        let measured_from = (plan.request.ramp + plan.request.warmup).as_secs_f64();
        if measured_from <= 0.0 {
            watch.measured();
        }
        Self { live, watch, measured_from }
    }
}

impl Observer for WatchedRun<'_> {
    fn second(&self, second: &Second) {
        // The last second that does not count ends when the first one that does begins.
        if second.phase != Phase::Measured && second.at >= self.measured_from - TOLERANCE {
            self.watch.measured();
        }
        self.live.second(second);
    }

    fn waiting(&self, parts: &[usize]) {
        self.live.waiting(parts);
    }

    fn moved(&self, moves: &Moves) {
        self.live.moved(moves);
    }

    fn debugged(&self, debugged: &Debugged) {
        self.live.debugged(debugged);
    }
}

/// The target with an application_name that no other session has.
pub(super) fn told_apart(target: &Target, part: Option<&Part>) -> Target {
    // Two machines may have processes with the same ID.
    let part = part.map_or_else(String::new, |part| format!(" part {}{}", part.number, mark_of_run(part)));
    match target.application_name() {
        APPLICATION_NAME => {
            target.clone().with_application_name(&format!("pgrig tps {}{part}", std::process::id()))
        }
        // The user's own choice.
        _ => target.clone(),
    }
}

/// The end of the application_name of all parts of a run. All have the same version of pgrig, so the same hash.
fn mark_of_run(part: &Part) -> String {
    let mut hasher = DefaultHasher::new();
    (part.of, &part.run).hash(&mut hasher);
    format!(" of run {:016x}", hasher.finish())
}
