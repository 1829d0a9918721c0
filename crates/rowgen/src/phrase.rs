//! What a column holds, in a phrase for people.

use std::fmt;

use crate::{Distribution, Keys, Reference, Values};

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Server => f.write_str("left to the server"),
            Self::Null => f.write_str("NULL"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Text(text) => write!(f, "'{text}'"),
            Self::Serial { .. } => f.write_str("ascending"),
            Self::Group { .. } => f.write_str("ascending, in groups"),
            Self::Unique(_) => f.write_str("unique"),
            Self::Shuffle { .. } => f.write_str("unique, shuffled"),
            Self::Between { .. } => f.write_str("evenly between two limits"),
            Self::Drawn(distribution) => f.write_str(match distribution {
                Distribution::Uniform { .. } => "evenly between two limits",
                Distribution::Normal { .. } => "normally distributed",
                Distribution::Exponential { .. } => "exponentially distributed",
                Distribution::Zipf { .. } => "Zipf-distributed",
            }),
            Self::List(list) => write!(f, "one of {} values", list.len()),
            Self::Cycle(list) => write!(f, "{} values in turn", list.len()),
            Self::Payload { payload, .. } => write!(f, "{} characters", payload.name()),
            Self::Reference(Reference { keys, .. }) => match &**keys {
                Keys::Interval { .. } => write!(f, "one of {} referenced keys", keys.count()),
                Keys::Listed(_) => write!(f, "one of {} referenced keys, a sample", keys.count()),
            },
            Self::Nulls { fraction, values } => write!(f, "{values}; NULL in {:.0} %", fraction * 100.0),
        }
    }
}
