//! The observer of a run.

use crate::outcome::Second;

/// Is told of a run's progress, from one thread.
pub trait Observer: Sync {
    /// A second is over.
    fn second(&self, second: &Second);

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
    /// Script and command, from 0.
    pub at: (usize, usize),
    /// Type and value, as pgbench shows them: `int 5`.
    pub value: String,
}
