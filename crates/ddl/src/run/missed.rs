//! Temporary files that no reading of [`super::space`] saw, because they were there for too short a time, or the machine had no time for
//! readings. The server counts them, so that no figure stands in their place.
//!
//! The server counts a file when it removes it (fd.c: `ReportTemporaryFileUsage`). From PostgreSQL 15 on, the counts come with a report of the
//! session, which follows its transaction. Before, a process of its own collects them, up to half a second late, so that there is one reading
//! for all statements, at the end.

use std::time::Duration;

use connect::ConnectError;
use server::Session;

use crate::outcome::StatementOutcome;
use crate::run::failure;
use crate::run::watch::Watcher;

/// The report comes with the end of this command.
const REPORT: &str = "SELECT pg_catalog.pg_stat_force_next_flush()";
/// The first release with this function.
const REPORTS: u32 = 150_000;
/// Time in which an earlier release has counted all files, and has written the counts (pgstat.c: `PGSTAT_STAT_INTERVAL`).
const COUNTED: Duration = Duration::from_millis(600);

/// See the module.
#[derive(Default)]
pub(crate) struct Missed {
    /// The place of the first statement whose files may not be counted.
    first: usize,
    /// Number of files that the server has counted so far.
    counted: i64,
}

impl Missed {
    /// Marks the statements up to the last one of these, if the server counted files since the reading before, and no reading saw any of
    /// theirs. The session is that of the migration; it is in no transaction. `is_last` tells whether no statement follows.
    pub(crate) async fn mark(
        &mut self,
        (session, watcher, version): (&Session, &Watcher, u32),
        statements: &mut [StatementOutcome],
        is_last: bool,
    ) -> Result<(), ConnectError> {
        let is_late = version < REPORTS;
        if is_late && !is_last {
            return Ok(());
        }
        let new = &mut statements[self.first..];
        self.first += new.len();
        if !new.iter().any(may_write) {
            return Ok(());
        }
        if !is_late {
            // The migration may have set a limit on the time of a statement.
            let _ = failure::refused(session.run(REPORT).await)?;
        } else if new.iter().any(is_unseen) {
            tokio::time::sleep(COUNTED).await;
        }
        let counted = watcher.temporary_files().await?;
        if counted > self.counted {
            new.iter_mut().filter(|one| is_unseen(one)).for_each(note);
        }
        self.counted = counted;
        Ok(())
    }
}

/// Whether a statement may write temporary files: it works on relations, or runs queries.
fn may_write(one: &StatementOutcome) -> bool {
    one.found.as_ref().is_some_and(|found| !found.works.is_empty() || one.statement.runs_code())
}

/// Whether no reading saw temporary files of a statement that may write some.
fn is_unseen(one: &StatementOutcome) -> bool {
    may_write(one) && one.found.as_ref().is_some_and(|found| found.space.temporary == Some(0))
}

fn note(one: &mut StatementOutcome) {
    if let Some(found) = &mut one.found {
        found.space.temporary = None;
        found.missed_temporary = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::better::tests::found;
    use crate::find::{Class, WorkKind};
    use crate::outcome::Space;
    use crate::script::Script;

    #[test]
    fn only_statements_that_may_write_files_and_show_none_are_marked() {
        let of = |sql: &str, has_works: bool, temporary: Option<u64>| {
            let script = Script::read(sql, None).unwrap();
            let mut one = StatementOutcome::of_all(&script.statements).remove(0);
            let mut found = found(Class::Scan, WorkKind::Scan);
            found.works.retain(|_| has_works);
            found.space = Space { files: 0, temporary };
            one.found = Some(found);
            is_unseen(&one)
        };
        assert!(of("CREATE INDEX ON t (a)", true, Some(0)));
        assert!(of("SELECT sorted()", false, Some(0)));
        assert!(!of("CREATE INDEX ON t (a)", true, Some(8192)));
        // The role may not see them.
        assert!(!of("CREATE INDEX ON t (a)", true, None));
        assert!(!of("ALTER TABLE t ADD a int", false, Some(0)));
    }
}
