//! Describes the rows of every table in order, so that the keys of earlier tables are known from
//! their descriptions.

use std::borrow::Cow;
use std::ops::Range;

use catalog::{CatalogError, DescribeRequest, Described, Planned, Scope, TableInfo, describe, verify};
use measure::human::counted;
use rowgen::{ColumnSpec, Format, Table};

use super::amounts::{self, Wanted, is_named, listed};
use super::order::{self, Placed, is_referenced};
use super::pairs::Paired;
use super::row_bytes::RowBytes;
use super::{OF_MODEL, Planner, Postponed, copies, cycles, modelled};
use crate::error::FillError;
use crate::plan::own_table;
use crate::schema::record::{InCycle, RecordedTable};
use crate::schema::request::Modelled;
use server::quote::{qualified, shown};

/// Limits of the rows that are loaded to measure their size: of the largest table, and of all
/// tables together.
const SAMPLE: u64 = 50_000;
const SAMPLES: u64 = 300_000;
/// The step in which rows are described.
pub(super) const CHOOSING: &str = "choosing the rows of";

/// Descriptions of all tables, for a number of rows.
pub(super) struct Design<'a> {
    pub(super) planner: &'a Planner<'a>,
    pub(super) tables: &'a [TableInfo],
    pub(super) order: &'a [Placed],
    pub(super) wanted: &'a [Wanted],
}

/// A table whose rows are described.
pub(super) struct Designed<'a> {
    pub(super) info: &'a TableInfo,
    placed: &'a Placed,
    pub(super) described: Described,
    pub(super) rows: u64,
    /// Why the table gets fewer rows than wanted; none if it does not.
    pub(super) capped: Option<Capped>,
    /// Bytes of its rows with their index entries, once measured.
    pub(super) row_bytes: Option<RowBytes>,
    /// Bytes of all tables, at which this one, the last, gets no more rows.
    pub(super) until: Option<u64>,
    /// Bytes that it is planned with beyond its share.
    pub(super) beyond: u64,
}

/// Why keys allow fewer rows than wanted.
pub(super) struct Capped {
    why: String,
    /// The unique key; none if it is a sequence.
    pub(super) key: Option<String>,
}

impl Designed<'_> {
    /// Whether every column can be sent in binary.
    pub(super) fn binary(&self) -> bool {
        self.described.supports(Format::Binary)
    }

    /// Why the table has so many rows.
    pub(super) fn why(&self, wanted: &str) -> String {
        match (&self.capped, self.until) {
            (Some(_), _) => "no more keys".to_owned(),
            (None, Some(_)) => format!("at most {wanted}, until the size is reached"),
            (None, None) => wanted.to_owned(),
        }
    }

    /// Warnings for the user.
    pub(super) fn warnings(&self) -> Vec<String> {
        let capped = self.capped.as_ref().map(|Capped { why, .. }| {
            format!("the table gets only {}, because {why}", counted(self.rows, "row"))
        });
        let name = self.info.display_name();
        let all = capped.iter().chain(&self.described.warnings);
        all.map(|warning| format!("{name}: {}", self.info.among_tables(warning))).collect()
    }

    /// Bytes that all rows take, if that was measured.
    pub(super) fn bytes(&self) -> Option<u64> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes")]
        self.row_bytes
            .as_ref()
            .map(|row_bytes| (row_bytes.times(self.rows) as u64).saturating_sub(self.beyond))
    }

    /// The rows to measure, and their description: some rows from all over the table if all are too long.
    pub(super) fn sampled(&self) -> (Vec<Range<u64>>, Cow<'_, Table>) {
        let Described { table, first_row, .. } = &self.described;
        let most = if self.rows > own_table::STRETCHES {
            own_table::rows_within(table, own_table::BYTES).max(own_table::STRETCHES)
        } else {
            self.rows
        };
        let rows = own_table::stretches(*first_row, self.rows, most);
        if self.rows <= most {
            return (rows, Cow::Borrowed(table));
        }
        let taken = most / own_table::STRETCHES * own_table::STRETCHES;
        (rows, Cow::Owned(table.sampled(taken as f64 / self.rows as f64)))
    }

    /// The record of this table.
    pub(super) fn recorded(&self, why: String) -> RecordedTable {
        let cycle = self.placed.cycle.map(|number| InCycle {
            number,
            later: self.placed.later.iter().map(|key| key.name.clone()).collect(),
            pages: true,
        });
        RecordedTable {
            place: 0,
            schema: self.info.schema.clone(),
            described: self.described.table.clone(),
            first_row: self.described.first_row,
            binary: self.binary(),
            sequences: self.described.sequences.clone(),
            predicted: 0,
            why,
            postponed: Postponed::default(),
            fillfactors: Vec::new(),
            until: self.until,
            whole: false,
            cycle,
        }
    }
}

