//! The method of the index that a statement builds.

use super::Parts;

/// Methods of the server whose builds never have parallel workers: B-tree has them, BRIN from PostgreSQL 17 on, GIN from 18 on (index.c:
/// `index_build`, `amcanbuildparallel`).
const ALONE: [&str; 3] = ["gist", "hash", "spgist"];

impl Parts<'_> {
    /// Whether it is CREATE INDEX with such a method.
    pub(crate) fn builds_without_workers(&self) -> bool {
        let method = self.find(2, &["using"]).map(|using| using + 1);
        let is_alone = |at: usize| ALONE.iter().any(|name| self.begins(at, &[name]));
        self.creates_index() && method.is_some_and(is_alone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_that_no_worker_builds_are_known() {
        for (sql, wanted) in [
            ("CREATE INDEX ON s.t USING gist (during)", true),
            ("create unique index concurrently i on t using HASH (a) where b > 0;", true),
            ("CREATE INDEX i ON t (a)", false),
            ("CREATE INDEX i ON t USING btree (hash)", false),
            ("CREATE INDEX i ON t USING gin (a)", false),
            ("CREATE INDEX i ON t (hash(a)) WHERE a IN (SELECT 1 FROM b JOIN c USING (hash))", false),
            ("ALTER TABLE t ALTER a TYPE int USING hash(a)", false),
            ("REINDEX TABLE t", false),
        ] {
            assert_eq!(Parts::of(sql).builds_without_workers(), wanted, "{sql}");
        }
    }
}
