//! The user's specifications of columns: `--column NAME=SPEC`.

use std::collections::BTreeMap;
use std::sync::Arc;

use rowgen::{ColumnSpec, Keyed, Keys, Kind, Pick, Reference, Values};
use tokio_postgres::Client;

use super::error::CatalogError;
use super::info::{ColumnInfo, Source, TableInfo};
use super::planned::Planned;
use server::quote::identifier;

/// Values that a `reference` chooses among.
const SAMPLE: usize = 100_000;

/// The user's specifications with the tables that they refer to.
pub(super) struct Given<'a> {
    specs: &'a [ColumnSpec],
    references: BTreeMap<&'a str, Reference>,
}

impl<'a> Given<'a> {
    /// Checks the columns' names and reads the values that are referenced: in tables, or in relations that stand in for those that are filled
    /// before this one in the same run.
    pub(super) async fn read(
        client: &Client,
        info: &TableInfo,
        specs: &'a [ColumnSpec],
        planned: &[Planned],
    ) -> Result<Self, CatalogError> {
        let mut references = BTreeMap::new();
        for (at, spec) in specs.iter().enumerate() {
            if info.column(&spec.column).is_none() {
                return Err(CatalogError::NoColumn {
                    table: info.shown(),
                    column: spec.column.clone(),
                    columns: info.column_names().join(", "),
                });
            }
            if specs[..at].iter().any(|other| other.column == spec.column) {
                return Err(CatalogError::GivenTwice { column: spec.column.clone() });
            }
            if let Some(referenced) = spec.spec.reference() {
                let stand_in = format!("pgrig_given_{at}");
                let found = reference(client, spec, referenced, (planned, &stand_in)).await?;
                references.insert(spec.column.as_str(), found);
            }
        }
        Ok(Self { specs, references })
    }

    /// How often each key is referenced, if the user says so for a column of a foreign key.
    ///
    /// # Errors
    /// If the column is in no foreign key to another table.
    pub(super) fn keyed(&self, info: &TableInfo, column: &ColumnInfo) -> Result<Option<Keyed>, CatalogError> {
        let given = self.specs.iter().find(|spec| spec.column == column.name);
        let Some(keyed) = given.and_then(|given| given.spec.keyed()) else { return Ok(None) };
        if info.foreign_keys.iter().any(|key| !key.to_itself && key.columns.contains(&column.name)) {
            return Ok(Some(keyed));
        }
        let why = "the column is not part of a foreign key to another table, so keys(…) is not possible: give another \
                   specification".to_owned();
        Err(CatalogError::Spec { column: column.name.clone(), why })
    }

    /// The fraction of NULLs among values that pgrig chooses, if it was given.
    pub(super) fn nulls(&self, column: &ColumnInfo) -> Option<f64> {
        self.specs.iter().find(|spec| spec.column == column.name)?.spec.only_nulls()
    }

    /// The values for a column, if they were given; of a type that rowgen does not know, only those
    /// that are given as text.
    pub(super) fn values(
        &self,
        info: &TableInfo,
        column: &ColumnInfo,
        kind: Option<&Kind>,
    ) -> Result<Option<Values>, CatalogError> {
        let Some(given) = self.specs.iter().find(|spec| spec.column == column.name) else { return Ok(None) };
        if given.spec.only_nulls().is_some() {
            return Ok(None);
        }
        let reference = self.references.get(column.name.as_str());
        let values = given
            .spec
            .values(kind.unwrap_or(&Kind::Text), reference)
            .map_err(|error| CatalogError::Spec { column: column.name.clone(), why: error.to_string() })?;
        if kind.is_none() && !is_text(&values) {
            return Err(CatalogError::UnsupportedType {
                table: info.shown(),
                column: column.name.clone(),
                data_type: column.data_type.sql.clone(),
                nullable: !column.not_null,
                has_default: column.source != Source::Nothing,
            });
        }
        Ok(Some(values))
    }
}

/// Whether the values are given as text, which suits any type.
fn is_text(values: &Values) -> bool {
    match values {
        Values::Server | Values::Null | Values::Text(_) | Values::List(_) | Values::Cycle(_) => true,
        Values::Reference(reference) => matches!(*reference.keys, Keys::Listed(_)),
        Values::Nulls { values, .. } | Values::Ranked { values, .. } => is_text(values),
        _ => false,
    }
}

/// The values of a column elsewhere: `table.column`, quoted as in SQL where need be. A temporary table of this name stands in for a planned one.
async fn reference(
    client: &Client,
    spec: &ColumnSpec,
    referenced: &str,
    (planned, stand_in): (&[Planned], &str),
) -> Result<Reference, CatalogError> {
    let failed = |why: String| CatalogError::Spec { column: spec.column.clone(), why };
    let parts = client.query_one("SELECT parse_ident($1)", &[&referenced]).await;
    let parts: Vec<String> = parts.map_err(|error| told(error, failed))?.get(0);
    let Some((column, table @ [_, ..])) = parts.split_last() else {
        return Err(failed(format!("{referenced} is not of the form table.column")));
    };
    // A table that gets no rows may have some.
    let in_run = |planned: &&Planned| planned.has_name(table) && planned.first_row < planned.table.rows;
    let from = match planned.iter().find(in_run) {
        Some(planned) => {
            planned.stand_in(client, stand_in, std::slice::from_ref(column)).await?;
            format!("pg_temp.{stand_in}")
        }
        None => table.iter().map(|part| identifier(part)).collect::<Vec<_>>().join("."),
    };
    let column = identifier(column);
    let query = format!(
        "SELECT DISTINCT value FROM (SELECT {column}::text AS value FROM {from} WHERE {column} IS NOT NULL LIMIT {SAMPLE}) \
         AS referenced ORDER BY value"
    );
    let rows = client.query(&query, &[]).await.map_err(|error| told(error, failed))?;
    if rows.is_empty() {
        return Err(failed(format!("{referenced} has no values: fill that table first")));
    }
    let keys = Keys::Listed(rows.iter().map(|row| vec![Some(row.get("value"))]).collect());
    let pick = Pick::Random { name: referenced.to_owned() };
    Ok(Reference { keys: Arc::new(keys), column: 0, pick, is_allowed: false })
}

/// The error for a failed query of referenced values: `failed` if the reference is to blame, else
/// the server's own error.
fn told(error: tokio_postgres::Error, failed: impl Fn(String) -> CatalogError) -> CatalogError {
    // 22: not readable as a name; 42: not there, or not to be read.
    let about_it =
        error.code().is_some_and(|code| ["22", "42"].iter().any(|class| code.code().starts_with(class)));
    match error.as_db_error() {
        Some(why) if about_it => failed(why.message().to_owned()),
        _ => error.into(),
    }
}
