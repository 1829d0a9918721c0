//! Sessions: the connections of all verbs, opened alike.

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use connect::{ConnectError, Connection, Target};

/// Opens sessions of one target.
#[derive(Clone, Copy)]
pub struct Sessions<'a> {
    /// Server and database to connect to.
    pub target: &'a Target,
}

impl<'a> Sessions<'a> {
    /// Opens sessions of this target.
    pub fn new(target: &'a Target) -> Self {
        Self { target }
    }

    /// A session without the timeouts that a role or database may have set: work takes as long
    /// as it takes, and Ctrl-C ends it. It quotes names alike for all roles and databases.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub async fn open(&self) -> Result<Session, ConnectError> {
        let connection = self.target.connect().await?;
        let session = Session { connection };
        session.run(include_str!("sql/session.sql")).await?;
        Ok(session)
    }
}

/// One connection. Its errors contain the server's messages.
pub struct Session {
    /// The connection, for calls that a session does not offer.
    pub connection: Connection,
}

impl Session {
    /// A session of its own, without the timeouts that a role or database may have set.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub async fn open(target: &Target) -> Result<Self, ConnectError> {
        Sessions::new(target).open().await
    }

    /// Ends the session, and returns once the Terminate message is sent.
    pub async fn close(self) {
        self.connection.close().await;
    }

    /// Runs one or several statements that return nothing of interest.
    ///
    /// # Errors
    /// If the server refuses, or is gone.
    pub async fn run(&self, sql: &str) -> Result<(), ConnectError> {
        match self.connection.client.batch_execute(sql).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.connection.explain(error).await.of_statement(sql)),
        }
    }

    /// Runs one statement and returns how many rows it touched.
    ///
    /// # Errors
    /// If the server refuses, or is gone.
    pub async fn execute(&self, sql: &str) -> Result<u64, ConnectError> {
        match self.connection.client.execute(sql, &[]).await {
            Ok(rows) => Ok(rows),
            Err(error) => Err(self.connection.explain(error).await.of_statement(sql)),
        }
    }

    /// Runs several statements in one message: together they are one transaction, unless they say
    /// otherwise.
    ///
    /// # Errors
    /// If the server refuses, or is gone.
    pub async fn run_all(&self, statements: &[String]) -> Result<(), ConnectError> {
        if statements.is_empty() { Ok(()) } else { self.run(&statements.join(";\n")).await }
    }

    /// The only row of a query.
    ///
    /// # Errors
    /// If the server refuses, or is gone.
    pub async fn row(&self, query: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Row, ConnectError> {
        match self.connection.client.query_one(query, parameters).await {
            Ok(row) => Ok(row),
            Err(error) => Err(self.connection.explain(error).await.of_statement(query)),
        }
    }

    /// The rows of a query.
    ///
    /// # Errors
    /// If the server refuses, or is gone.
    pub async fn rows(
        &self,
        query: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, ConnectError> {
        match self.connection.client.query(query, parameters).await {
            Ok(rows) => Ok(rows),
            Err(error) => Err(self.connection.explain(error).await.of_statement(query)),
        }
    }

    /// The current role, quoted for SQL.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub async fn role(&self) -> Result<String, ConnectError> {
        Ok(self.row("SELECT quote_ident(current_user)", &[]).await?.get(0))
    }

    /// The ID of the server process behind this session.
    ///
    /// # Errors
    /// If the server refuses, or is gone.
    pub async fn pid(&self) -> Result<i32, ConnectError> {
        Ok(self.row("SELECT pg_backend_pid()", &[]).await?.get(0))
    }

    /// Takes pgrig's advisory lock of that name for this session. Otherwise returns the server
    /// process that holds it (0 if the role cannot see it).
    ///
    /// # Errors
    /// If the server refuses, or is gone.
    pub async fn try_lock(&self, name: &str) -> Result<Option<i32>, ConnectError> {
        Ok(self.row(include_str!("sql/try_lock.sql"), &[&name]).await?.get("holder"))
    }

    /// Takes pgrig's advisory lock of that name for this session together with others that take it so. Otherwise returns
    /// the server process that holds it alone (0 if the role cannot see it).
    ///
    /// # Errors
    /// If the server refuses, or is gone.
    pub async fn try_share_lock(&self, name: &str) -> Result<Option<i32>, ConnectError> {
        let query =
            include_str!("sql/try_lock.sql").replace("pg_try_advisory_lock", "pg_try_advisory_lock_shared");
        Ok(self.row(&query, &[&name]).await?.get("holder"))
    }

    /// Describes the session that holds a lock for which the server process `pid` waits, if there is one.
    ///
    /// # Errors
    /// If the server refuses, or is gone.
    pub async fn lock_holder(&self, pid: i32) -> Result<Option<String>, ConnectError> {
        let rows = self.rows(include_str!("sql/lock_holder.sql"), &[&pid]).await?;
        Ok(rows.first().map(|row| row.get("holder")))
    }
}

/// One row of a query about the server.
///
/// # Errors
/// If the server refuses, or is gone.
pub async fn ask(
    connection: &Connection,
    query: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Row, ConnectError> {
    match connection.client.query_one(query, parameters).await {
        Ok(row) => Ok(row),
        Err(error) => Err(connection.explain(error).await),
    }
}

/// Runs statements on a connection, without reading rows.
///
/// # Errors
/// If the server refuses, or is gone.
pub async fn run_sql(connection: &Connection, sql: &str) -> Result<(), ConnectError> {
    match connection.client.batch_execute(sql).await {
        Ok(()) => Ok(()),
        Err(error) => Err(connection.explain(error).await),
    }
}
