//! The request of a schema fill.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::FillError;
use crate::request::{CopyFormat, InitStep, InitSteps, MethodChoice, Part, Persistence, Triggers};

/// A fill of all tables of a schema, as asked for.
///
/// The same request given again completes a fill that was interrupted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "choices that are independent of each other")]
pub struct SchemaRequest {
    /// SQL that creates the tables first; none for the tables that the database has.
    pub ddl: Option<String>,
    /// Whether roles that the SQL names and the server does not have are created.
    #[serde(default)]
    pub create_roles: bool,
    /// The only schema whose tables are filled; with `ddl`, the schema of its unqualified names.
    pub schema: Option<String>,
    /// Tables that are left out, `name` or `schema.name`.
    pub exclude: Vec<String>,
    /// Tables that the model has without rows, which stay empty. The database need not have them.
    #[serde(default)]
    pub empty: Vec<String>,
    /// The amount of data.
    pub amount: SchemaAmount,
    /// Rows of single tables.
    pub rules: Vec<RowsRule>,
    /// Factor for all numbers of rows, unless a size decides.
    pub scale: f64,
    /// Specifications of single columns: `table.column=specification`.
    pub columns: Vec<String>,
    /// The same from a model. Used for filled tables, and for columns that `columns` does not
    /// mention.
    #[serde(default)]
    pub modelled: Vec<Modelled>,
    /// All columns of the model with their types. `ddl` must make them so.
    #[serde(default)]
    pub modelled_types: Vec<ModelledType>,
    /// Heaps of the model's tables.
    #[serde(default)]
    pub heaps: Vec<OriginalHeap>,
    /// Whether pages get as many rows as those of these heaps. `ddl` must create the tables.
    #[serde(default)]
    pub keeps_bloat: bool,
    /// Whether unique keys reach from the first partition of a table to the last one, however few they are. Rows cannot be added later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spreads_keys: bool,
    /// Whether rows are added to those that are there.
    pub append: bool,
    /// Whether the tables that `ddl` creates are made unlogged.
    pub persistence: Persistence,
    /// Method of making and loading rows.
    pub method: MethodChoice,
    /// Loading connections, or threads that write; none means chosen.
    pub streams: Option<std::num::NonZeroU16>,
    /// COPY's format; none means chosen.
    pub format: Option<CopyFormat>,
    /// Bytes of a chunk; none means chosen.
    #[serde(default)]
    pub chunk: Option<u64>,
    /// Whether rows are committed chunk by chunk even if that is slower, because a limit acts between chunks.
    #[serde(default)]
    pub in_chunks: bool,
    /// Seed of the random values.
    pub seed: u64,
    /// Whether names of columns say nothing of their values.
    #[serde(default)]
    pub plain: bool,
    /// Whether the tables' triggers run for the rows.
    #[serde(default)]
    pub triggers: Triggers,
    /// The steps for each table.
    pub steps: InitSteps,
    /// The part of the fill that this process loads; none if it loads all. The record does not hold it, so any number of
    /// parts completes a fill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
}

impl SchemaRequest {
    /// A fill of all tables that the SQL creates: logged, by COPY, with random values of seed 1, and with all indexes and keys.
    #[must_use]
    pub fn of_script(sql: String, amount: SchemaAmount) -> Self {
        Self {
            ddl: Some(sql),
            create_roles: false,
            schema: None,
            exclude: Vec::new(),
            empty: Vec::new(),
            amount,
            rules: Vec::new(),
            scale: 1.0,
            columns: Vec::new(),
            modelled: Vec::new(),
            modelled_types: Vec::new(),
            heaps: Vec::new(),
            keeps_bloat: false,
            spreads_keys: false,
            append: false,
            persistence: Persistence::Logged,
            method: MethodChoice::Copy,
            streams: None,
            format: None,
            chunk: None,
            in_chunks: false,
            seed: 1,
            plain: false,
            triggers: Triggers::default(),
            steps: InitSteps::whole().without(InitStep::PrimaryKeys).without(InitStep::Create),
            part: None,
        }
    }

    /// The same request, of the fill as a whole.
    pub(super) fn whole(&self) -> Self {
        Self { part: None, ..self.clone() }
    }

