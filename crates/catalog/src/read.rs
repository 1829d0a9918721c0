//! Asks the catalogs about tables: about all of a list at once.

use futures_util::future::LocalBoxFuture;
use std::collections::BTreeMap;

use serde::Deserialize;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Json;
use tokio_postgres::{Client, Row};

use super::error::CatalogError;
use super::info::{
    CheckInfo, ColumnInfo, DataType, ForeignKeyInfo, KeyInfo, LeafInfo, SequenceInfo, Source, TableInfo,
    TypeShape,
};
use super::partition_checks::of_partitions;
use super::transaction::{Access, Scope, rolled_back};
use server::quote::shown_qualified;

/// Tables of which one query reads the facts, so that it takes seconds at most.
pub(super) const TOGETHER: usize = 500;

/// Each table of a list, or the error of its name.
type Each<T> = Vec<Result<T, CatalogError>>;

impl TableInfo {
    /// Reads the table of that name: `name` or `schema.name`, quoted as in SQL where need be,
    /// looked up along search_path.
    ///
    /// # Errors
    /// If there is no such table, if it cannot be filled by COPY, or if the role lacks a privilege.
    pub fn read<'a>(
        client: &'a Client,
        name: &'a str,
        scope: Scope,
    ) -> LocalBoxFuture<'a, Result<Self, CatalogError>> {
        Box::pin(async move {
            let names = [name.to_owned()];
            let mut tables = Self::read_all(client, &names, scope).await?;
            tables.remove(0)
        })
    }

    /// Reads the tables of these names as [`read`](Self::read) does: in their order, each or its error. Some hundreds of tables
    /// take as many queries as one.
    ///
    /// # Errors
    /// If the server fails.
    pub fn read_all<'a>(
        client: &'a Client,
        names: &'a [String],
        scope: Scope,
    ) -> LocalBoxFuture<'a, Result<Each<Self>, CatalogError>> {
        Box::pin(async move { rolled_back(client, scope, Access::ReadOnly, read_all(client, names)).await })
    }
}

/// The tables as the catalogs have them, whether rows can be put into them or not. The session is in a transaction.
pub(super) async fn looked_at(client: &Client, names: &[String]) -> Result<Vec<TableInfo>, CatalogError> {
    let tables = found(client, names, |document, types| Ok(document.into_info(types))).await?;
    match closed(&tables) {
        Some(error) => Err(error),
        None => tables.into_iter().collect(),
    }
}

/// The error for several schemas that the role may not use.
fn closed(tables: &[Result<TableInfo, CatalogError>]) -> Option<CatalogError> {
    let mut schemas: Vec<String> = Vec::new();
    let mut of = None;
    for error in tables.iter().filter_map(|table| table.as_ref().err()) {
        if let CatalogError::SchemaPrivilege { schema, role, .. } = error {
            of = Some(role.clone());
            if !schemas.contains(schema) {
                schemas.push(schema.clone());
            }
        }
    }
    let role = of.filter(|_| schemas.len() > 1)?;
    Some(CatalogError::SchemaPrivileges { schemas, role })
}

async fn read_all(client: &Client, names: &[String]) -> Result<Each<TableInfo>, CatalogError> {
    let fillable = |document: Document, types: &Types| -> Result<TableInfo, CatalogError> {
        document.refuse()?;
        Ok(document.into_info(types))
    };
    let mut tables = found(client, names, fillable).await?;
    for tables in tables.chunks_mut(TOGETHER) {
        set_next_values(client, tables).await?;
    }
    Ok(tables)
}

/// The tables of these names, each as `info` has it from its document and the types of all.
async fn found(
    client: &Client,
    names: &[String],
    info: impl Fn(Document, &Types) -> Result<TableInfo, CatalogError>,
) -> Result<Each<TableInfo>, CatalogError> {
    let mut tables = Vec::with_capacity(names.len());
    for names in names.chunks(TOGETHER) {
        let resolved = resolve(client, names).await?;
        let oids: Vec<u32> = resolved.iter().flatten().copied().collect();
        let types = Types::of_columns(client, &oids).await?;
        let rows = client.query(include_str!("sql/tables.sql"), &[&oids]).await?;
        let mut documents = rows.iter().map(|row| row.get::<_, Option<Json<Document>>>("document"));
        for (name, oid) in names.iter().zip(resolved) {
            tables.push(oid.and_then(|_| match documents.next().flatten() {
                Some(Json(document)) => info(document, &types),
                // It was dropped a moment ago.
                None => Err(CatalogError::NoTable { name: name.clone(), alike: Vec::new() }),
            }));
        }
    }
    Ok(tables)
}

