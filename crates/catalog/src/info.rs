//! The catalogs' facts about a table. No decisions.

use serde::{Deserialize, Serialize};
use server::quote::{identifier, shown, shown_qualified};

use super::mentioned::{calls_only, columns_in, is_constant, is_null};
use super::partition_checks::Within;

/// Functions that give different unique texts different values.
const DISTINCT: [&str; 12] = [
    "lower",
    "upper",
    "md5",
    "sha256",
    "encode",
    "convert_to",
    "coalesce",
    "btrim",
    "ltrim",
    "rtrim",
    "trim",
    "reverse",
];

/// A table that rows can be put into: an ordinary or a partitioned one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableInfo {
    /// `pg_class.oid`.
    pub oid: u32,
    /// Its schema, unquoted.
    pub schema: String,
    /// Its name, unquoted.
    pub name: String,
    /// The role that asked.
    pub role: String,
    /// Whether the role may read the table, so that the present keys can be asked for.
    pub may_select: bool,
    /// Whether the role may create temporary tables in this database.
    pub(crate) may_create_temporary: bool,
    /// User triggers that fire on INSERT, and so on every row of a COPY.
    pub triggers: Vec<String>,
    /// Columns in the table's order, without dropped ones.
    pub columns: Vec<ColumnInfo>,
    /// Enforced CHECK constraints of the table and of its partitions; domains have their own.
    pub checks: Vec<CheckInfo>,
    /// Primary key, unique and exclusion constraints, unique indexes; the primary key first.
    pub keys: Vec<KeyInfo>,
    /// Expressions of the other indexes, with the names of these; of a partial index, it is NULL outside of its predicate.
    #[serde(default)]
    pub(crate) expressions: Vec<CheckInfo>,
    /// Enforced foreign keys.
    pub foreign_keys: Vec<ForeignKeyInfo>,
    /// Partitions, if it is partitioned.
    pub partitions: Option<Vec<LeafInfo>>,
    /// The condition that rows must fulfil because the table is itself a partition.
    pub partition_of: Option<String>,
}

/// A column, as the catalogs describe it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnInfo {
    /// Name of the column, without quotes.
    pub name: String,
    /// Its type, with modifiers.
    pub data_type: DataType,
    /// The collation as SQL has it, where it is not the database's.
    pub collation: Option<String>,
    /// Whether NULL is refused: by the column, by that of a partition, or by its domain.
    pub not_null: bool,
    /// Whether the role may give it a value.
    pub(crate) may_insert: bool,
    /// Source of the value if a row gives none.
    pub source: Source,
    /// The sequence that it comes from, if the role may read and set it, and it serves this column only.
    pub sequence: Option<SequenceInfo>,
}

/// The sequence of an identity or serial column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceInfo {
    /// `pg_class.oid`.
    pub oid: u32,
    /// Qualified and quoted.
    pub name: String,
    /// The value that nextval() would give; beyond the last one if there is none.
    pub next: i64,
    /// INCREMENT, not 0.
    pub increment: i64,
    /// MINVALUE: the least value that it gives.
    pub least: i64,
    /// MAXVALUE: the greatest value that it gives.
    pub greatest: i64,
    /// CYCLE: whether it begins again after the last value.
    pub cycles: bool,
}

/// Source of a column's value if a row gives none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// No source: the value is NULL.
    Nothing,
    /// `DEFAULT expression`.
    Default {
        /// The expression, as SQL.
        expression: String,
        /// Whether the expression takes its value from a sequence (serial).
        sequence: bool,
    },
    /// `GENERATED … AS IDENTITY`.
    Identity {
        /// ALWAYS rather than BY DEFAULT. COPY may give values to either.
        always: bool,
    },
    /// `GENERATED ALWAYS AS (expression)`: no row may give a value.
    Generated {
        /// The expression, as SQL.
        expression: String,
        /// STORED rather than VIRTUAL.
        stored: bool,
    },
}

/// A type with its modifiers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataType {
    /// As SQL has it, with modifiers: `numeric(10,2)`, `shop.status[]`.
    pub sql: String,
    /// The numbers in parentheses: 10 and 2 for `numeric(10,2)`.
    pub modifiers: Vec<i32>,
    /// Its kind, with the types that it is made of.
    pub shape: TypeShape,
}

/// Kind of a type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TypeShape {
    /// A built-in type, or one that an extension made, by `pg_type.typname`: `int4`, `timestamptz`.
    Scalar {
        /// The catalog's name.
        name: String,
        /// Whether it lives in pg_catalog.
        built_in: bool,
    },
    /// An enum type.
    Enum {
        /// In the enum's order.
        labels: Vec<String>,
    },
    /// A domain; its NOT NULL is the column's.
    Domain {
        /// The type under the domain.
        base: Box<DataType>,
        /// Its own constraints, in which the value is called VALUE.
        checks: Vec<CheckInfo>,
    },
    /// An array of any number of dimensions.
    Array {
        /// Type of the elements.
        element: Box<DataType>,
    },
    /// A range type.
    Range {
        /// Type of the bounds.
        subtype: Box<DataType>,
    },
    /// A multirange type.
    Multirange {
        /// Type of the bounds.
        subtype: Box<DataType>,
    },
    /// A row type.
    Composite {
        /// Types of its fields, in order.
        fields: Vec<DataType>,
    },
}

