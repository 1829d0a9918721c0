//! Judges which of some candidates is faster, from rounds in which each was timed once.
//!
//! Noise of the machine affects all arms of a round in the same way. So the differences of two arms
//! within each round are judged, not the difference of the arms' means. [`Orders`] gives the order
//! of arms, [`Rounds`] holds their times, [`judge`] makes verdicts.
//! docs/src/methodology/nanoseconds.md explains the method and the reasons; the tests
//! (`tests/paired.rs`) count how often verdicts are right.

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
