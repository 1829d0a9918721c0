//! pgrig's version with the commit that it was built from: `0.1.0 (commit 1f0e5a3b9c2d, dirty)`.

/// The version for `--version`, run documents and reports of panics; the build script sets it.
pub(crate) const VERSION: &str = env!("PGRIG_VERSION");