/// A CHECK constraint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckInfo {
    /// Name of the constraint.
    pub name: String,
    /// The condition as the server prints it.
    pub expression: String,
    /// The partitions that have it; none if it is one of the table.
    #[serde(default)]
    pub(crate) within: Option<Within>,
}

/// A primary key, a unique or exclusion constraint, or a unique index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyInfo {
    /// The index's name, which is the constraint's.
    pub name: String,
    /// Whether it is the primary key.
    pub primary: bool,
    /// Whether it is an exclusion constraint, or a key WITHOUT OVERLAPS, which is one.
    pub exclusion: bool,
    /// The elements of the key. Two rows must differ in at least one of them.
    pub elements: Vec<KeyElement>,
    /// As the server prints it.
    pub definition: String,
    /// The index after its table's name: ` USING btree (id)`.
    pub index: String,
    /// The condition under which a row is in the index, if it is a partial one: only these rows need keys that differ.
    #[serde(default)]
    pub predicate: Option<String>,
}

/// One column or expression of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyElement {
    /// The column's unquoted name; none for an expression.
    pub column: Option<String>,
    /// The expression, if it is no column.
    pub expression: Option<String>,
    /// Whether two values only have to be different; false if the key asks for more, as an
    /// exclusion constraint with `&&` does.
    pub equality: bool,
    /// Whether values must not overlap.
    #[serde(default)]
    pub(crate) overlap: bool,
}

/// A foreign key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignKeyInfo {
    /// Name of the constraint.
    pub name: String,
    /// Columns of this table.
    pub columns: Vec<String>,
    /// The referenced columns.
    pub referenced: Referenced,
    /// Whether the foreign key references its own table.
    pub to_itself: bool,
    /// Whether it references a period (PostgreSQL 18).
    pub period: bool,
    /// As the server prints it.
    pub definition: String,
}

/// The far end of a foreign key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Referenced {
    /// Schema of the referenced table.
    pub schema: String,
    /// The referenced table.
    pub table: String,
    /// Its columns, in the order of the foreign key's.
    pub columns: Vec<String>,
    /// Whether it is partitioned.
    pub partitioned: bool,
    /// Number of rows at its last ANALYZE; below 0 if there was none.
    pub rows: i64,
    /// Whether the role may read the columns.
    pub may_select: bool,
}

/// A partition that holds rows itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeafInfo {
    /// Qualified and quoted.
    pub name: String,
    /// The condition that its rows fulfil, as the server prints it; none if all rows fulfil it.
    pub bound: Option<String>,
}

impl TableInfo {
    /// The column of that name.
    pub fn column(&self, name: &str) -> Option<&ColumnInfo> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// `schema.name`.
    pub fn display_name(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    /// `schema.name` for people, as they write it in SQL.
    pub fn shown(&self) -> String {
        shown_qualified(&self.schema, &self.name)
    }

    /// The condition that every row fulfils because of the partition that it is in: the bounds of
    /// one of the table's partitions, or the bound of the table itself if it is a partition. None
    /// if a partition exists for every row.
    pub(super) fn partition_condition(&self) -> Option<String> {
        let bounds = match &self.partitions {
            Some(leaves) => leaves.iter().map(|leaf| leaf.bound.clone()).collect::<Option<Vec<_>>>()?,
            None => vec![self.partition_of.clone()?],
        };
        Some(bounds.join(" OR "))
    }

    /// The columns that stand in a condition or an expression on the table, as the server prints it.
    pub fn columns_in(&self, expression: &str) -> Vec<&str> {
        columns_in(expression, &self.column_names())
    }

    /// The names of all columns.
    pub(crate) fn column_names(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.name.as_str()).collect()
    }
}

impl ForeignKeyInfo {
    /// Whether either all columns are NULL or none is.
    pub fn is_match_full(&self) -> bool {
        self.definition.contains(" MATCH FULL")
    }
}

impl KeyInfo {
    /// A unique index on these columns.
    pub fn unique(name: &str, columns: &[String]) -> Self {
        let element = |column: &String| KeyElement {
            column: Some(column.clone()),
            expression: None,
            equality: true,
            overlap: false,
        };
        let quoted: Vec<String> = columns.iter().map(|column| identifier(column)).collect();
        let names: Vec<String> = columns.iter().map(|column| shown(column)).collect();
        Self {
            name: name.to_owned(),
            primary: false,
            exclusion: false,
            elements: columns.iter().map(element).collect(),
            definition: format!("UNIQUE ({})", names.join(", ")),
            index: format!(" USING btree ({})", quoted.join(", ")),
            predicate: None,
        }
    }

