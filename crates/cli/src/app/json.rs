//! Values and texts of JSON.

use std::io;

use serde::Serialize;
use serde_json::Value;

use crate::app::failure::Failure;

/// The value as JSON.
///
/// # Errors
/// If it has no form in JSON.
pub(crate) fn value(of: impl Serialize) -> Result<Value, Failure> {
    Ok(serde_json::to_value(of).map_err(io::Error::from)?)
}

/// The value as text for people and programs.
///
/// # Errors
/// If it has no form in JSON.
pub(crate) fn pretty(of: impl Serialize) -> Result<String, Failure> {
    Ok(serde_json::to_string_pretty(&of).map_err(io::Error::from)?)
}
