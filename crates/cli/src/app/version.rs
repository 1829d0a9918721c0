//! pgrig's version with the commit that it was built from: `0.1.0 (commit 1f0e5a3b9c2d, dirty)`.

/// For `--version`, run documents and reports of faults; the build script makes it.
pub(crate) const VERSION: &str = env!("PGRIG_VERSION");
