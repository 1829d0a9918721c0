//! The statements of the open transaction whose locks have not ended.

use crate::edge::Edge;

/// See the module.
pub(crate) struct Open<T> {
    statements: Vec<T>,
    /// Savepoints of the transaction, each with the number of open statements before it.
    savepoints: Vec<(String, usize)>,
}

impl<T> Open<T> {
    pub(crate) fn new() -> Self {
        Self { statements: Vec::new(), savepoints: Vec::new() }
    }

    /// Adds a statement that ran, with its effect on the transaction. Returns those whose locks end with it.
    pub(crate) fn add(&mut self, one: T, edge: Option<Edge>, is_in_transaction: bool) -> Vec<T> {
        self.statements.push(one);
        let from = self.first_released(edge, is_in_transaction);
        self.statements.split_off(from)
    }

    /// Those whose locks last until the session ends.
    pub(crate) fn rest(self) -> Vec<T> {
        self.statements
    }

    /// The place of the first whose locks end with a statement; behind the last one if none do.
    fn first_released(&mut self, edge: Option<Edge>, is_in_transaction: bool) -> usize {
        if !is_in_transaction || edge.as_ref().is_some_and(Edge::ends) {
            self.savepoints.clear();
            return 0;
        }
        let none = self.statements.len();
        match edge {
            Some(Edge::Saves(name)) => self.savepoints.push((name, none)),
            Some(Edge::Releases(name)) => {
                if let Some(at) = self.savepoint(&name) {
                    self.savepoints.truncate(at);
                }
            }
            Some(Edge::Returns(name)) => {
                if let Some(at) = self.savepoint(&name) {
                    self.savepoints.truncate(at + 1);
                    return self.savepoints[at].1;
                }
            }
            _ => {}
        }
        none
    }

    /// The place of the last savepoint of this name.
    fn savepoint(&self, name: &str) -> Option<usize> {
        self.savepoints.iter().rposition(|(saved, _)| saved == name)
    }
}
