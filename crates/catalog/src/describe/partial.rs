//! Partial unique indexes: only rows that satisfy the predicate need keys that differ.
//!
//! Rows whose keys all differ come first. If a partial index leaves room for fewer of them than wanted, further rows
//! follow that do not satisfy its predicate.

use std::collections::BTreeSet;

use failure::Classified;
use rowgen::{Column, ColumnSpec, Table, Values};
use tokio_postgres::Client;

use super::{DescribeRequest, Described, Design};
use crate::error::CatalogError;
use crate::info::{CheckInfo, ColumnInfo, KeyInfo, TableInfo};
use crate::mentioned::columns_in;
use crate::transaction::{Access, Scope, rolled_back};

/// Room for so many rows is enough if the number of wanted rows is unknown.
const AMPLE: u64 = 1_000_000_000;

/// A look at a table whose rows are to be described.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    pub(super) client: &'a Client,
    pub(super) info: &'a TableInfo,
    pub(super) request: &'a DescribeRequest,
    pub(super) scope: Scope,
}

impl Look<'_> {
    /// Describes the rows, at first as if every unique index held all of them.
    pub(super) async fn described(&self) -> Result<Described, CatalogError> {
        let whole = self.of(self.info, self.request, &[]).await;
        let mut spared = self.in_the_way(&whole, &[]);
        if spared.is_empty() {
            return whole;
        }
        let rest = loop {
            let rest = self.sparing(&spared).await;
            let more = self.in_the_way(&rest, &spared);
            if more.is_empty() {
                break rest;
            }
            spared.extend(more);
        };
        match rest {
            Ok(rest) => self.with_head(whole, rest, &spared).await,
            Err(error) if !error.is_usage() => Err(error),
            // The error that names the key with more room.
            Err(error) => match (whole, error) {
                (
                    Err(CatalogError::TooManyRows { most, .. }),
                    error @ CatalogError::TooManyRows { most: more, .. },
                ) if more > most => Err(error),
                (whole, _) => whole,
            },
        }
    }

    async fn of(
        &self,
        info: &TableInfo,
        request: &DescribeRequest,
        avoided: &[CheckInfo],
    ) -> Result<Described, CatalogError> {
        // Planned tables may need temporary ones that stand in for them.
        let access = if request.planned.is_empty() { Access::ReadOnly } else { Access::ReadWrite };
        let design = Design::of(self.client, info, request, avoided);
        rolled_back(self.client, self.scope, access, design).await
    }

    /// The partial indexes, besides those that are `spared` already, that keep rows from being described.
    fn in_the_way(&self, outcome: &Result<Described, CatalogError>, spared: &[&KeyInfo]) -> Vec<&KeyInfo> {
        let is_named = |key: &KeyInfo| match outcome {
            Ok(described) => described.most_rows.as_ref().is_some_and(|most| {
                self.request.rows.is_none() && most.rows < AMPLE && most.key.as_ref() == Some(&key.name)
            }),
            Err(CatalogError::TooManyRows { key: named, .. }) => named.as_ref() == Some(&key.name),
            Err(CatalogError::Key { key: named, .. } | CatalogError::RowsPresent { key: named, .. }) => {
                *named == key.name
            }
            // No referenced key is unused.
            Err(CatalogError::NoKeyLeft { columns, .. }) => {
                columns.split(", ").any(|column| key.columns().any(|name| name == column))
            }
            Err(_) => false,
        };
        let can_be_spared = |key: &&KeyInfo| {
            is_named(key)
                && !spared.contains(key)
                && self.predicate_columns(key).any(|name| self.is_open(name))
        };
        self.info.keys.iter().filter(can_be_spared).collect()
    }

    /// The columns in the index's predicate, if it has one.
    fn predicate_columns(&self, key: &KeyInfo) -> impl Iterator<Item = &str> {
        let columns = key.predicate.as_deref().map(|text| columns_in(text, &self.info.column_names()));
        columns.unwrap_or_default().into_iter()
    }

    /// Whether pgrig can choose the column's values.
    fn is_open(&self, name: &str) -> bool {
        let is_named = |given: &ColumnSpec| given.column == name && given.spec.only_nulls().is_none();
        let is_given = self.request.columns.iter().any(is_named);
        let may = self.info.column(name).is_some_and(|column| column.may_insert && !column.is_generated());
        may && !is_given
    }

    /// Describes rows that do not satisfy the predicates of these indexes.
    async fn sparing(&self, spared: &[&KeyInfo]) -> Result<Described, CatalogError> {
        let mut info = self.info.clone();
        info.keys.retain(|key| !spared.contains(&key));
        let avoided = spared.iter().filter_map(|key| key.predicate.as_deref()).map(in_parentheses);
        let avoided: Vec<CheckInfo> = avoided
            .map(|predicate| CheckInfo {
                name: format!("NOT {predicate}"),
                expression: format!("({predicate} IS NOT TRUE)"),
                within: None,
            })
            .collect();
        self.of(&info, &self.request_for(self.request.rows, spared), &avoided).await
    }

    /// The request for so many rows, with values of pgrig's in the columns of predicates: defaults may satisfy these.
    fn request_for(&self, rows: Option<u64>, spared: &[&KeyInfo]) -> DescribeRequest {
        let mut request = DescribeRequest { rows, ..self.request.clone() };
        for name in spared.iter().flat_map(|key| self.predicate_columns(key)) {
            request.chosen.push(name.to_owned());
        }
        request
    }

    /// The rest, after as many rows with keys that differ as there is room for.
    async fn with_head(
        &self,
        whole: Result<Described, CatalogError>,
        mut rest: Described,
        spared: &[&KeyInfo],
    ) -> Result<Described, CatalogError> {
        let most = match &whole {
            Ok(whole) => whole.most_rows.as_ref().map_or(0, |most| most.rows),
            Err(CatalogError::TooManyRows { most, .. }) => *most,
            Err(_) => 0,
        };
        // Rows that are there already, by number, may be those of the head.
        let rows = Some(most).filter(|most| *most > 0 && self.request.first_row == 0);
        let joined = match rows {
            Some(rows) => match self.of(self.info, &self.request_for(Some(rows), spared), &[]).await {
                Ok(head) => self.joined(&head, rows, &rest, spared),
                Err(error) if error.is_usage() => None,
                Err(error) => return Err(error),
            },
            None => None,
        };
        let rows = rows.filter(|_| joined.is_some());
        rest.warnings.extend(spared.iter().map(|key| note(key, rows)));
        rest.table = joined.unwrap_or(rest.table);
        Ok(rest)
    }

    /// The rows of the head, then those of the rest. None if they cannot follow each other.
    fn joined(&self, head: &Described, rows: u64, rest: &Described, spared: &[&KeyInfo]) -> Option<Table> {
        let until = rest.first_row.checked_add(rows)?;
        let is_alike = head.first_row == rest.first_row
            && head.sequences == rest.sequences
            && head.text_only == rest.text_only;
        let kept = || self.info.keys.iter().filter(|key| !spared.contains(key));
        let all = self.info.column_names();
        let in_keys: BTreeSet<&str> =
            kept().flat_map(|key| &key.elements).flat_map(|element| element.columns_in(&all)).collect();
        let is_computed = |name: &&str| self.info.column(name).is_some_and(ColumnInfo::is_generated);
        if !is_alike || in_keys.iter().any(is_computed) {
            return None;
        }
        let column = |(head, rest): (&Column, &Column)| {
            if head == rest {
                return Some(rest.clone());
            }
            // Keys differ between all rows only if the same rule makes them.
            let is_free = !in_keys.contains(rest.name.as_str())
                && (&head.name, &head.kind) == (&rest.name, &rest.kind)
                && ![head, rest].iter().any(|column| column.values == Values::Server);
            is_free.then(|| Column {
                values: Values::Leading {
                    until,
                    leading: Box::new(head.values.clone()),
                    others: Box::new(rest.values.clone()),
                },
                ..rest.clone()
            })
        };
        let columns = head.table.columns.iter().zip(&rest.table.columns).map(column);
        Some(Table { columns: columns.collect::<Option<_>>()?, ..rest.table.clone() })
    }
}

