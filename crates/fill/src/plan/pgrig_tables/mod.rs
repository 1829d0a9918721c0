//! Examines the tables that pgrig creates: pgbench's four, or one of integers.

mod present;

use page::Geometry;
use server::{FoundSchema, ask, schema_for_tables};

pub(super) use self::present::refuse_other_shape;
use super::bulk::{Bulk, ForeignKeys, RowSize, first_column};
use super::data::MOST_NARROW_IDS;
use super::existing::{Existing, adjusted};
use super::facts::{Facts, TablesFacts};
use super::row_range::asked_for;
use super::sizes::Layout;
use super::tables::{TableNames, Tables};
use crate::error::{BegunError, FillError};
use crate::ledger::relations::Relations;
use crate::ledger::{self, Unfinished};
use crate::request::{IndexKind, InitStep, Request, Subject};
use crate::run::resume::same_tables;
use connect::Connection;

/// Facts about tables that pgrig makes.
#[derive(Default)]
pub(super) struct PgrigTablesFacts {
    /// Rows of the bulk table by its largest id, where rows are to be added.
    pub(super) rows: u64,
    /// Rows of `pgbench_branches`, where rows are to be added.
    pub(super) scale: u64,
    /// Storage of the bulk table; none if it is to be created.
    pub(super) existing: Option<Existing>,
}

impl PgrigTablesFacts {
    /// Whether ids are bigint, where the tables exist.
    pub(super) fn wide_ids(&self) -> Option<bool> {
        self.existing.as_ref().map(|existing| existing.wide_ids)
    }

    /// The rows to load, written as direct pages if `direct`.
    pub(super) fn bulk(
        &self,
        request: &Request,
        geometry: Geometry,
        begun: Option<&Unfinished>,
        direct: bool,
    ) -> Result<Bulk, FillError> {
        let mut layout = Layout::of(request, geometry);
        if self.existing.as_ref().is_some_and(|existing| existing.indexed) {
            layout.index = IndexKind::Btree;
        }
        let range = match begun {
            Some(begun) => begun.range(),
            None => asked_for(request, &layout, self.rows, self.scale)?,
        };
        // The method does not decide how many rows a size has.
        layout.direct = direct;
        match range.rows {
            Some(rows) if self.wide_ids() == Some(false) && range.first_row + rows > MOST_NARROW_IDS => {
                let most = MOST_NARROW_IDS.saturating_sub(range.first_row);
                return Err(FillError::NarrowIds { size: layout.growth(range.first_row, most), most });
            }
            _ => {}
        }
        let last_row = range.rows.map_or(u64::MAX, |rows| range.first_row + rows);
        let tables = Tables::new(&request.subject, last_row, range.scale, request.payload);
        Ok(Bulk {
            truncated_with: Vec::new(),
            range,
            until_size: None,
            index: layout.index,
            row_size: RowSize::Exact(layout),
            sequences: Vec::new(),
            binary: false,
            key: first_column(&tables.bulk.columns),
            most_rows: None,
            warnings: Vec::new(),
            foreign_keys: ForeignKeys::None,
            silenced: Vec::new(),
            tables,
        })
    }
}

/// Looks for the schema, for tables that are in the way, and for rows to be completed or added to.
///
/// # Errors
/// If the request contradicts the existing tables.
pub(super) async fn look(
    connection: &Connection,
    request: &Request,
    resume: bool,
) -> Result<Facts, FillError> {
    for tablespace in request.tablespace.iter().chain(&request.index_tablespace) {
        present::refuse_tablespace(connection, tablespace).await?;
    }
    let names = TableNames::of(&request.subject);
    let relations = names.relations(request.partitions);
    let ledger = ledger::name(&names.bulk);
    let FoundSchema { name: schema, exists: schema_exists } =
        schema_for_tables(connection, request.schema.as_deref()).await?;
    let row =
        ask(connection, include_str!("../../sql/tables_there.sql"), &[&schema, &relations, &ledger]).await?;
    let taken: Vec<String> = row.get("taken");
    let missing: Vec<String> = names.all().filter(|name| !taken.contains(name)).cloned().collect();
    let creates = request.steps.include(InitStep::Create);
    let drops = request.steps.include(InitStep::Drop);
    let (request, existing) = if creates || !missing.is_empty() {
        (request.clone(), None)
    } else {
        let (request, existing) = adjusted(connection, request, &schema, &names.bulk).await?;
        (request, Some(existing))
    };
    let bytes = u64::try_from(row.get::<_, i64>("taken_bytes")).unwrap_or_default();
    let mut found = PgrigTablesFacts { existing, ..PgrigTablesFacts::default() };
    let facts = Facts {
        request,
        schema,
        create_schema: !schema_exists,
        create: Vec::new(),
        dropped: Vec::new(),
        dropped_bytes: bytes,
        stale_ledger: row.get("ledger_exists"),
        unfinished: None,
        emptied: false,
        vacuum_refused: None,
        tables: TablesFacts::Pgrig(PgrigTablesFacts::default()),
    };
    let Facts { request, schema, .. } = &facts;
    if facts.stale_ledger {
        let comment: Option<String> = row.get("ledger_comment");
        let begun = ledger::read(connection, schema, &names.bulk, comment.as_deref()).await?;
        let differences =
            begun.as_ref().map_or(String::new(), |begun| request.differences(&begun.header.request));
        if let Some(begun) = begun.filter(|begun| resume && request.is_that_of(&begun.header.request)) {
            let now = Relations::ask(connection, schema, &names, begun.header.relations.routes).await?;
            same_tables(now.as_ref(), &begun)?;
            let tables = TablesFacts::Pgrig(found);
            return Ok(Facts { stale_ledger: false, unfinished: Some(begun), tables, ..facts });
        }
        if resume && !drops {
            let (schema, may_forget) = (facts.schema, !creates);
            return Err(BegunError::Unfinished { schema, differences, may_forget }.into());
        }
    }
    if !creates {
        if !missing.is_empty() {
            return Err(FillError::NoTables { schema: facts.schema, tables: missing });
        }
        (found.rows, found.scale) = present::rows(connection, request, schema, &names).await?;
        return Ok(Facts { tables: TablesFacts::Pgrig(found), ..facts });
    }
    let tables = TablesFacts::Pgrig(found);
    if !taken.is_empty() && !drops {
        let all_there = missing.is_empty() && request.steps.include(InitStep::Generate);
        let emptied = all_there && present::is_emptied(connection, schema, &names).await?;
        if emptied && request.subject == Subject::Pgbench {
            return Ok(Facts { emptied, tables, ..facts });
        }
        return Err(FillError::TablesExist { schema: facts.schema, tables: taken, emptied });
    }
    if let Some(name) = row.get::<_, Vec<String>>("taken_by_others").pop() {
        return Err(FillError::NotATable { schema: facts.schema, name });
    }
    Ok(Facts { dropped: taken, tables, ..facts })
}
