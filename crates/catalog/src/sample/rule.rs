//! Conditions on rows that the server judges.

use std::borrow::Cow;

use super::super::info::{CheckInfo, ColumnInfo, Source, TableInfo};
use super::super::mentioned::columns_in;

/// A condition on one row.
#[expect(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
#[derive(Clone, Debug)]
pub(crate) struct Rule<'a> {
    /// The constraint's name, or that of the expression's index or column.
    pub(crate) name: &'a str,
    /// As the server prints it.
    pub(crate) definition: &'a str,
    /// In SQL; a domain's holds once a value is cast to it.
    pub(crate) sql: Cow<'a, str>,
    /// The columns that it mentions.
    pub(crate) columns: Vec<&'a str>,
    /// Whether the described values fulfil it for certain.
    pub(crate) is_kept: bool,
    /// Whether it fails for few rows, so that those that are tried do not tell.
    pub(crate) is_rarely_broken: bool,
    /// Whether columns that take turns are judged with the others, because it is about two columns of one row.
    pub(crate) is_about_pairs: bool,
    /// Whether it holds only for the rows of some partitions.
    pub(crate) is_of_partitions: bool,
    /// Where it comes from.
    pub(crate) origin: Origin,
}

/// The origin of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A CHECK, or a condition like it.
    Check,
    /// The bounds of partitions.
    Bounds,
    /// An expression that must raise no error.
    Expression,
}

impl<'a> Rule<'a> {
    /// Of a CHECK of the table, or of some of its partitions.
    pub(crate) fn of_check(info: &'a TableInfo, check: &'a CheckInfo) -> Self {
        let is_of_partitions = check.within.is_some();
        Self { is_of_partitions, ..Self::of_table(info, &check.name, &check.expression) }
    }

    /// Of the bounds of the table's partitions, or of the table as a partition.
    pub(crate) fn of_bounds(info: &'a TableInfo, bounds: &'a str) -> Self {
        Self { origin: Origin::Bounds, ..Self::of_table(info, "the bounds of its partitions", bounds) }
    }

    /// Of an expression that the server evaluates for each row, or for those that fulfil the predicate: that of an index or of a generated column.
    pub(crate) fn of_expression(
        info: &'a TableInfo,
        name: &'a str,
        expression: &'a str,
        predicate: Option<&'a str>,
    ) -> Self {
        let of_table = Self::of_table(info, name, expression);
        // It only has to have a value.
        let has_value = format!("num_nulls({expression}) >= 0");
        let (sql, others) = match predicate {
            Some(predicate) => (
                format!("CASE WHEN {predicate} THEN {has_value} ELSE true END"),
                Self::of_table(info, name, predicate).columns,
            ),
            None => (has_value, Vec::new()),
        };
        let mut columns = of_table.columns;
        columns.extend(others);
        columns.sort_unstable();
        columns.dedup();
        Self { sql: Cow::Owned(sql), columns, is_kept: false, origin: Origin::Expression, ..of_table }
    }

    /// Of a condition on the table's rows.
    fn of_table(info: &'a TableInfo, name: &'a str, expression: &'a str) -> Self {
        let columns = columns_in(expression, &info.column_names());
        let mut columns: Vec<&str> = columns;
        let computed: Vec<&ColumnInfo> =
            info.columns.iter().filter(|column| columns.contains(&column.name.as_str())).collect();
        for column in computed {
            if let Source::Generated { expression, .. } = &column.source {
                columns.extend(columns_in(expression, &info.column_names()));
            }
        }
        columns.sort_unstable();
        columns.dedup();
        Self {
            name,
            definition: expression,
            sql: Cow::Borrowed(expression),
            columns,
            is_kept: true,
            is_rarely_broken: false,
            is_about_pairs: false,
            is_of_partitions: false,
            origin: Origin::Check,
        }
    }

    /// Of a condition on the table's rows that a single row must not break.
    pub(crate) fn of_each_row(info: &'a TableInfo, check: &'a CheckInfo) -> Self {
        Self { is_rarely_broken: true, ..Self::of_table(info, &check.name, &check.expression) }
    }

    /// Of a domain.
    pub(crate) fn of_domain(column: &'a ColumnInfo, check: &'a CheckInfo) -> Self {
        let columns = vec![column.name.as_str()];
        let (name, definition) = (check.name.as_str(), check.expression.as_str());
        Self {
            name,
            definition,
            sql: Cow::Borrowed("true"),
            columns,
            is_kept: true,
            is_rarely_broken: false,
            is_about_pairs: false,
            is_of_partitions: false,
            origin: Origin::Check,
        }
    }

    /// Of a domain within the column's type, which only the server judges.
    pub(crate) fn of_inner_domain(column: &'a ColumnInfo, check: &'a CheckInfo) -> Self {
        Self { is_kept: false, ..Self::of_domain(column, check) }
    }

    /// Whether it is a condition on all rows of the table, as it stands.
    pub(crate) fn is_of_rows(&self) -> bool {
        self.origin == Origin::Check && !self.is_of_partitions && self.sql == self.definition
    }

    /// Whether it is about the bounds of partitions.
    pub(crate) fn is_of_bounds(&self) -> bool {
        self.origin == Origin::Bounds
    }

    /// The rule as people know it, with its definition.
    pub(crate) fn shown(&self) -> String {
        match self.origin {
            Origin::Check => format!("{}, CHECK ({})", self.name, self.definition),
            // Those of many partitions would fill pages.
            Origin::Bounds => self.name.to_owned(),
            Origin::Expression => format!("the expression {} of {}", self.definition, self.name),
        }
    }
}
