//! Results of a bench so far: figures by variant, and the time left.

use std::time::Duration;

use testdb::bench::{
    Active, Advice, BenchPlan, Cell, Done, Failure, Figures, Finding, Judged, Measured, Variant, advise,
    judge,
};

/// Results of one bench.
pub(crate) struct Results {
    pub(crate) plan: BenchPlan,
    pub(crate) threshold: f64,
    /// Judged trials in the order in which they ran.
    trials: Vec<(Cell, Figures)>,
    failures: Vec<Failure>,
    /// Total time of each completed trial, including the work around it.
    took: Vec<(Cell, Duration)>,
    /// Active settings in each variant's first trial.
    pub(crate) active: Vec<(Variant, Active)>,
}

impl Results {
    pub(crate) fn new(plan: BenchPlan, threshold: f64) -> Self {
        Self {
            plan,
            threshold,
            trials: Vec::new(),
            failures: Vec::new(),
            took: Vec::new(),
            active: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, done: &Done, took: Duration) {
        self.took.push((done.cell, took));
        if !self.active.iter().any(|(variant, _)| *variant == done.cell.variant) {
            self.active.push((done.cell.variant, done.active.clone()));
        }
        if done.is_judged {
            self.trials.push((done.cell, done.figures));
        }
    }

    pub(crate) fn fail(&mut self, failure: &Failure) {
        self.failures.push(failure.clone());
    }

    pub(crate) fn failure(&self, variant: Variant) -> Option<&Failure> {
        self.failures.iter().find(|failure| failure.variant == variant)
    }

    /// Estimated time of the remaining trials after this one; none if it cannot be estimated.
    pub(crate) fn left(&self, number: usize) -> Option<Duration> {
        let mean = |of: Option<Cell>| {
            let took: Vec<f64> = self
                .took
                .iter()
                .filter(|(cell, _)| of.is_none_or(|of| of == *cell))
                .map(|(_, took)| took.as_secs_f64())
                .collect();
            (!took.is_empty()).then(|| took.iter().sum::<f64>() / took.len() as f64)
        };
        let any = mean(None)?;
        let cells = self.plan.rounds.iter().flatten().skip(number).map(|cell| self.plan.cells[*cell]);
        let left = cells.filter(|cell| self.failure(cell.variant).is_none());
        Some(Duration::from_secs_f64(left.map(|cell| mean(Some(cell)).unwrap_or(any)).sum()))
    }

    /// Numbers of clients in the requested order; a single none for a command.
    pub(crate) fn clients(&self) -> Vec<Option<usize>> {
        let of = |cell: &&Cell| cell.variant == Variant::NORMAL;
        self.plan.cells.iter().filter(of).map(|cell| cell.clients).collect()
    }

    /// The judged time: with a command the total, because a suite waits for its database too; with
    /// a script of transactions only the work.
    fn judged(&self) -> Judged {
        if self.clients().contains(&None) { Judged::Total } else { Judged::Work }
    }

    fn measured(&self, clients: Option<usize>) -> Vec<Measured> {
        let of = |variant: &Variant| {
            let cell = Cell { variant: *variant, clients };
            let trials = self.trials.iter().filter(|(other, _)| *other == cell).map(|(_, figures)| *figures);
            let has_failed = self.failure(*variant).is_some();
            Measured { variant: *variant, trials: trials.collect(), has_failed }
        };
        self.plan.choice.variants.iter().map(of).collect()
    }

    /// Findings on each variant with so many clients. Variants that completed no trial are missing.
    pub(crate) fn findings(&self, clients: Option<usize>) -> Vec<Finding> {
        judge(&self.measured(clients), self.judged(), self.threshold)
    }

    /// The recommendation: with several numbers of clients, for the last one.
    pub(crate) fn advice(&self) -> Advice {
        let clients = self.clients().last().copied().flatten();
        advise(&self.measured(clients), self.judged(), self.threshold)
    }
}
