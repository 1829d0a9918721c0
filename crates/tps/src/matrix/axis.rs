//! Axes of a matrix: the parameters that vary.

use std::fmt;
use std::str::FromStr;

use crate::Protocol;

/// Levels of durability, after the article "Speeding Up Integration Tests with PostgreSQL".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Normal durability: a crash loses no committed transaction.
    Normal,
    /// fsync, full_page_writes and synchronous_commit are off: a crash of the machine may cost the whole cluster.
    Dangerous,
    /// synchronous_commit is off in the clients' sessions: a crash may cost their last transactions.
    Async,
    /// The tables are unlogged: a crash empties them.
    Unlogged,
}

impl Durability {
    /// All there are, in the article's order.
    pub const ALL: [Self; 4] = [Self::Normal, Self::Dangerous, Self::Async, Self::Unlogged];

    /// As the command line spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Dangerous => "dangerous",
            Self::Async => "async",
            Self::Unlogged => "unlogged",
        }
    }

    /// Settings of this level.
    pub fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Normal | Self::Unlogged => &[],
            Self::Dangerous => {
                &[("fsync", "off"), ("full_page_writes", "off"), ("synchronous_commit", "off")]
            }
            Self::Async => &[("synchronous_commit", "off")],
        }
    }
}

/// A parameter that is varied, and its values: at least one, all different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Axis {
    /// `durability`: levels of durability, each with its settings and kind of tables.
    Durability(Vec<Durability>),
    /// `clients`: instead of `-c`.
    Clients(Vec<usize>),
    /// `protocol`: instead of `-M`.
    Protocol(Vec<Protocol>),
    /// A setting of the server.
    Setting {
        /// Name of the setting.
        name: String,
        /// Values of the setting: at least one, all different.
        values: Vec<String>,
    },
}

impl Axis {
    /// Reads an axis of settings: `work_mem=4MB,64MB`.
    fn setting(text: &str) -> Result<Self, String> {
        let (name, values) =
            text.split_once('=').ok_or("give NAME=VALUE,VALUE, for example work_mem=4MB,64MB")?;
        let name = name.trim();
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        if name.contains(',') {
            return Err(format!(
                "{name:?} is not an axis: give --matrix once for each axis, for example --matrix durability --matrix clients=1,2"
            ));
        }
        if name.is_empty() || !name.chars().all(part) {
            return Err(format!(
                "{name:?} is not the name of a setting: give NAME=VALUE,VALUE with a name as in pg_settings, for example \
                 work_mem=4MB,64MB"
            ));
        }
        let values = list(name, values, |value| Ok::<_, String>(value.to_owned()))?;
        Ok(Self::Setting { name: name.to_ascii_lowercase(), values })
    }

    /// Its name. No two axes of a matrix have the same name.
    pub fn name(&self) -> &str {
        match self {
            Self::Durability(_) => "durability",
            Self::Clients(_) => "clients",
            Self::Protocol(_) => "protocol",
            Self::Setting { name, .. } => name,
        }
    }

    /// Its values, as the command line spells them.
    pub fn values(&self) -> Vec<String> {
        match self {
            Self::Durability(values) => values.iter().map(|value| value.name().to_owned()).collect(),
            Self::Clients(values) => values.iter().map(ToString::to_string).collect(),
            Self::Protocol(values) => values.iter().map(|value| value.name().to_owned()).collect(),
            Self::Setting { values, .. } => values.clone(),
        }
    }

    /// Names of the server's settings that it changes.
    pub fn settings(&self) -> Vec<&str> {
        match self {
            Self::Durability(values) => {
                values.iter().flat_map(|durability| durability.settings()).map(|(name, _)| *name).collect()
            }
            Self::Clients(_) | Self::Protocol(_) => Vec::new(),
            Self::Setting { name, .. } => vec![name],
        }
    }
}

