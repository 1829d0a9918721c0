//! Transactions that hold up a statement which runs outside of transactions, so that its locks can be read.
//!
//! Such a statement commits on its way, and its locks are gone at its end. The first blocker has ACCESS EXCLUSIVE locks on
//! all tables: the statement waits for its first lock, and pg_locks shows the mode. Then it goes back to SHARE UPDATE EXCLUSIVE, for
//! which all locks wait that conflict with DDL, and then to ROW EXCLUSIVE and an old snapshot, for which CONCURRENTLY waits
//! between its phases (indexcmds.c: WaitForLockers, WaitForOlderSnapshots). At each of these waits the next blocker
//! begins before the last one ends, so that each phase waits again.

use connect::{ConnectError, Target};
use server::Session;

/// Most waits that are caused: VACUUM of a whole database would meet every table.
const MOST: usize = 16;

/// See the module.
pub(crate) struct Blockers<'a> {
    target: &'a Target,
    /// Tables, as SQL.
    tables: &'a [String],
    current: Option<Session>,
    /// Savepoints before the stronger locks of the current one.
    savepoints: Vec<&'static str>,
    /// Blockers that were released.
    released: usize,
}

/// The stronger locks of the first blocker, the weakest first, each after a savepoint.
const STRONGER: [(&str, &str); 2] =
    [("before_ddl", "SHARE UPDATE EXCLUSIVE"), ("before_all", "ACCESS EXCLUSIVE")];

impl<'a> Blockers<'a> {
    /// The first one, with strong locks on the tables.
    pub(crate) async fn begin(target: &'a Target, tables: &'a [String]) -> Result<Self, ConnectError> {
        let mut this = Self { target, tables, current: None, savepoints: Vec::new(), released: 0 };
        if !tables.is_empty()
            && let Some(session) = this.weak().await?
        {
            for (savepoint, mode) in STRONGER {
                let lock = format!("LOCK TABLE {} IN {mode} MODE", tables.join(", "));
                session.run(&format!("SAVEPOINT {savepoint}; {lock}")).await?;
                this.savepoints.push(savepoint);
            }
            this.current = Some(session);
        }
        Ok(this)
    }

    /// A session with ROW EXCLUSIVE locks and a snapshot; none if the statement is in the way.
    async fn weak(&self) -> Result<Option<Session>, ConnectError> {
        let session = Session::open(self.target).await?;
        session.run("BEGIN ISOLATION LEVEL REPEATABLE READ").await?;
        session.row("SELECT 1", &[]).await?;
        let lock = format!("LOCK TABLE {} IN ROW EXCLUSIVE MODE NOWAIT", self.tables.join(", "));
        match session.run(&lock).await {
            Ok(()) => Ok(Some(session)),
            Err(error) if error.sqlstate().is_some() => {
                session.close().await;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Lets the statement go on to its next wait.
    pub(crate) async fn release(&mut self) -> Result<(), ConnectError> {
        let Some(current) = self.current.take() else { return Ok(()) };
        if let Some(savepoint) = self.savepoints.pop() {
            current.run(&format!("ROLLBACK TO SAVEPOINT {savepoint}")).await?;
            self.current = Some(current);
            return Ok(());
        }
        self.released += 1;
        self.current = if self.released < MOST { self.weak().await? } else { None };
        current.run("ROLLBACK").await?;
        current.close().await;
        Ok(())
    }

    /// Ends the last one.
    pub(crate) async fn end(&mut self) {
        if let Some(current) = self.current.take() {
            current.close().await;
        }
    }
}
