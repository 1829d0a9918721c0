//! Disposable databases: templates by content, a warm pool, leases, and the keeper that has them all.
