//! Why a model cannot be used.

use failure::{Class, Classified};
use thiserror::Error;

use crate::file::FORMAT;

/// A model that cannot be used.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ModelError {
    /// It is not TOML, or not a model.
    #[error("this is not a model: give a file that pgrig model capture wrote. {0}")]
    Syntax(String),
    /// It is SQL.
    #[error(
        "this is SQL, not a model: pgrig model capture writes a model from a database, and pgrig fill --ddl FILE reads SQL"
    )]
    Sql,
    /// A value in it is wrong.
    #[error("the model is wrong: correct it, or capture it again. {0}")]
    Value(String),
    /// A later version of pgrig wrote it.
    #[error(
        "the model has format {0}, and this version of pgrig reads formats up to {FORMAT}: use a newer pgrig"
    )]
    Newer(u32),
    /// The model contradicts itself.
    #[error("{table}{}{column}: {problem}", if .column.is_empty() { "" } else { "." })]
    Contradiction {
        /// `schema.name`.
        table: String,
        /// The column; empty for the table itself.
        column: String,
        /// The problem, and its remedy.
        problem: String,
    },
}

impl Classified for ModelError {
    fn class(&self) -> Class {
        match self {
            Self::Syntax(_) | Self::Sql | Self::Value(_) | Self::Newer(_) | Self::Contradiction { .. } => {
                Class::Request
            }
        }
    }
}
