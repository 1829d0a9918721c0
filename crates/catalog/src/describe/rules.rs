//! Conditions on rows that the server judges where pgrig does not understand them, or that only the server judges.

use super::Design;
use crate::info::Source;
use crate::mentioned::may_fail;
use crate::sample::Rule;

impl Design<'_> {
    /// The CHECKs of the table, the predicates to avoid, then the CHECKs of free columns' domains: in the order of the
    /// conditions.
    pub(super) fn rules(&self) -> Vec<Rule<'_>> {
        let table = self.info.checks.iter();
        let table = table.map(|check| Rule::of_check(self.info, check));
        let avoided = self.avoided.iter().map(|check| Rule::of_each_row(self.info, check));
        let domains = self.slots.iter().filter(|slot| slot.is_free()).flat_map(|slot| {
            let checks = slot.info.data_type.domain_checks();
            checks.into_iter().map(|check| Rule::of_domain(slot.info, check))
        });
        table.chain(avoided).chain(domains).collect()
    }

    /// CHECKs of domains within arrays and row types: only the server judges them.
    fn inner_rules(&self) -> impl Iterator<Item = Rule<'_>> {
        self.slots.iter().filter(|slot| slot.is_free()).flat_map(|slot| {
            let checks = slot.info.data_type.inner_checks();
            checks.into_iter().map(|check| Rule::of_inner_domain(slot.info, check))
        })
    }

    /// Rules that only the server judges.
    pub(super) fn other_rules(&self) -> impl Iterator<Item = Rule<'_>> {
        self.inner_rules().chain(self.evaluated())
    }

    /// Expressions that raise an error for some values: of generated columns and of indexes.
    fn evaluated(&self) -> impl Iterator<Item = Rule<'_>> {
        let generated = self.info.columns.iter().filter_map(|column| match &column.source {
            Source::Generated { expression, .. } => Some((column.name.as_str(), expression.as_str(), None)),
            _ => None,
        });
        let keys = self.info.keys.iter().flat_map(|key| {
            let expressions = key.elements.iter().filter_map(|element| element.expression.as_deref());
            expressions.map(move |expression| (key.name.as_str(), expression, key.predicate.as_deref()))
        });
        let indexes = self.info.expressions.iter();
        let indexes = indexes.map(|index| (index.name.as_str(), index.expression.as_str(), None));
        let all = generated.chain(keys).chain(indexes).filter(|(_, expression, _)| may_fail(expression));
        let info = self.info;
        all.map(move |(name, expression, predicate)| Rule::of_expression(info, name, expression, predicate))
    }
}