impl<'a> Design<'a> {
    pub(super) fn new(
        planner: &'a Planner<'a>,
        tables: &'a [TableInfo],
        order: &'a [Placed],
        wanted: &'a [Wanted],
    ) -> Self {
        Self { planner, tables, order, wanted }
    }

    /// Tables that come later, or that the same transaction fills, and so are empty when the one at this place is truncated;
    /// as SQL names them.
    pub(super) fn together(&self, place: usize) -> Vec<String> {
        let before = cycles::members(self.order, place).filter(|&other| other < place);
        let all =
            before.chain(place + 1..self.order.len()).map(|place| &self.tables[self.order[place].table]);
        all.map(|info| qualified(&info.schema, &info.name)).collect()
    }

    /// Tables with so many rows in those that reference nothing. The server judges samples.
    pub(super) async fn for_base(&self, base: f64) -> Result<Vec<Designed<'a>>, FillError> {
        let mut designed = self.described(CHOOSING, base, None, None).await?;
        self.verify(&mut designed).await?;
        Ok(designed)
    }

    /// Tables with few rows, for measurements.
    pub(super) async fn small(&self) -> Result<Vec<Designed<'a>>, FillError> {
        let rows = amounts::rows(self.wanted, amounts::BASE, &vec![None; self.wanted.len()]);
        let (largest, all) = (rows.iter().max().copied().unwrap_or(1), rows.iter().sum::<u64>());
        let share = (SAMPLE as f64 / largest as f64).min(SAMPLES as f64 / all as f64);
        self.described("describing sample rows of", amounts::BASE * share, Some(SAMPLE), None).await
    }

    /// Describes the tables in order. `doing` is the step that this is; `most` limits the rows of each, for a sample; `more` has the
    /// place of a table that gets so many rows more.
    pub(super) async fn described(
        &self,
        doing: &str,
        base: f64,
        most: Option<u64>,
        more: Option<(usize, u64)>,
    ) -> Result<Vec<Designed<'a>>, FillError> {
        let mut all: Vec<Designed<'a>> = Vec::with_capacity(self.order.len());
        let (given, origin) = (self.given()?, order::origin(self.planner.request));
        let is_given = |info: &TableInfo, column: &str| {
            given.iter().any(|(name, text)| {
                is_named(info, name) && text.split_once('=').is_some_and(|(of, _)| of == column)
            })
        };
        for (place, wanted) in self.wanted.iter().enumerate() {
            let info = &self.tables[self.order[place].table];
            self.planner.step(doing, info, (place, self.order.len()));
            let before: Vec<u64> = all.iter().map(|designed| designed.rows).collect();
            let more = more.filter(|(table, _)| *table == place).map_or(0, |(_, rows)| rows);
            let rows = amounts::rows_of(&wanted.share, base, &before) + more;
            let designed = self.one(place, most.map_or(rows, |most| rows.min(most)), &all).await?;
            all.push(designed);
            copies::copy(&mut all, self.order, origin, is_given)?;
        }
        let keyed = |info: &TableInfo, column: &str| modelled::keyed(info, column, self.planner.request);
        cycles::close(&mut all, self.order, origin, is_given, keyed)?;
        Ok(all)
    }

    async fn one(&self, place: usize, rows: u64, before: &[Designed<'a>]) -> Result<Designed<'a>, FillError> {
        let placed = &self.order[place];
        let info = &self.tables[placed.table];
        let client = &self.planner.connection.client;
        let describe_request = self.describe_request(place, rows, before)?;
        let paired = placed.paired.as_ref().map(|paired| paired.described(info));
        let of_rows = paired.as_ref().unwrap_or(info);
        match describe(client, of_rows, &describe_request, Scope::Transaction).await {
            Ok(described) => Ok(Designed {
                info,
                placed,
                described,
                rows,
                capped: None,
                row_bytes: None,
                until: None,
                beyond: 0,
            }),
            Err(CatalogError::TooManyRows { most, why, key, .. }) if most > 0 && !self.is_ruled(place) => {
                let spread = describe_request.spread.map(|_| most);
                let describe_request = DescribeRequest { rows: Some(most), spread, ..describe_request };
                let described = describe(client, of_rows, &describe_request, Scope::Transaction)
                    .await
                    .map_err(|error| modelled::explained(error, info, self.planner.request))?;
                Ok(Designed {
                    info,
                    placed,
                    described,
                    rows: most,
                    capped: Some(Capped { why, key }),
                    row_bytes: None,
                    until: None,
                    beyond: 0,
                })
            }
            Err(error) => Err(modelled::explained(error, info, self.planner.request)),
        }
    }

    /// Whether nothing references the table, and its rows are a multiple of others': a fill to a size may end in it.
    pub(super) fn may_be_last(&self, place: usize) -> bool {
        let info = &self.tables[self.order[place].table];
        let is_referenced =
            self.tables.iter().flat_map(|other| &other.foreign_keys).any(|key| is_referenced(key, info));
        !is_referenced && !self.is_ruled(place)
    }

    /// Whether a rule of the user's decides on the table's rows.
    fn is_ruled(&self, place: usize) -> bool {
        let info = &self.tables[self.order[place].table];
        self.planner.request.rules.iter().any(|rule| is_named(info, &rule.table))
    }

    fn describe_request(
        &self,
        place: usize,
        rows: u64,
        before: &[Designed<'a>],
    ) -> Result<DescribeRequest, FillError> {
        let info = &self.tables[self.order[place].table];
        let columns = self.columns(place)?;
        let is_parent = |other: &&Designed<'_>| {
            let of_spec = |spec| referenced(spec).is_some_and(|(table, _)| is_named(other.info, table));
            info.foreign_keys.iter().any(|key| is_referenced(key, other.info)) || columns.iter().any(of_spec)
        };
        let planned = before.iter().filter(is_parent).map(|parent| Planned {
            schema: parent.info.schema.clone(),
            table: parent.described.table.clone(),
            first_row: parent.described.first_row,
        });
        let closing = self.order.iter().flat_map(Placed::closing);
        let keys = self.tables.iter().flat_map(|other| &other.foreign_keys).chain(closing);
        let referenced =
            keys.filter(|key| is_referenced(key, info)).flat_map(|key| key.referenced.columns.clone());
        let paired = self.order[place].paired.iter().flat_map(|paired| paired.known.clone());
        let given = self.referenced_by_specs(info)?;
        Ok(DescribeRequest {
            rows: Some(rows),
            seed: self.planner.request.seed,
            planned: planned.collect(),
            takes_defaults: true,
            plain: self.planner.request.plain,
            uses_all_keys: !self.planner.request.modelled.is_empty(),
            spread: self.planner.request.spreads_keys.then_some(rows),
            referenced: referenced.chain(paired).chain(given).collect(),
            columns,
            ..DescribeRequest::default()
        })
    }

    /// Columns of the table whose values `--column` gives to columns of other tables.
    fn referenced_by_specs(&self, info: &TableInfo) -> Result<Vec<String>, FillError> {
        let mut columns = Vec::new();
        for (_, text) in self.given()? {
            let spec: ColumnSpec = text.parse()?;
            let of_table = referenced(&spec).filter(|(table, _)| is_named(info, table));
            let named = |name: &str| info.columns.iter().find(|column| shown(&column.name) == name);
            columns.extend(of_table.and_then(|(_, name)| named(name)).map(|column| column.name.clone()));
        }
        Ok(columns)
    }

    /// The user's specifications of the table's columns, and NULL in the foreign keys to tables that come later.
    fn columns(&self, place: usize) -> Result<Vec<ColumnSpec>, FillError> {
        let placed = &self.order[place];
        let Placed { table, cut, paired, .. } = placed;
        // Those get their values once the other tables are described.
        let closing = placed.closing().iter().flat_map(|key| &key.columns);
        let copies = paired.iter().flat_map(|paired| &paired.copies).map(|copied| &copied.column);
        let cut: Vec<&String> = cut.iter().chain(closing).chain(copies).collect();
        let info = &self.tables[*table];
        let is_chosen = |ColumnSpec { column, spec }: &ColumnSpec| {
            let has_key = || info.foreign_keys.iter().any(|key| key.columns.contains(column));
            let is_paired =
                |paired: &Paired| paired.is_chosen(column) || spec.keyed().is_some() && !has_key();
            cut.contains(&column) || paired.as_ref().is_some_and(is_paired)
        };
        let mut specs: Vec<ColumnSpec> = Vec::new();
        for (name, column) in self.given()? {
            if is_named(info, name) {
                specs.push(column.parse()?);
            }
        }
        let is_given = |column: &str, specs: &[ColumnSpec]| specs.iter().any(|spec| spec.column == column);
        let modelled = &self.planner.request.modelled;
        for Modelled { table: name, spec } in modelled.iter().filter(|column| is_named(info, &column.table)) {
            let wrong = |error| FillError::Combination(format!("{OF_MODEL} {name}.{error}"));
            let spec: ColumnSpec = spec.parse().map_err(wrong)?;
            if !is_chosen(&spec) && !is_given(&spec.column, &specs) {
                if info.column(&spec.column).is_none() {
                    let text = format!(
                        "{name} lacks column {}, which the model has: add the column, or remove it from the model",
                        spec.column
                    );
                    return Err(FillError::Combination(text));
                }
                specs.push(spec);
            }
        }
        for column in cut {
            if !is_given(column, &specs) {
                specs.push(format!("{column}=null").parse()?);
            }
        }
        Ok(specs)
    }

    /// The arguments of `--column`, each cut into the table and the rest.
    fn given(&self) -> Result<Vec<(&'a str, &'a str)>, FillError> {
        let cut = |text: &'a String| {
            let (table, column) = table_and_column(text).ok_or_else(|| {
                FillError::Combination(format!(
                    "--column {text}: several tables are filled, so give TABLE.COLUMN=SPEC"
                ))
            })?;
            if !self.tables.iter().any(|info| is_named(info, table)) {
                let names: Vec<&str> = self.tables.iter().map(|info| info.name.as_str()).collect();
                return Err(FillError::Combination(format!(
                    "--column {text}: {table} is not one of the tables to fill; these are {}",
                    listed(&names)
                )));
            }
            Ok((table, column))
        };
        self.planner.request.columns.iter().map(cut).collect()
    }

    /// Has the server judge a sample of each table's rows.
    pub(super) async fn verify(&self, designed: &mut [Designed<'a>]) -> Result<(), FillError> {
        let client = &self.planner.connection.client;
        let of = designed.len();
        let given = self.given()?;
        for (place, designed) in designed.iter_mut().enumerate() {
            let info = designed.info;
            self.planner.step("checking rows of", info, (place, of));
            let verified = verify(client, info, &designed.described, Scope::Transaction).await;
            let verified =
                verified.map_err(|error| error.of_given(&given_of(info, &given)).among_tables(info))?;
            designed.described.warnings.extend(verified.warnings);
        }
        Ok(())
    }
}

/// The user's specifications of a table, each with the name of its column.
fn given_of(info: &TableInfo, given: &[(&str, &str)]) -> Vec<(String, String)> {
    let of_table = given.iter().filter(|(table, _)| is_named(info, table));
    of_table.filter_map(|(_, text)| Some((text.split_once('=')?.0.to_owned(), (*text).to_owned()))).collect()
}

/// The table and the column whose values a specification gives (`reference(table.column)`), as they are written; none if it gives others.
pub(super) fn referenced(spec: &ColumnSpec) -> Option<(&str, &str)> {
    spec.spec.reference()?.rsplit_once('.')
}

/// `table.column=specification` cut at the dot before the column.
pub(super) fn table_and_column(text: &str) -> Option<(&str, &str)> {
    let (name, _) = text.split_once('=').unwrap_or((text, ""));
    let (table, _) = name.rsplit_once('.')?;
    Some((table, &text[table.len() + 1..]))
}