    /// Refuses requests that several processes cannot share, whatever the server.
    ///
    /// # Errors
    /// [`FillError::Combination`] names the options, and the remedy.
    pub fn check(&self) -> Result<(), FillError> {
        if self.part.is_none() {
            return Ok(());
        }
        let refusal = if self.append {
            "--part with --append: a part that is run again would append again. Leave out --part: one process adds the rows"
        } else if self.in_chunks {
            "--part divides a known number of rows, and limits end or measure the fill of one process: leave out --for, --mark and \
             --wait-for-space; or leave out --part"
        } else if self.method == MethodChoice::Direct {
            "--part with --method direct: one process writes all pages of a table. Give --method copy, or leave out --method; or leave \
             out --part, if pgrig runs on the server's machine"
        } else if !self.steps.include(InitStep::Generate) {
            "--part divides rows, and none of the steps generates rows: leave out --part"
        } else {
            return Ok(());
        };
        Err(FillError::Combination(refusal.to_owned()))
    }
}

/// The values of a column of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Modelled {
    /// `schema.name`.
    pub table: String,
    /// `column=specification`.
    pub spec: String,
}

/// A column of a model, and its type there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelledType {
    /// `schema.name`.
    pub table: String,
    /// Unquoted name.
    pub column: String,
    /// The type, as SQL has it.
    pub data_type: String,
}

/// The heap of a model's table, in the original.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginalHeap {
    /// `schema.name`.
    pub table: String,
    /// Number of its rows.
    pub rows: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Its bytes without bloat, if it has bloat.
    pub without_bloat: Option<u64>,
}

/// The amount of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchemaAmount {
    /// Bytes that all tables and their indexes take in the end.
    Size(u64),
    /// Rows of each table, as far as its keys leave room.
    Rows(u64),
    /// As the rules say. A table without a rule gets rows in proportion to the tables that it
    /// references.
    Rules,
}

/// Rows of one table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowsRule {
    /// `name` or `schema.name`.
    pub table: String,
    /// The number of rows.
    pub rows: TableRows,
}

/// The number of rows of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableRows {
    /// This number, whatever the size.
    Exactly(u64),
    /// This number times the scale, or times the factor that a size allows.
    InProportion(u64),
    /// This number for each row of another table.
    PerRow {
        /// Rows for each row of the other table.
        number: f64,
        /// The other table, `name` or `schema.name`.
        of: String,
    },
}

impl FromStr for RowsRule {
    type Err = String;

    /// Reads `orders=5*customers` or `products=10000`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is not TABLE=ROWS or TABLE=NUMBER*TABLE, e.g. orders=5*customers");
        let (table, rows) = text.split_once('=').ok_or_else(wrong)?;
        let rows = match rows.split_once('*') {
            None if is_negative(rows) => return Err(format!("{text}: give 0 or more rows")),
            None => TableRows::Exactly(rows.trim().parse().map_err(|_| wrong())?),
            Some((number, _)) if is_negative(number) => return Err(format!("{text}: give a number above 0")),
            Some((number, of)) => {
                let number: f64 = number.trim().parse().map_err(|_| wrong())?;
                let is_possible = number.is_finite() && number > 0.0;
                TableRows::PerRow {
                    number: is_possible.then_some(number).ok_or_else(wrong)?,
                    of: of.trim().to_owned(),
                }
            }
        };
        let table = table.trim().to_owned();
        if table.is_empty() || matches!(&rows, TableRows::PerRow { of, .. } if of.is_empty()) {
            return Err(wrong());
        }
        Ok(Self { table, rows })
    }
}

fn is_negative(number: &str) -> bool {
    number.trim().strip_prefix('-').is_some_and(|rest| rest.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_numbers_or_multiples() {
        let rule: RowsRule = "orders=2.5*customers".parse().unwrap();
        assert_eq!(rule.rows, TableRows::PerRow { number: 2.5, of: "customers".to_owned() });
        assert_eq!("products=10".parse::<RowsRule>().unwrap().rows, TableRows::Exactly(10));
        for wrong in ["orders", "orders=", "orders=-1*customers", "orders=5*", "=5", "a=b"] {
            assert!(wrong.parse::<RowsRule>().is_err(), "{wrong}");
        }
    }
}
