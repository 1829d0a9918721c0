//! What the catalogs say of a table: facts, no decisions.

use serde::{Deserialize, Serialize};

/// A table that rows can be put into: an ordinary or a partitioned one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableInfo {
    /// `pg_class.oid`.
    pub oid: u32,
    /// Its schema, unquoted.
    pub schema: String,
    /// Its name, unquoted.
    pub name: String,
    /// Whether it is a temporary table: such are seen by the session that made them only.
    pub temporary: bool,
    /// The role that asked.
    pub role: String,
    /// Whether the role may read the table, so that the present keys can be asked for.
    pub may_select: bool,
    /// Whether the role may create temporary tables in this database.
    pub may_create_temporary: bool,
    /// User triggers that fire on INSERT, and so on every row of a COPY.
    pub triggers: Vec<String>,
    /// Columns in the table's order, without dropped ones.
    pub columns: Vec<ColumnInfo>,
    /// Enforced CHECK constraints of the table; domains have their own.
    pub checks: Vec<CheckInfo>,
    /// Primary key, unique and exclusion constraints, unique indexes; the primary key first.
    pub keys: Vec<KeyInfo>,
    /// Enforced foreign keys.
    pub foreign_keys: Vec<ForeignKeyInfo>,
    /// How it is partitioned, if it is.
    pub partitions: Option<Vec<LeafInfo>>,
    /// What rows must fulfil because the table is itself a partition.
    pub partition_of: Option<String>,
}

/// One column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnInfo {
    /// Unquoted name.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// The collation as SQL has it, where it is not the database's.
    pub collation: Option<String>,
    /// Whether NULL is refused, by the column or by its domain.
    pub not_null: bool,
    /// Whether the role may give it a value.
    pub may_insert: bool,
    /// Where the value comes from if a row gives none.
    pub source: Source,
}

/// Where a column's value comes from if a row gives none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Nowhere: it is NULL.
    Nothing,
    /// `DEFAULT expression`.
    Default {
        /// As SQL.
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
        /// As SQL.
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
    /// The numbers in parentheses: 10 and 2.
    pub modifiers: Vec<i32>,
    /// What it is.
    pub shape: TypeShape,
}

/// What a type is.
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
    /// An enum.
    Enum {
        /// In the enum's order.
        labels: Vec<String>,
    },
    /// A domain; its NOT NULL is the column's.
    Domain {
        /// What it is made of.
        base: Box<DataType>,
        /// Its own constraints, in which the value is called VALUE.
        checks: Vec<CheckInfo>,
    },
    /// An array of any number of dimensions.
    Array {
        /// What is in it.
        element: Box<DataType>,
    },
    /// A range.
    Range {
        /// What it goes over.
        subtype: Box<DataType>,
    },
    /// A multirange.
    Multirange {
        /// What it goes over.
        subtype: Box<DataType>,
    },
    /// A row type.
    Composite,
}

/// A CHECK constraint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckInfo {
    /// Its name.
    pub name: String,
    /// The condition as the server prints it.
    pub expression: String,
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
    /// What must differ between rows in at least one place.
    pub elements: Vec<KeyElement>,
    /// As the server prints it.
    pub definition: String,
    /// The index after its table's name: ` USING btree (id)`.
    pub index: String,
}

/// One column or expression of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyElement {
    /// The column.
    pub column: Option<String>,
    /// The expression, if it is no column.
    pub expression: Option<String>,
    /// Whether different values are enough; an exclusion constraint's `&&`, say, asks for more.
    pub equality: bool,
}

/// A foreign key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignKeyInfo {
    /// Its name.
    pub name: String,
    /// Columns of this table.
    pub columns: Vec<String>,
    /// Schema of the referenced table.
    pub schema: String,
    /// The referenced table.
    pub table: String,
    /// Its columns, in the order of `columns`.
    pub referenced: Vec<String>,
    /// Whether it references its own table.
    pub to_itself: bool,
    /// Whether it references a period (PostgreSQL 18).
    pub period: bool,
    /// Whether the role may read the referenced columns.
    pub may_select: bool,
    /// As the server prints it.
    pub definition: String,
}

/// A partition that holds rows itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeafInfo {
    /// Qualified and quoted.
    pub name: String,
    /// What its rows fulfil as the server prints it; none if all rows do.
    pub bound: Option<String>,
}

impl TableInfo {
    /// The column of that name.
    pub fn column(&self, name: &str) -> Option<&ColumnInfo> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// `schema.name`, for people.
    pub fn display_name(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }
}

impl ColumnInfo {
    /// Whether the server computes it from the row, so that nobody may give a value.
    pub fn is_generated(&self) -> bool {
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
    pub fn domain_checks(&self) -> Vec<&CheckInfo> {
        match &self.shape {
            TypeShape::Domain { base, checks } => checks.iter().chain(base.domain_checks()).collect(),
            _ => Vec::new(),
        }
    }
}
