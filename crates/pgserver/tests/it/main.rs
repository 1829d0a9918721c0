//! The integration tests of this crate, one program.

mod accidents;
mod lifecycle;
mod places;
mod recovery;
mod support;

#[test]
#[ignore = "not a test: what other processes run"]
fn other_process() {
    support::other_process();
}
