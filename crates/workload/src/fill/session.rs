//! Connections of a fill, and of other verbs: opened alike.

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::connect::{ConnectError, Connection, Target};

/// Opens sessions.
pub(crate) struct Sessions<'a> {
    pub(crate) target: &'a Target,
}

impl<'a> Sessions<'a> {
    pub(crate) fn new(target: &'a Target) -> Self {
        Self { target }
    }

    /// A session without the timeouts that a role or database may have set: work takes as long
    /// as it takes, and Ctrl-C ends it.
    pub(crate) async fn open(&self) -> Result<Session, ConnectError> {
        let connection = self.target.connect().await?;
        let session = Session { connection };
        session.run(include_str!("../sql/no_timeouts.sql")).await?;
        Ok(session)
    }
}

/// One connection; its errors say what the server said.
pub struct Session {
    pub(crate) connection: Connection,
}

impl Session {
    /// A session of its own, without the timeouts that a role or database may have set.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub async fn open(target: &Target) -> Result<Self, ConnectError> {
        Sessions::new(target).open().await
    }

    /// Ends it, and returns once the server has been told.
    pub async fn close(self) {
        self.connection.close().await;
    }

    /// Runs one or several statements that return nothing of interest.
    pub(crate) async fn run(&self, sql: &str) -> Result<(), ConnectError> {
        match self.connection.client.batch_execute(sql).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.connection.explain(error).await.of_statement(sql)),
        }
    }

    /// Runs one statement and returns how many rows it touched.
    pub(crate) async fn execute(&self, sql: &str) -> Result<u64, ConnectError> {
        match self.connection.client.execute(sql, &[]).await {
            Ok(rows) => Ok(rows),
            Err(error) => Err(self.connection.explain(error).await.of_statement(sql)),
        }
    }

    /// Runs several statements in one message: together they are one transaction, unless they say
    /// otherwise.
    pub(crate) async fn run_all(&self, statements: &[String]) -> Result<(), ConnectError> {
        if statements.is_empty() { Ok(()) } else { self.run(&statements.join(";\n")).await }
    }

    /// The only row of a query.
    pub(crate) async fn row(
        &self,
        query: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Row, ConnectError> {
        match self.connection.client.query_one(query, parameters).await {
            Ok(row) => Ok(row),
            Err(error) => Err(self.connection.explain(error).await.of_statement(query)),
        }
    }

    /// The rows of a query.
    pub(crate) async fn rows(
        &self,
        query: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, ConnectError> {
        match self.connection.client.query(query, parameters).await {
            Ok(rows) => Ok(rows),
            Err(error) => Err(self.connection.explain(error).await.of_statement(query)),
        }
    }

    /// The server process behind this session.
    pub(crate) async fn pid(&self) -> Result<i32, ConnectError> {
        Ok(self.row("SELECT pg_backend_pid()", &[]).await?.get(0))
    }
}
