//! Periods of checkpoints and of maintenance, found by an observation each second.

use std::collections::BTreeMap;

use crate::watch::server::{Look, Maintenance};

/// Events less than this apart count as one, seconds: twice the interval of observations.
const NEAR: f64 = 2.0;

/// Time span of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period {
    /// Its beginning, seconds since measuring began; below 0 if it began before.
    pub from: f64,
    /// Its end; none if it still lasted when measuring ended.
    pub until: Option<f64>,
}

/// The maintenance of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Maintained {
    /// The work: `autovacuum`, `VACUUM` or `ANALYZE`.
    pub who: String,
    /// The table, as the server names it.
    pub relation: String,
    /// Periods in which it ran.
    pub(crate) periods: Vec<Period>,
}

/// Finds the periods in which checkpoints run.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    last: Option<String>,
    working_since: Option<f64>,
    periods: Vec<Period>,
}

/// Finds vacuums and the like.
#[derive(Debug, Default)]
pub(super) struct Maintenances(BTreeMap<(String, String), Vec<Period>>);

impl Period {
    /// For people: `from 12 s to 39 s`. Measuring took `length` seconds.
    pub(super) fn words(&self, length: f64) -> String {
        match self.until {
            _ if self.from < 0.5 && self.until.unwrap_or(length) > length - 0.5 => "all the time".to_owned(),
            None => format!("from {:.0} s on", self.from),
            Some(until) if self.from <= 0.0 => format!("until {until:.0} s"),
            Some(until) if until - self.from < NEAR => format!("at {until:.0} s"),
            Some(until) => format!("from {:.0} s to {until:.0} s", self.from),
        }
    }

    /// Its length within the measured part, seconds.
    pub(super) fn seconds(&self, length: f64) -> f64 {
        (self.until.unwrap_or(length) - self.from.max(0.0)).max(0.0)
    }

    /// The part of it between two moments of the watch's clock; none if it was over before.
    fn within(self, began: f64, ended: f64) -> Option<Self> {
        let until = self.until.map(|until| until.min(ended) - began);
        let counts = self.from <= ended && until.is_none_or(|until| until >= 0.0);
        counts.then_some(Self { from: self.from - began, until })
    }

    fn is_near(&self, at: f64) -> bool {
        self.from - NEAR <= at && self.until.is_none_or(|until| at <= until + NEAR)
    }
}

impl Checkpoints {
    /// Adds an observation. A checkpoint is finished when the control file names another one, which
    /// also tells when it began; whether one is running is known only from the checkpointer.
    pub(super) fn look(&mut self, at: f64, look: &Look) {
        if self.last.as_ref().is_some_and(|last| *last != look.last_checkpoint) {
            let seen = self.working_since.take();
            let began = look.last_checkpoint_ago.map(|ago| at - ago).or(seen);
            self.periods.push(Period { from: began.unwrap_or(at), until: Some(at) });
        }
        self.last = Some(look.last_checkpoint.clone());
        self.working_since = look.checkpointing.then(|| self.working_since.unwrap_or(at));
    }

    /// Checkpoints of the measured part. A busy checkpointer counts only if two observations find
    /// it busy: it sometimes does small work between checkpoints.
    pub(super) fn measured(mut self, began: f64, ended: f64) -> Vec<Period> {
        let working = self.working_since.filter(|since| ended - since >= NEAR);
        self.periods.extend(working.map(|from| Period { from, until: None }));
        self.periods.iter().filter_map(|period| period.within(began, ended)).collect()
    }
}

impl Maintenances {
    /// Adds an observation.
    pub(super) fn look(&mut self, at: f64, look: &Look) {
        let is_seen = |(who, relation): &(String, String)| {
            look.maintenance.iter().any(|seen| seen.who == *who && seen.relation == *relation)
        };
        for (key, periods) in &mut self.0 {
            let open = periods.last_mut().filter(|period| period.until.is_none());
            if let Some(open) = open.filter(|_| !is_seen(key)) {
                open.until = Some(at);
            }
        }
        for seen in &look.maintenance {
            let periods = self.of(seen);
            if periods.last().is_none_or(|period| period.until.is_some()) {
                periods.push(Period { from: at, until: None });
            }
        }
    }

