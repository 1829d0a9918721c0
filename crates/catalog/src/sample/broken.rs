//! Rules that the rows described so far break.
//!
//! Rows keep most of the rules that pgrig does not understand, such as `name <> ''`. So the server judges all of these in one question.
//! Those that may raise an error get a question each, and so do those of partitions, and those on values that rows do not have yet.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::Sampling;
use super::candidates::{encoder, narrowed, texts};
use super::judge::{Judge, Tuple};
use super::rule::Rule;
use crate::error::CatalogError;
use crate::mentioned::may_fail;
use crate::slot::{Role, has_sequence};

/// Rows from each of the beginning, the middle and the end that are tried.
const STRETCH: u64 = 3_000;
/// After this time, rules are judged one by one.
const LONGEST: Duration = Duration::from_secs(20);

impl<'a> Sampling<'a> {
    /// The rules that some of the rows described so far break, or that hardly one row of some partition keeps.
    pub(super) async fn broken(&self) -> Result<Vec<&Rule<'a>>, CatalogError> {
        let open: Vec<&Rule<'a>> = self.rules.iter().filter(|rule| !rule.is_kept).collect();
        let plain: Vec<&Rule<'a>> = open.iter().copied().filter(|rule| self.is_plain(rule)).collect();
        let kept = self.kept_together(&plain).await?;
        let mut broken = Vec::new();
        for rule in open {
            let place = plain.iter().position(|other| std::ptr::eq(*other, rule));
            let is_broken = match place.and_then(|place| kept[place]) {
                Some(is_kept) => !is_kept,
                None => self.is_broken(rule).await?,
            };
            if is_broken {
                broken.push(rule);
            }
        }
        Ok(broken)
    }

    /// Whether the rule can be judged with others: all of its columns have values in the rows, and it raises no error.
    fn is_plain(&self, rule: &Rule<'_>) -> bool {
        let has_values = |column: &&str| {
            self.slot(column).is_some_and(|slot| {
                let data_type = &slot.info.data_type;
                let is_known = slot.role != Role::Server || !has_sequence(&slot.info.source);
                // A cast to a domain may raise an error.
                is_known && data_type.domain_checks().is_empty() && data_type.inner_checks().is_empty()
            })
        };
        rule.is_of_rows()
            && !rule.is_rarely_broken
            && !may_fail(rule.definition)
            && rule.columns.iter().any(|column| self.is_free(column))
            && rule.columns.iter().all(has_values)
    }

    /// Of each rule, whether all rows that are tried keep it; none of one that has to be judged by itself. If some raise errors, halves
    /// of the rules are judged apart.
    async fn kept_together(&self, rules: &[&Rule<'a>]) -> Result<Vec<Option<bool>>, CatalogError> {
        let begun = Instant::now();
        let mut kept = vec![None; rules.len()];
        let mut to_ask = vec![(0, rules.len())];
        while let Some((start, end)) = to_ask.pop() {
            if end - start < 2 || begun.elapsed() > LONGEST {
                continue;
            }
            if let Some(verdicts) = self.kept_by_rows(&rules[start..end]).await? {
                for (kept, verdict) in kept[start..end].iter_mut().zip(verdicts) {
                    *kept = Some(verdict);
                }
            } else {
                let middle = start + (end - start) / 2;
                to_ask.extend([(start, middle), (middle, end)]);
            }
        }
        Ok(kept)
    }

    /// Of each rule, whether all rows that are tried keep it; no answer if one raises an error, or takes too long.
    async fn kept_by_rows(&self, rules: &[&Rule<'a>]) -> Result<Option<Vec<bool>>, CatalogError> {
        let columns: BTreeSet<&str> = rules.iter().flat_map(|rule| rule.columns.iter().copied()).collect();
        let columns: Vec<&str> = columns.into_iter().collect();
        let (sent, tuples) = self.tried(&columns);
        let judge = self.judge(&sent, rules).await?;
        let conditions = rules.iter().map(|rule| rule.sql.to_string()).collect();
        Judge { conditions, ..judge }.kept(&tuples).await
    }

    /// Whether some of the rows described so far break the rule, or hardly one is in some of the partitions.
    async fn is_broken(&self, rule: &Rule<'a>) -> Result<bool, CatalogError> {
        if !rule.columns.iter().any(|column| self.is_free(column)) {
            return Ok(false);
        }
        if rule.is_rarely_broken {
            return Ok(true);
        }
        // The rows that are tried may all be in other partitions, if keys ascend.
        let is_tried = |column: &&str| !rule.is_of_partitions || !self.takes_turns(column);
        let columns: Vec<&str> = rule.columns.iter().copied().filter(is_tried).collect();
        let (sent, tuples) = self.tried(&columns);
        if sent.is_empty() {
            return Ok(false);
        }
        let judge = self.judge(&sent, &[rule]).await?;
        match judge.accepts_all(&tuples).await? {
            Some(true) => self.is_missed(rule, &judge, &tuples).await,
            Some(false) => Ok(true),
            // The rows themselves show conditions that the server could not judge.
            None => Ok(false),
        }
    }

    /// Those of the columns that have values in the rows, and the different tuples of some rows, in the order of these.
    fn tried<'c>(&self, columns: &[&'c str]) -> (Vec<&'c str>, Vec<Tuple>) {
        let table = narrowed(self.made, columns);
        let has_values = |name: &&'c str| table.columns.iter().any(|column| column.name == *name);
        let sent: Vec<&'c str> = columns.iter().copied().filter(has_values).collect();
        if sent.is_empty() {
            return (sent, Vec::new());
        }
        let mut known = BTreeSet::new();
        let rows = texts(&encoder(&table), self.stretches(STRETCH));
        (sent, rows.into_iter().filter(|tuple| known.insert(tuple.clone())).collect())
    }
}
