//! The faster of some candidates, judged from rounds in which each was timed once.
//!
//! A noisy machine is noisy for all arms of a round alike, so what is looked at is each round's difference of
//! two arms, never an arm's mean beside another one's. [`Orders`] says in which order arms run, [`Rounds`]
//! holds what they took, [`judge`] says what that means. docs/src/methodology/nanoseconds.md has it in prose, and why; the tests
//! (`tests/paired.rs`) count how often it is right.

mod bootstrap;
mod drift;
mod estimate;
mod judgement;
mod order;
mod rounds;

pub use bootstrap::trimmed_mean;
pub use estimate::Estimate;
pub use judgement::{FEWEST_ROUNDS, Judged, Judgement, judge};
pub use order::Orders;
pub use rounds::{Arm, Rounds};
