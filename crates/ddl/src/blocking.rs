//! The locks of a statement, as other sessions meet them.

use crate::find::LockMode;
use crate::outcome::Effects;

impl Effects {
    /// The strongest lock that it takes on a relation that others may use.
    pub fn strongest(&self) -> Option<LockMode> {
        self.locks.iter().filter(|lock| !lock.is_new && !lock.is_dead).map(|lock| lock.mode).max()
    }

    /// The strongest lock that is held while it runs: one that it takes, or one of its transaction's.
    pub fn strongest_held(&self) -> Option<LockMode> {
        self.strongest().max(self.inherited.iter().map(|lock| lock.mode).max())
    }

    /// The work of others that is blocked while it runs, as text for people; none if it blocks neither reads nor writes.
    pub fn blocks(&self) -> Option<&'static str> {
        let inherited = self.inherited.iter().filter(|lock| lock.blocks().is_some()).map(|lock| lock.mode);
        self.blocking().max(inherited.max()).and_then(LockMode::blocks)
    }

    /// The strongest lock that it takes and that blocks reads or writes of others.
    pub(crate) fn blocking(&self) -> Option<LockMode> {
        let taken = self.locks.iter().filter(|lock| !lock.is_new && lock.blocks().is_some());
        taken.map(|lock| lock.mode).max()
    }

    /// Whether reads or writes of the tables on which it works are blocked while it runs.
    pub(crate) fn blocks_on_its_tables(&self) -> bool {
        self.blocking().max(self.kept_on_own).and_then(LockMode::blocks).is_some()
    }
}