/// A note on an index of which some rows, or none, satisfy the predicate.
fn note(key: &KeyInfo, rows: Option<u64>) -> String {
    let predicate = in_parentheses(key.predicate.as_deref().unwrap_or_default());
    let KeyInfo { name, .. } = key;
    match rows {
        Some(1) => format!(
            "{name} has a distinct key for only 1 row: only the first row may satisfy its predicate, {predicate}"
        ),
        Some(rows) => format!(
            "{name} has distinct keys for {rows} rows: only the first {rows} rows may satisfy its predicate, {predicate}"
        ),
        None => format!(
            "no row satisfies the predicate of {name}, {predicate}, so {name} does not limit the rows"
        ),
    }
}

/// The condition in one pair of parentheses.
fn in_parentheses(condition: &str) -> String {
    let inner = condition.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    match inner {
        Some(inner) if is_balanced(inner) => condition.to_owned(),
        _ => format!("({condition})"),
    }
}

/// Whether no parenthesis is closed before it is opened. Those in strings count too, which at worst adds a pair.
fn is_balanced(text: &str) -> bool {
    let mut depth = 0_i64;
    let is_fine = text.chars().all(|character| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth >= 0
    });
    is_fine && depth == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_has_one_pair_of_parentheses() {
        for (condition, text) in [
            ("active", "(active)"),
            ("(a > 0)", "(a > 0)"),
            ("(a) IS NULL OR (b)", "((a) IS NULL OR (b))"),
            ("((a > 0) AND (b > 0))", "((a > 0) AND (b > 0))"),
        ] {
            assert_eq!(in_parentheses(condition), text);
        }
    }
}