    /// Adds maintenance that ended at `at` and that observations may have missed.
    pub(super) fn finished(&mut self, maintenance: &Maintenance, at: f64) {
        let periods = self.of(maintenance);
        if !periods.iter().any(|period| period.is_near(at)) {
            periods.push(Period { from: at, until: Some(at) });
        }
    }

    /// Maintenance of the measured part.
    pub(super) fn measured(self, began: f64, ended: f64) -> Vec<Maintained> {
        let all = self.0.into_iter().map(|((who, relation), periods)| {
            let periods = periods.iter().filter_map(|period| period.within(began, ended)).collect();
            Maintained { who, relation, periods }
        });
        all.filter(|maintained| !maintained.periods.is_empty()).collect()
    }

    fn of(&mut self, maintenance: &Maintenance) -> &mut Vec<Period> {
        self.0.entry((maintenance.who.clone(), maintenance.relation.clone())).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(last_checkpoint: &str, ago: Option<f64>, checkpointing: bool, tables: &[&str]) -> Look {
        let maintenance = tables
            .iter()
            .map(|table| Maintenance { who: "autovacuum".to_owned(), relation: (*table).to_owned() })
            .collect();
        let last_checkpoint = last_checkpoint.to_owned();
        Look {
            clock: 0.0,
            last_checkpoint,
            last_checkpoint_ago: ago,
            checkpointing,
            wal: None,
            others: None,
            maintenance,
        }
    }

    fn period(from: f64, until: impl Into<Option<f64>>) -> Period {
        Period { from, until: until.into() }
    }

    #[test]
    fn a_finished_checkpoint_tells_when_it_began() {
        let mut found = Checkpoints::default();
        for at in 0..60 {
            let last = if at < 39 {
                look("0/1", Some(900.0), false, &[])
            } else {
                look("0/2", Some(27.0), false, &[])
            };
            found.look(f64::from(at), &last);
        }
        assert_eq!(found.measured(2.0, 60.0), [period(10.0, 37.0)]);
    }

    #[test]
    fn a_checkpoint_that_goes_on_is_seen_at_work() {
        let mut found = Checkpoints::default();
        for at in 0..60 {
            // At 5 the checkpointer does something small.
            found.look(f64::from(at), &look("0/1", None, at == 5 || at >= 50, &[]));
        }
        assert_eq!(found.measured(0.0, 60.0), [period(50.0, None)]);
    }

    #[test]
    fn a_standbys_restartpoint_has_no_time_of_its_own() {
        let mut found = Checkpoints::default();
        for at in 0..60 {
            let last = if at < 30 { "0/1" } else { "0/2" };
            found.look(f64::from(at), &look(last, None, (20..30).contains(&at), &[]));
        }
        assert_eq!(found.measured(0.0, 60.0), [period(20.0, 30.0)]);
    }

    #[test]
    fn what_was_over_before_does_not_count() {
        let mut found = Maintenances::default();
        for at in 0..60 {
            let mut tables = vec!["early", "all"];
            tables.truncate(if at < 5 { 2 } else { 0 });
            tables.extend((at >= 5).then_some("all"));
            tables.extend((20..25).contains(&at).then_some("middle"));
            found.look(f64::from(at), &look("", None, false, &tables));
        }
        let of = |relation: &str, periods: &[Period]| Maintained {
            who: "autovacuum".to_owned(),
            relation: relation.to_owned(),
            periods: periods.to_vec(),
        };
        let known = Maintenance { who: "autovacuum".to_owned(), relation: "middle".to_owned() };
        found.finished(&known, 25.5);
        found.finished(&known, 40.0);
        found.finished(&known, 40.2);
        let expected =
            [of("all", &[period(-10.0, None)]), of("middle", &[period(10.0, 15.0), period(30.0, 30.0)])];
        assert_eq!(found.measured(10.0, 59.0), expected);
    }

    #[test]
    fn periods_are_formatted_for_people() {
        for (period, words, seconds) in [
            (period(12.0, 39.2), "from 12 s to 39 s", 27.2),
            (period(20.0, None), "from 20 s on", 40.0),
            (period(-7.0, 12.0), "until 12 s", 12.0),
            (period(11.7, 12.1), "at 12 s", 0.4),
            (period(-7.0, None), "all the time", 60.0),
            (period(0.1, 59.9), "all the time", 59.8),
        ] {
            assert_eq!(period.words(60.0), words);
            assert!((period.seconds(60.0) - seconds).abs() < 1e-9);
        }
    }
}