/// The state of a sequence.
#[derive(Deserialize)]
struct SequenceState {
    last_value: i64,
    is_called: bool,
}

/// Sets the values that nextval() would return.
async fn set_next_values(
    client: &Client,
    tables: &mut [Result<TableInfo, CatalogError>],
) -> Result<(), CatalogError> {
    let columns = tables.iter_mut().flatten().flat_map(|table| table.columns.iter_mut());
    let sequences: Vec<&mut SequenceInfo> = columns.filter_map(|column| column.sequence.as_mut()).collect();
    if sequences.is_empty() {
        return Ok(());
    }
    let state = |sequence: &&mut SequenceInfo| {
        let object = "jsonb_build_object('last_value', last_value, 'is_called', is_called)";
        format!("(SELECT {object} FROM {})", sequence.name)
    };
    let states: Vec<String> = sequences.iter().map(state).collect();
    let row = client.query_one(&format!("SELECT ARRAY[{}] AS states", states.join(", ")), &[]).await?;
    let states: Vec<Json<SequenceState>> = row.get("states");
    for (sequence, Json(state)) in sequences.into_iter().zip(states) {
        let step = if state.is_called { sequence.increment } else { 0 };
        sequence.next = state.last_value.saturating_add(step);
    }
    Ok(())
}

/// The OIDs of the tables of these names, in their order.
async fn resolve(client: &Client, names: &[String]) -> Result<Each<u32>, CatalogError> {
    match client.query(include_str!("sql/resolve.sql"), &[&names]).await {
        Ok(rows) => Ok(names.iter().zip(&rows).map(|(name, row)| oid(name, row)).collect()),
        Err(error) if is_about_the_name(&error) => {
            let why = error.as_db_error().map_or_else(String::new, |error| error.message().to_owned());
            Err(CatalogError::Name { name: names.join(", "), why })
        }
        Err(error) => Err(error.into()),
    }
}

/// The OID of the table of that name, if there is one.
fn oid(name: &str, row: &Row) -> Result<u32, CatalogError> {
    if let Some(schema) = row.get("hidden") {
        return Err(CatalogError::SchemaPrivilege { table: name.to_owned(), schema, role: row.get("role") });
    }
    row.get::<_, Option<u32>>("oid").ok_or_else(|| CatalogError::NoTable {
        name: name.to_owned(),
        alike: alike(
            &row.get::<_, Option<String>>("name").unwrap_or_default(),
            &row.get::<_, Vec<String>>("names"),
            row.get("shown"),
        ),
    })
}

/// Least similarity of two names for a suggestion, 0 to 1: `order` and `orders` are 0.83.
const ALIKE: f64 = 0.7;
/// Names that are suggested at most.
const MOST_ALIKE: usize = 5;

/// Of `shown`, the entries whose `names` are most like `name`.
pub fn alike(name: &str, names: &[String], shown: Vec<String>) -> Vec<String> {
    let name = name.to_lowercase();
    let likeness = |other: &String| strsim::normalized_damerau_levenshtein(&name, &other.to_lowercase());
    let mut found: Vec<(f64, String)> = names.iter().map(likeness).zip(shown).collect();
    found.retain(|(likeness, _)| *likeness >= ALIKE);
    // Those that are equally alike keep their order.
    found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    found.into_iter().take(MOST_ALIKE).map(|(_, shown)| shown).collect()
}

/// Whether the server could not read the name, or may not look into its schema.
fn is_about_the_name(error: &tokio_postgres::Error) -> bool {
    let of_the_name = [
        SqlState::INVALID_NAME,
        SqlState::SYNTAX_ERROR,
        SqlState::INVALID_PARAMETER_VALUE,
        SqlState::FEATURE_NOT_SUPPORTED,
        SqlState::INSUFFICIENT_PRIVILEGE,
    ];
    error.code().is_some_and(|code| of_the_name.contains(code))
}

/// A relation as `tables.sql` has it.
#[derive(Deserialize)]
struct Document {
    oid: u32,
    schema: String,
    name: String,
    kind: char,
    temporary: bool,
    partition_key: Option<String>,
    role: String,
    rights: Rights,
    row_security: bool,
    triggers: Vec<String>,
    columns: Vec<ColumnRow>,
    checks: Vec<CheckInfo>,
    keys: Vec<KeyInfo>,
    expressions: Vec<CheckInfo>,
    foreign_keys: Vec<ForeignKeyInfo>,
    partition_of: Option<String>,
    leaves: Vec<LeafRow>,
}

