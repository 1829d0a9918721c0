//! The observer of a run.

use crate::outcome::{Moves, Second};

/// Observer of a run's progress; one thread calls it.
pub trait Observer: Sync {
    /// A second is over.
    fn second(&self, second: &Second);

    /// The parts of these numbers have not come. Ignored by default.
    fn waiting(&self, parts: &[usize]) {
        let _ = parts;
    }

    /// In this second, a client went on on another target; called for the first of each second and target. Ignored by
    /// default.
    fn moved(&self, moves: &Moves) {
        let _ = moves;
    }

    /// A script called `debug()`. Ignored by default.
    fn debugged(&self, debugged: &Debugged) {
        let _ = debugged;
    }
}

/// The arguments of a script's `debug()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Debugged {
    /// The client that carries the script out, from 0.
    pub client: usize,
    /// Indexes of the script and of its command, both from 0.
    pub at: (usize, usize),
    /// Type and value, as pgbench shows them: `int 5`.
    pub value: String,
}
