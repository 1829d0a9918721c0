//! Statements with CONCURRENTLY that drop indexes or detach partitions while other sessions use their tables; and those with NOWAIT, which give up
//! if another session has a lock.

use super::acts::body;
use super::{Parts, names};

impl Parts<'_> {
    /// Whether it is DROP INDEX or REINDEX with CONCURRENTLY.
    pub(crate) fn drops_indexes_concurrently(&self) -> bool {
        self.drops_index_concurrently() || self.reindexes_concurrently()
    }

    /// Whether it is DROP INDEX CONCURRENTLY.
    pub(crate) fn drops_index_concurrently(&self) -> bool {
        self.begins(0, &["drop", "index", "concurrently"])
    }

    /// Whether it is ALTER TABLE … DETACH PARTITION … CONCURRENTLY.
    pub(crate) fn detaches_concurrently(&self) -> bool {
        let [(from, to)] = self.actions(0)[..] else { return false };
        self.begins(from, &["detach", "partition"]) && self.begins(to - 1, &["concurrently"])
    }

    /// Whether a statement, or the body of a DO, has NOWAIT: it fails where it would wait, or tries again until nobody has the lock.
    pub(crate) fn gives_up(sql: &str) -> bool {
        let parts = Parts::of(sql);
        let is_within = || Parts::of(body(&parts).unwrap_or_default()).has_nowait();
        parts.has_nowait() || (parts.begins(0, &["do"]) && is_within())
    }

    fn has_nowait(&self) -> bool {
        (0..self.tokens.len()).any(|at| self.begins(at, &["nowait"]))
    }

    /// CONCURRENTLY stands behind the kind of the object, or is an option in parentheses.
    fn reindexes_concurrently(&self) -> bool {
        let Some((options, _)) = self.reindex() else { return false };
        let kinds = ["table", "index", "schema", "database", "system"];
        if self.find(1, &kinds).is_some_and(|word| self.begins(word + 1, &["concurrently"])) {
            return true;
        }
        let words: Vec<String> = names(options).collect();
        let option = words.iter().position(|word| word == "concurrently");
        let is_off = |word: &String| ["off", "false"].contains(&word.as_str());
        option.is_some_and(|at| !words.get(at + 1).is_some_and(is_off))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_dropped_concurrently_by_two_statements() {
        for (sql, wanted) in [
            ("DROP INDEX CONCURRENTLY IF EXISTS s.i", true),
            ("drop index concurrently i, j;", true),
            ("DROP INDEX \"concurrently\"", false),
            ("REINDEX INDEX CONCURRENTLY i", true),
            ("REINDEX (VERBOSE, CONCURRENTLY) TABLE t", true),
            ("REINDEX (CONCURRENTLY false, VERBOSE) TABLE t", false),
            ("REINDEX TABLE t", false),
            ("CREATE INDEX CONCURRENTLY ON t (a)", false),
        ] {
            assert_eq!(Parts::of(sql).drops_indexes_concurrently(), wanted, "{sql}");
        }
    }

    #[test]
    fn statements_that_do_not_wait_are_known() {
        for (sql, wanted) in [
            ("DO $$ BEGIN LOCK TABLE t NOWAIT; COMMIT; END $$", true),
            ("ALTER INDEX ALL IN TABLESPACE a SET TABLESPACE b nowait;", true),
            ("DO $$ BEGIN LOCK TABLE t; COMMIT; END -- NOWAIT\n$$", false),
            ("DO $$ BEGIN RAISE NOTICE 'nowait'; COMMIT; END $$", false),
            ("CREATE INDEX CONCURRENTLY ON t (a)", false),
            ("DO ''", false),
        ] {
            assert_eq!(Parts::gives_up(sql), wanted, "{sql}");
        }
    }

    #[test]
    fn a_partition_is_detached_concurrently() {
        for (sql, wanted) in [
            ("ALTER TABLE IF EXISTS s.t DETACH PARTITION s.p CONCURRENTLY;", true),
            ("alter table t detach partition \"concurrently\"", false),
            ("ALTER TABLE t DETACH PARTITION p", false),
            ("ALTER TABLE t DETACH PARTITION p FINALIZE", false),
            ("DROP INDEX CONCURRENTLY i", false),
            ("ALTER TABLE t", false),
        ] {
            assert_eq!(Parts::of(sql).detaches_concurrently(), wanted, "{sql}");
        }
    }
}
