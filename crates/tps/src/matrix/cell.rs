//! A combination of values.

use crate::matrix::axis::{Axis, Durability};
use crate::{Protocol, Request};

/// A combination of the axes' values; a field is none if there is no such axis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Level of durability.
    pub durability: Option<Durability>,
    /// Number of connections.
    pub clients: Option<usize>,
    /// Protocol of statements.
    pub protocol: Option<Protocol>,
    /// Values of the axes that are settings.
    pub settings: Vec<(String, String)>,
}

impl Cell {
    /// The product of the axes, the last one changing fastest.
    pub(super) fn all(axes: &[Axis]) -> Vec<Self> {
        let mut cells = vec![Self::default()];
        for axis in axes {
            cells = cells.iter().flat_map(|cell| cell.along(axis)).collect();
        }
        cells
    }

    fn along(&self, axis: &Axis) -> Vec<Self> {
        let with = |change: &dyn Fn(&mut Self)| {
            let mut cell = self.clone();
            change(&mut cell);
            cell
        };
        match axis {
            Axis::Durability(values) => {
                values.iter().map(|value| with(&|cell| cell.durability = Some(*value))).collect()
            }
            Axis::Clients(values) => {
                values.iter().map(|value| with(&|cell| cell.clients = Some(*value))).collect()
            }
            Axis::Protocol(values) => {
                values.iter().map(|value| with(&|cell| cell.protocol = Some(*value))).collect()
            }
            Axis::Setting { name, values } => {
                let setting = |value: &String| (name.clone(), value.clone());
                values.iter().map(|value| with(&|cell| cell.settings.push(setting(value)))).collect()
            }
        }
    }

    /// `durability=async clients=4`: the name of its trials in the run document.
    pub fn name(&self) -> String {
        let clients = self.clients.map(|clients| format!("clients={clients}"));
        let all: Vec<String> = self.without_clients().into_iter().chain(clients).collect();
        all.join(" ")
    }

    /// The name without the clients: the row of the cell in a table.
    pub fn row(&self) -> String {
        self.without_clients().join(" ")
    }

    fn without_clients(&self) -> Vec<String> {
        let durability = self.durability.map(|durability| format!("durability={}", durability.name()));
        let protocol = self.protocol.map(|protocol| format!("protocol={}", protocol.name()));
        let settings = self.settings.iter().map(|(name, value)| format!("{name}={value}"));
        durability.into_iter().chain(protocol).chain(settings).collect()
    }

    /// The cell that differs from it only in durability, which is normal.
    #[must_use]
    pub fn normal(&self) -> Self {
        Self { durability: Some(Durability::Normal), ..self.clone() }
    }

    /// All settings of the cell.
    pub(super) fn all_settings(&self) -> Vec<(String, String)> {
        let durability = self.durability.map_or(&[][..], Durability::settings);
        let durability = durability.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        durability.chain(self.settings.iter().cloned()).collect()
    }

    pub(super) fn is_unlogged(&self) -> bool {
        self.durability == Some(Durability::Unlogged)
    }

    /// The request of a trial of the cell.
    pub(super) fn request(&self, base: &Request) -> Request {
        let clients = self.clients.unwrap_or(base.clients);
        Request {
            clients,
            // More threads than clients would have nothing to do.
            jobs: base.jobs.min(clients),
            protocol: self.protocol.unwrap_or(base.protocol),
            ..base.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_the_product() {
        let axes = [
            Axis::Durability(vec![Durability::Normal, Durability::Async]),
            Axis::Clients(vec![1, 4]),
            "work_mem=4MB,64MB".parse().unwrap(),
        ];
        let cells = Cell::all(&axes);
        assert_eq!(cells.len(), 8);
        assert_eq!(cells[1].name(), "durability=normal work_mem=64MB clients=1");
        assert_eq!(cells[7].name(), "durability=async work_mem=64MB clients=4");
        assert_eq!(cells[7].row(), "durability=async work_mem=64MB");
        assert_eq!(cells[7].normal(), cells[3]);
        let settings = cells[7].all_settings();
        let names: Vec<&str> = settings.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["synchronous_commit", "work_mem"]);
    }
}
