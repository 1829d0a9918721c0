//! A value that changes with another one: a rate over time, a latency over the size of a table.

use serde::{Deserialize, Serialize};

use crate::run::Unit;

/// Named points, in the order in which they were observed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name of the quantity: `rows-sent`, `lookup-p50`, …
    pub name: String,
    /// Unit of the first number of a point.
    pub x_unit: Unit,
    /// Unit of the second.
    pub y_unit: Unit,
    /// x and y; x never falls.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// A series without points.
    pub fn new(name: &str, x_unit: Unit, y_unit: Unit) -> Self {
        Self { name: name.to_owned(), x_unit, y_unit, points: Vec::new() }
    }
}