#[derive(Deserialize)]
struct Rights {
    may_insert: bool,
    may_select: bool,
    may_create_temporary: bool,
}

#[derive(Deserialize)]
struct ColumnRow {
    name: String,
    type_oid: u32,
    type_sql: String,
    collation: Option<String>,
    not_null: bool,
    may_insert: bool,
    identity: Option<char>,
    generated: Option<char>,
    expression: Option<String>,
    sequence: bool,
    own_sequence: Option<SequenceInfo>,
}

/// Types by OID, as `types.sql` has them.
struct Types(BTreeMap<u32, TypeRow>);

#[derive(Deserialize)]
struct TypeRow {
    name: String,
    built_in: bool,
    sql: String,
    kind: char,
    element: Option<u32>,
    subtype: Option<u32>,
    base: Option<u32>,
    base_sql: Option<String>,
    not_null: bool,
    labels: Vec<String>,
    checks: Vec<CheckInfo>,
    fields: Vec<FieldRow>,
}

#[derive(Deserialize)]
struct FieldRow {
    type_oid: u32,
    type_sql: String,
}

#[derive(Deserialize)]
struct LeafRow {
    name: String,
    kind: char,
    bound: Option<String>,
    /// The CHECKs that the table does not have.
    checks: Vec<CheckInfo>,
}

impl Document {
    fn refuse(&self) -> Result<(), CatalogError> {
        let table = shown_qualified(&self.schema, &self.name);
        let what = match self.kind {
            'r' | 'p' => None,
            'v' => Some("a view"),
            'm' => Some("a materialized view"),
            'f' => Some("a foreign table"),
            'S' => Some("a sequence"),
            'i' | 'I' => Some("an index"),
            'c' => Some("a composite type"),
            _ => Some("not a table"),
        };
        let of_the_server = matches!(self.schema.as_str(), "pg_catalog" | "information_schema" | "pg_toast");
        let what = what
            .or(of_the_server.then_some("a system catalog"))
            .or(self.temporary.then_some("a temporary table of another session"));
        if let Some(what) = what {
            return Err(CatalogError::NotATable { table, what });
        }
        if self.columns.is_empty() {
            return Err(CatalogError::NoColumns { table });
        }
        if self.row_security {
            return Err(CatalogError::RowSecurity { table, role: self.role.clone() });
        }
        if !self.rights.may_insert && !self.columns.iter().any(|column| column.may_insert) {
            return Err(CatalogError::InsertPrivilege { table, role: self.role.clone() });
        }
        if let Some(leaf) = self.leaves.iter().find(|leaf| leaf.kind == 'f') {
            return Err(CatalogError::ForeignPartition { table, partition: leaf.name.clone() });
        }
        if self.kind == 'p' && self.leaves.is_empty() {
            let is_hash = self.partition_key.as_ref().is_some_and(|key| key.starts_with("HASH"));
            let bound = if is_hash { "FOR VALUES WITH (MODULUS 1, REMAINDER 0)" } else { "DEFAULT" };
            let leaf = shown_qualified(&self.schema, &format!("{}_all", self.name));
            return Err(CatalogError::NoPartitions {
                remedy: format!("CREATE TABLE {leaf} PARTITION OF {table} {bound}"),
                table,
            });
        }
        Ok(())
    }

    fn into_info(self, types: &Types) -> TableInfo {
        let columns = self.columns.iter().map(|column| column.info(types)).collect();
        let leaf = |leaf: LeafRow| (LeafInfo { name: leaf.name, bound: leaf.bound }, leaf.checks);
        let leaves: Vec<(LeafInfo, Vec<CheckInfo>)> = self.leaves.into_iter().map(leaf).collect();
        let mut checks = self.checks;
        checks.extend(of_partitions(&checks, &leaves));
        TableInfo {
            oid: self.oid,
            schema: self.schema,
            name: self.name,
            role: self.role,
            may_select: self.rights.may_select,
            may_create_temporary: self.rights.may_create_temporary,
            triggers: self.triggers,
            columns,
            checks,
            keys: distinct(self.keys, |a, b| a.elements == b.elements && a.predicate == b.predicate),
            expressions: distinct(self.expressions, |a, b| a.expression == b.expression),
            foreign_keys: distinct(self.foreign_keys, |a, b| {
                a.columns == b.columns && a.referenced == b.referenced
            }),
            partitions: (self.kind == 'p').then(|| leaves.into_iter().map(|(leaf, _)| leaf).collect()),
            partition_of: self.partition_of,
        }
    }
}