impl FromStr for Axis {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, values) = match text.split_once('=') {
            Some((name, values)) => (name.trim(), Some(values)),
            None => (text.trim(), None),
        };
        let wanted = |example: &str| format!("give the axis a value: --matrix {example}");
        let meant = |axis: &str| {
            let values = values.map_or_else(String::new, |values| format!("={values}"));
            Err(format!("{name:?} is not an axis: give --matrix {axis}{values}"))
        };
        match name {
            "durability" => Ok(Self::Durability(match values {
                None => Durability::ALL.to_vec(),
                Some(values) => list(name, values, durability)?,
            })),
            "clients" => {
                Ok(Self::Clients(list(name, values.ok_or_else(|| wanted("clients=1,2,4"))?, clients)?))
            }
            "protocol" => {
                let values = values.ok_or_else(|| wanted("protocol=simple,prepared"))?;
                Ok(Self::Protocol(list(name, values, protocol)?))
            }
            "client" | "connections" if values.is_some() => meant("clients"),
            "protocols" | "querymode" if values.is_some() => meant("protocol"),
            _ if values.is_some() => Self::setting(text),
            _ => Err(format!(
                "{name:?} is not an axis: give durability, clients=1,2,4, protocol=simple,prepared, or a setting \
                 of the server as NAME=VALUE,VALUE"
            )),
        }
    }
}

fn list<T: PartialEq, E: fmt::Display>(
    name: &str,
    values: &str,
    read: impl Fn(&str) -> Result<T, E>,
) -> Result<Vec<T>, String> {
    let mut list = Vec::new();
    for text in values.split(',').map(str::trim) {
        if text.is_empty() {
            return Err(format!("{name}={values}: a value is empty: write values with commas between them"));
        }
        let value = read(text).map_err(|error| format!("{text:?} {error}"))?;
        if list.contains(&value) {
            return Err(format!("{name}={values}: {text} is given twice: leave one of them out"));
        }
        list.push(value);
    }
    Ok(list)
}

fn durability(text: &str) -> Result<Durability, &'static str> {
    let found = Durability::ALL.into_iter().find(|durability| durability.name() == text);
    found.ok_or("is not a level of durability: give normal, dangerous, async or unlogged")
}

fn clients(text: &str) -> Result<usize, &'static str> {
    text.parse().ok().filter(|clients| *clients > 0).ok_or("is not a number of clients: give 1 or more")
}

fn protocol(text: &str) -> Result<Protocol, &'static str> {
    let all = [Protocol::Simple, Protocol::Extended, Protocol::Prepared];
    let found = all.into_iter().find(|protocol| protocol.name() == text);
    found.ok_or("is not a protocol: give simple, extended or prepared")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_read() {
        let read = |text: &str| text.parse::<Axis>().unwrap();
        assert_eq!(read("durability"), Axis::Durability(Durability::ALL.to_vec()));
        assert_eq!(
            read("durability=async, normal"),
            Axis::Durability(vec![Durability::Async, Durability::Normal])
        );
        assert_eq!(read("clients=4,1"), Axis::Clients(vec![4, 1]));
        assert_eq!(
            read("protocol=simple,prepared"),
            Axis::Protocol(vec![Protocol::Simple, Protocol::Prepared])
        );
        let values = vec!["4MB".to_owned(), "64MB".to_owned()];
        assert_eq!(read(" Work_Mem=4MB,64MB"), Axis::Setting { name: "work_mem".to_owned(), values });
    }

    #[test]
    fn what_is_none_is_refused() {
        for (text, told) in [
            ("clients", "--matrix clients=1,2,4"),
            ("clients=0", "1 or more"),
            ("clients=1,1", "1 is given twice"),
            ("clients=1,,2", "a value is empty"),
            ("durability=safe", "\"safe\" is not a level of durability: give normal"),
            ("client=1,2", "\"client\" is not an axis: give --matrix clients=1,2"),
            ("durability,clients=1,2", "give --matrix once for each axis"),
            ("work mem=1", "with a name as in pg_settings"),
            ("work_mem", "NAME=VALUE,VALUE"),
        ] {
            let error = text.parse::<Axis>().unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
        for text in ["work_mem", "=1", "work mem=1", "work_mem="] {
            Axis::setting(text).unwrap_err();
        }
    }
}