    /// The columns that it consists of, without expressions.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.elements.iter().filter_map(|element| element.column.as_deref())
    }

    /// Whether one NULL is the same as another.
    pub fn nulls_are_equal(&self) -> bool {
        self.definition.contains("NULLS NOT DISTINCT")
    }
}

/// The columns of `all` that these elements are computed from, each once.
pub(super) fn columns_of(elements: &[KeyElement], all: &[&str]) -> Box<[String]> {
    let mut columns: Vec<String> = Vec::new();
    for column in elements.iter().flat_map(|element| element.columns_in(all)) {
        if columns.iter().all(|known| known != column) {
            columns.push(column.to_owned());
        }
    }
    columns.into()
}

impl KeyElement {
    /// The column whose different values make this element different: the column itself, or a
    /// column that the element passes through functions that keep different texts of rowgen's
    /// unique ones different (these texts are lower case, without blanks, never NULL).
    pub(super) fn injective_in(&self, all: &[&str]) -> Option<String> {
        if !self.equality {
            return None;
        }
        let folded = |expression: &String| match columns_in(expression, all).as_slice() {
            [column] if calls_only(expression, &DISTINCT) => Some((*column).to_owned()),
            _ => None,
        };
        self.column.clone().or_else(|| self.expression.as_ref().and_then(folded))
    }

    /// The columns of the two ends, if it is a range that must not overlap another: `tsrange(starts, ends)`.
    pub(super) fn ends(&self, all: &[&str]) -> Option<[String; 2]> {
        let (function, arguments) = self.expression.as_ref().filter(|_| self.overlap)?.split_once('(')?;
        let mut arguments = arguments.split(',').map(|argument| columns_in(argument, all));
        match (arguments.next()?.as_slice(), arguments.next()?.as_slice()) {
            ([low], [high]) if function.ends_with("range") && low != high => {
                Some([(*low).to_owned(), (*high).to_owned()])
            }
            _ => None,
        }
    }

    /// Whether it has the same value in all rows, so that it keeps no two rows apart.
    pub(super) fn is_constant(&self, all: &[&str]) -> bool {
        let is_constant = |expression: &String| is_constant(expression, all);
        self.equality && self.column.is_none() && self.expression.as_ref().is_some_and(is_constant)
    }

    /// Whether its value is NULL in all rows.
    pub(super) fn is_null(&self) -> bool {
        self.column.is_none() && self.expression.as_deref().is_some_and(is_null)
    }

    /// The columns that it is computed from.
    pub(super) fn columns_in<'n>(&self, all: &[&'n str]) -> Vec<&'n str> {
        let is_column = |name: &&&str| self.column.as_deref() == Some(**name);
        let expression = self.expression.as_deref().map(|expression| columns_in(expression, all));
        all.iter().filter(is_column).copied().chain(expression.unwrap_or_default()).collect()
    }
}

impl Referenced {
    /// `schema.table`.
    pub fn display_name(&self) -> String {
        format!("{}.{}", self.schema, self.table)
    }

    /// `schema.table` for people, as they write it in SQL.
    pub fn shown(&self) -> String {
        shown_qualified(&self.schema, &self.table)
    }
}

impl ColumnInfo {
    /// Whether the server computes it from the row, so that nobody may give a value.
    pub(crate) fn is_generated(&self) -> bool {
        matches!(self.source, Source::Generated { .. })
    }
}

impl DataType {
    /// The type below all domains.
    pub fn base(&self) -> &Self {
        match &self.shape {
            TypeShape::Domain { base, .. } => base.base(),
            _ => self,
        }
    }

    /// CHECKs of the domains that it is made of, the outermost first.
    pub(crate) fn domain_checks(&self) -> Vec<&CheckInfo> {
        match &self.shape {
            TypeShape::Domain { base, checks } => checks.iter().chain(base.domain_checks()).collect(),
            _ => Vec::new(),
        }
    }

    /// CHECKs of domains inside of it: of an array's elements, of a row type's fields.
    pub(crate) fn inner_checks(&self) -> Vec<&CheckInfo> {
        fn of(inner: &DataType) -> Vec<&CheckInfo> {
            inner.domain_checks().into_iter().chain(inner.inner_checks()).collect()
        }
        match &self.shape {
            TypeShape::Domain { base, .. } => base.inner_checks(),
            TypeShape::Array { element } => of(element),
            TypeShape::Composite { fields } => fields.iter().flat_map(of).collect(),
            _ => Vec::new(),
        }
    }
}
