//! Generated columns: how a value follows from the other values of its row.

use crate::{Kind, Table, Values};

/// The value of a generated column as a function of its row.
///
/// Only [`crate::TupleEncoder`] computes formulas: COPY leaves generated columns to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// NULL in every row: PostgreSQL does not store virtual columns.
    Null,
    /// The value of the column at this position.
    Column(usize),
    /// The same value in every row.
    Constant(Scalar),
    /// An operator between two values; NULL if one is NULL.
    Operation {
        /// The operator.
        operator: Operator,
        /// Left operand.
        left: Box<Self>,
        /// Right operand.
        right: Box<Self>,
    },
    /// A function of one value; NULL of NULL.
    Call {
        /// The function.
        function: Function,
        /// Its argument.
        argument: Box<Self>,
    },
    /// The first value that is not NULL.
    Coalesce(Vec<Self>),
    /// A value as another type.
    Cast {
        /// The type that the value is converted to.
        to: Class,
        /// The value that is converted.
        value: Box<Self>,
    },
}

/// The value of a formula, or of a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Of `smallint`, `int` or `bigint`.
    Integer(i128),
    /// `number` × 10^-`scale`, with `scale` decimals shown.
    Decimal {
        /// All digits, as an integer.
        number: i128,
        /// Number of the digits after the decimal point.
        scale: u16,
    },
    /// Of `text` or `varchar`.
    Text(String),
}

/// The types that formulas compute with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// `smallint`, `int` and `bigint`.
    Integer,
    /// `numeric`.
    Decimal,
    /// `text` and `varchar`.
    Text,
}

/// An operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`.
    Add,
    /// `-`.
    Subtract,
    /// `*`.
    Multiply,
    /// `/` of integers.
    Divide,
    /// `%` of integers.
    Remainder,
    /// `||` of texts.
    Concatenate,
}

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// `lower`, of ASCII text.
    Lower,
    /// `upper`, of ASCII text.
    Upper,
    /// `length`, in characters.
    Length,
}

impl Formula {
    /// Whether pgrig computes the server's values for a column of this type.
    pub(crate) fn suits(&self, kind: &Kind, table: &Table) -> bool {
        match self {
            Self::Null => true,
            Self::Column(position) if table.columns[*position].kind == *kind => {
                table.columns[*position].values != Values::Server
            }
            formula => matches!(
                (formula.class(table), Class::of(kind)),
                (Some(_), Some(Class::Text)) | (Some(Class::Integer | Class::Decimal), Some(_))
            ),
        }
    }

    /// The type of its values; none if they are not computed here.
    pub(crate) fn class(&self, table: &Table) -> Option<Class> {
        match self {
            Self::Null => None,
            Self::Column(position) => {
                let column = table.columns.get(*position)?;
                (column.values != Values::Server).then(|| Class::of(&column.kind)).flatten()
            }
            Self::Constant(Scalar::Integer(_)) => Some(Class::Integer),
            Self::Constant(Scalar::Decimal { .. }) => Some(Class::Decimal),
            Self::Constant(Scalar::Text(_)) => Some(Class::Text),
            Self::Operation { operator, left, right } => {
                let class = left.class(table).filter(|class| right.class(table) == Some(*class))?;
                let is_known = match operator {
                    Operator::Add | Operator::Subtract | Operator::Multiply => class != Class::Text,
                    Operator::Divide | Operator::Remainder => class == Class::Integer,
                    Operator::Concatenate => class == Class::Text,
                };
                is_known.then_some(class)
            }
            Self::Call { function, argument } => {
                let is_text = argument.class(table) == Some(Class::Text);
                match function {
                    Function::Length => is_text.then_some(Class::Integer),
                    Function::Lower | Function::Upper => {
                        (is_text && argument.is_ascii(table)).then_some(Class::Text)
                    }
                }
            }
            Self::Coalesce(values) => {
                let class = values.first()?.class(table)?;
                values.iter().all(|value| value.class(table) == Some(class)).then_some(class)
            }
            Self::Cast { to, value } => match (value.class(table)?, to) {
                (Class::Text, Class::Integer | Class::Decimal) => None,
                _ => Some(*to),
            },
        }
    }

    /// Positions of the columns that the formula reads.
    pub(crate) fn inputs(&self) -> Vec<usize> {
        match self {
            Self::Null | Self::Constant(_) => Vec::new(),
            Self::Column(position) => vec![*position],
            Self::Operation { left, right, .. } => [left.inputs(), right.inputs()].concat(),
            Self::Call { argument: value, .. } | Self::Cast { value, .. } => value.inputs(),
            Self::Coalesce(values) => values.iter().flat_map(Self::inputs).collect(),
        }
    }

    /// Whether `lower` or `upper` is part of it: their results depend on the collation.
    pub fn folds_case(&self) -> bool {
        match self {
            Self::Null | Self::Constant(_) | Self::Column(_) => false,
            Self::Operation { left, right, .. } => left.folds_case() || right.folds_case(),
            Self::Call { function, argument } => *function != Function::Length || argument.folds_case(),
            Self::Cast { value, .. } => value.folds_case(),
            Self::Coalesce(values) => values.iter().any(Self::folds_case),
        }
    }

    /// Whether its text has only ASCII characters. All texts that are made are; given ones need not be.
    fn is_ascii(&self, table: &Table) -> bool {
        let is_ascii =
            |position: usize| table.columns[position].values.without_nulls().literals().all(str::is_ascii);
        let constants = match self {
            Self::Constant(Scalar::Text(text)) => text.is_ascii(),
            Self::Null | Self::Column(_) | Self::Constant(_) => true,
            Self::Operation { left, right, .. } => left.is_ascii(table) && right.is_ascii(table),
            Self::Call { argument: value, .. } | Self::Cast { value, .. } => value.is_ascii(table),
            Self::Coalesce(values) => values.iter().all(|value| value.is_ascii(table)),
        };
        constants && self.inputs().into_iter().all(is_ascii)
    }
}

impl Class {
    fn of(kind: &Kind) -> Option<Self> {
        match kind {
            Kind::Int2 | Kind::Int4 | Kind::Int8 => Some(Self::Integer),
            Kind::Numeric(precision) if precision.is_none_or(|known| known.scale >= 0) => Some(Self::Decimal),
            Kind::Text | Kind::Varchar(_) => Some(Self::Text),
            _ => None,
        }
    }
}
