//! The data of a rehearsal at several sizes: pgbench's tables, those of a file of SQL, or those of a model.

use fill::{
    FillError, Modelled, ModelledType, RowsRule, SchemaAmount, SchemaRequest, SqlOrigin, TableRows,
    sql_of_script,
};
use model::{Model, Table};
use serde::Serialize;

/// Schema and proportions of the data that a rehearsal makes at each size.
#[derive(Clone, Debug, Serialize)]
pub struct Shape {
    /// Where it is from, for people: `model shop.model.toml`, `database shop`.
    pub origin: String,
    /// Bytes of the original's tables with their indexes, if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Whether the values imitate those of an original.
    pub is_like_original: bool,
    /// Tables other than pgbench's.
    #[serde(skip)]
    schema: Option<Schema>,
}

/// Tables of the user's, and the statistics of their rows.
#[derive(Clone, Debug)]
struct Schema {
    sql: String,
    origin: SqlOrigin,
    modelled: Vec<Modelled>,
    types: Vec<ModelledType>,
    rules: Vec<RowsRule>,
    empty: Vec<String>,
}

impl Shape {
    /// pgbench's tables.
    pub fn pgbench() -> Self {
        Self { origin: "pgbench's tables".to_owned(), bytes: None, is_like_original: false, schema: None }
    }

    /// Reads the schema from SQL. pgrig chooses the proportions.
    ///
    /// # Errors
    /// If the SQL contains psql's own commands.
    pub fn of_script(text: &str, origin: String) -> Result<Self, FillError> {
        let schema = Schema {
            sql: sql_of_script(text)?,
            origin: SqlOrigin::File,
            modelled: Vec::new(),
            types: Vec::new(),
            rules: Vec::new(),
            empty: Vec::new(),
        };
        Ok(Self { origin, bytes: None, is_like_original: false, schema: Some(schema) })
    }

    /// Takes schema, statistics and numbers of rows from a model.
    ///
    /// # Errors
    /// If the model's SQL contains psql's own commands.
    pub fn of_model(model: &Model, origin: String) -> Result<Self, FillError> {
        let tables = &model.tables;
        let size = |table: &Table| table.bytes.heap + table.bytes.toast + table.bytes.indexes;
        let filled = tables.iter().filter(|table| table.rows > 0);
        let schema = Schema {
            sql: sql_of_script(&model.ddl)?,
            origin: SqlOrigin::Model,
            modelled: tables.iter().flat_map(modelled).collect(),
            types: tables.iter().flat_map(types_of).collect(),
            rules: filled
                .map(|table| RowsRule {
                    table: table.name.clone(),
                    rows: TableRows::InProportion(table.rows),
                })
                .collect(),
            empty: tables.iter().filter(|table| table.rows == 0).map(|table| table.name.clone()).collect(),
        };
        let bytes = tables.iter().map(size).sum();
        Ok(Self { origin, bytes: (bytes > 0).then_some(bytes), is_like_original: true, schema: Some(schema) })
    }

    /// The same of the model that was made of a database: `database shop`.
    ///
    /// # Errors
    /// If the model's SQL contains psql's own commands.
    pub fn of_database(model: &Model, database: &str) -> Result<Self, FillError> {
        let mut shape = Self::of_model(model, format!("a model of {database}"))?;
        if let Some(schema) = &mut shape.schema {
            schema.origin = SqlOrigin::Database;
        }
        Ok(shape)
    }

    /// The error of a fill with the remedies that a rehearsal has: of tables that reference each other, statements to add to the SQL.
    pub(crate) fn explained(&self, error: FillError) -> FillError {
        match (error.cycle(), &self.schema) {
            (Some(cycle), Some(schema)) => FillError::Combination(cycle.in_sql(schema.origin)),
            _ => error,
        }
    }

    /// The fill of these tables, so that they and their indexes take so many bytes; none for pgbench's.
    pub(crate) fn schema_request(&self, bytes: u64) -> Option<SchemaRequest> {
        let schema = self.schema.clone()?;
        Some(SchemaRequest {
            create_roles: true,
            empty: schema.empty,
            rules: schema.rules,
            modelled: schema.modelled,
            modelled_types: schema.types,
            ..SchemaRequest::of_script(schema.sql, SchemaAmount::Size(bytes))
        })
    }
}

fn modelled(table: &Table) -> impl Iterator<Item = Modelled> {
    table.specs().into_iter().map(|spec| Modelled { table: table.name.clone(), spec })
}

fn types_of(table: &Table) -> impl Iterator<Item = ModelledType> {
    table.columns.iter().map(|column| ModelledType {
        table: table.name.clone(),
        column: column.name.clone(),
        data_type: column.data_type.clone(),
    })
}