impl Types {
    /// The types of the columns of these relations, with those that they are made of.
    async fn of_columns(client: &Client, relations: &[u32]) -> Result<Self, CatalogError> {
        let row = client.query_one(include_str!("sql/types.sql"), &[&relations]).await?;
        let Json(types): Json<BTreeMap<u32, TypeRow>> = row.get("document");
        Ok(Self(types))
    }

    /// The type as used somewhere with modifiers: `sql` has them.
    fn data_type(&self, oid: u32, sql: String) -> DataType {
        let modifiers = modifiers(&sql);
        let Some(row) = self.0.get(&oid) else {
            return DataType { sql, modifiers, shape: TypeShape::Composite { fields: Vec::new() } };
        };
        let plain = |oid: &u32| {
            Box::new(self.data_type(*oid, self.0.get(oid).map_or_else(String::new, |row| row.sql.clone())))
        };
        let shape = match (row.kind, &row.element, &row.base, &row.subtype) {
            ('e', ..) => TypeShape::Enum { labels: row.labels.clone() },
            ('d', _, Some(base), _) => {
                let base_sql = row.base_sql.clone().unwrap_or_default();
                let base = Box::new(self.data_type(*base, base_sql));
                TypeShape::Domain { base, checks: row.checks.clone() }
            }
            ('r', _, _, Some(subtype)) => TypeShape::Range { subtype: plain(subtype) },
            ('m', _, _, Some(subtype)) => TypeShape::Multirange { subtype: plain(subtype) },
            ('c', ..) => {
                let field = |field: &FieldRow| self.data_type(field.type_oid, field.type_sql.clone());
                TypeShape::Composite { fields: row.fields.iter().map(field).collect() }
            }
            // An array's modifiers are its elements'.
            (_, Some(element), ..) => {
                let element_sql = sql.strip_suffix("[]").unwrap_or(&sql).to_owned();
                TypeShape::Array { element: Box::new(self.data_type(*element, element_sql)) }
            }
            _ => TypeShape::Scalar { name: row.name.clone(), built_in: row.built_in },
        };
        DataType { sql, modifiers, shape }
    }

    fn domain_not_null(&self, oid: u32) -> bool {
        self.0
            .get(&oid)
            .is_some_and(|row| row.not_null || row.base.is_some_and(|base| self.domain_not_null(base)))
    }
}

impl ColumnRow {
    fn info(&self, types: &Types) -> ColumnInfo {
        ColumnInfo {
            name: self.name.clone(),
            data_type: types.data_type(self.type_oid, self.type_sql.clone()),
            collation: self.collation.clone(),
            not_null: self.not_null || types.domain_not_null(self.type_oid),
            may_insert: self.may_insert,
            source: self.source(),
            sequence: self.own_sequence.clone(),
        }
    }

    fn source(&self) -> Source {
        let expression = self.expression.clone();
        match (self.generated, self.identity, expression) {
            (Some(kind), _, expression) => {
                Source::Generated { expression: expression.unwrap_or_default(), stored: kind == 's' }
            }
            (None, Some(kind), _) => Source::Identity { always: kind == 'a' },
            (None, None, Some(expression)) => Source::Default { expression, sequence: self.sequence },
            (None, None, None) => Source::Nothing,
        }
    }
}

/// Removes elements that are equal to an earlier one. Partitions may each repeat a constraint, and
/// all rows must fulfil the constraints of each partition.
fn distinct<T>(all: Vec<T>, same: impl Fn(&T, &T) -> bool) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    for one in all {
        if !kept.iter().any(|other| same(other, &one)) {
            kept.push(one);
        }
    }
    kept
}

/// The numbers in a type's parentheses: `numeric(10,2)` has 10 and 2.
fn modifiers(sql: &str) -> Vec<i32> {
    let inside =
        sql.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(inside, _)| inside);
    inside.split(',').filter_map(|number| number.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::modifiers;

    #[test]
    fn modifiers_are_the_numbers_in_parentheses() {
        assert_eq!(modifiers("numeric(10,-2)[]"), [10, -2]);
        assert_eq!(modifiers("timestamp(3) without time zone"), [3]);
        assert!(modifiers("text").is_empty());
    }
}
