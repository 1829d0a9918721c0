//! A panic in a piece of work, as an error: the caller then removes the objects of the work, as after any other error.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

/// The work panicked. The panic hook has printed the details.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("pgrig stopped because of a bug")]
pub struct Panicked;

/// The work's result, or the error if it panics.
///
/// # Errors
/// If the work fails or panics.
pub async fn caught<T, E: From<Panicked>>(work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| Err(Panicked.into()))
}

/// Panics here if the environment names this point. For tests of the work after a panic; only in
/// builds with assertions.
///
/// # Panics
/// If `PGRIG_TEST_PANIC` is this name.
#[track_caller]
pub fn point(name: &str) {
    let is_meant = || std::env::var_os("PGRIG_TEST_PANIC").is_some_and(|wanted| wanted == name);
    assert!(!cfg!(debug_assertions) || !is_meant(), "PGRIG_TEST_PANIC={name}");
}
