//! The plan of a run: scripts parsed, the scale known, the tables prepared.

use futures_util::future::LocalBoxFuture;
use script::{Scripts, Source};

use crate::error::TpsError;
use crate::request::{Protocol, Request};
use connect::Connection;

/// A checked request, ready to be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The request that this plan carries out.
    pub request: Request,
    /// The scripts, parsed.
    pub scripts: Scripts,
    /// The variable `scale`.
    pub scale: i64,
    /// Warnings before the start.
    pub warnings: Vec<String>,
}

/// A request whose scripts are parsed: all that can be known without a server.
#[derive(Clone, Debug)]
pub struct Parsed {
    request: Request,
    scripts: Scripts,
}

impl Plan {
    /// [`Plan::parse`] and [`Parsed::plan`] in one.
    ///
    /// # Errors
    /// As [`Plan::parse`] and [`Parsed::plan`].
    pub fn new(connection: &Connection, request: Request) -> LocalBoxFuture<'_, Result<Self, TpsError>> {
        Box::pin(async move { Self::parse(request)?.plan(connection).await })
    }

    /// The same plan for a trial, whose parts synchronise again. Numbers of trials begin with 1.
    #[must_use]
    pub fn of_trial(&self, number: usize) -> Self {
        let mut plan = self.clone();
        plan.request = plan.request.of_trial(number);
        if let Some(part) = &mut plan.request.part {
            part.trial = number;
        }
        plan
    }

    /// Checks the request and parses its scripts, before any server is started or asked.
    ///
    /// # Errors
    /// If the request cannot work, or a script is wrong.
    pub fn parse(request: Request) -> Result<Parsed, TpsError> {
        request.check()?;
        let scripts = Scripts::parse(&request.sources)?;
        if scripts.total_weight() == 0 {
            return Err(TpsError::Request("all scripts have weight 0: give one a weight (-f FILE@1)"));
        }
        let piped = scripts.iter().find(|script| script.has_pipeline());
        if let (Some(script), Protocol::Simple) = (piped, request.protocol) {
            return Err(TpsError::Pipeline { script: script.name().to_owned() });
        }
        Ok(Parsed { request, scripts })
    }

    /// Prepares the tables as pgbench does, unless the request has no vacuum: vacuums the small tables, and empties
    /// the history. A failure is reported and does not stop the run, as in pgbench.
    ///
    /// # Errors
    /// If the connection is lost.
    pub fn prepare<'a>(
        &'a self,
        connection: &'a Connection,
    ) -> LocalBoxFuture<'a, Result<Vec<String>, TpsError>> {
        Box::pin(async move {
            let mut failures = Vec::new();
            if !self.request.vacuum {
                return Ok(failures);
            }
            for (table, statement) in PREPARATION {
                if !exists(connection, table).await? {
                    continue;
                }
                if let Err(error) = connection.client.batch_execute(statement).await {
                    match connection.explain(error).await {
                        error @ connect::ConnectError::Query { .. } => {
                            failures.push(format!(
                                "pgrig did not run {statement}: {error}; to leave it out, give -n"
                            ));
                        }
                        lost => return Err(lost.into()),
                    }
                }
            }
            Ok(failures)
        })
    }
}

/// A schema with pgbench's tables that the role may use.
const SCHEMA: &str = "SELECT (SELECT quote_ident(n.nspname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                      WHERE c.relname = 'pgbench_branches' AND c.relkind IN ('r', 'p') \
                      AND has_schema_privilege(n.oid, 'USAGE') ORDER BY 1 LIMIT 1)";
/// The rights that the script select-only needs; pgrig reads the scale from pgbench_branches.
const GRANT_TO_READ: &str = "GRANT SELECT ON pgbench_accounts, pgbench_branches";
/// The rights that all built-in scripts need.
const GRANT_TO_WRITE: &str =
    "GRANT SELECT, INSERT, UPDATE ON pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history";

/// Statements that prepare pgbench's tables, with the table of each.
const PREPARATION: [(&str, &str); 3] = [
    ("pgbench_branches", "VACUUM \"pgbench_branches\""),
    ("pgbench_tellers", "VACUUM \"pgbench_tellers\""),
    ("pgbench_history", "TRUNCATE \"pgbench_history\""),
];

impl Parsed {
    /// Whether one of the scripts is a built-in one that needs pgbench's tables.
    pub fn needs_tables(&self) -> bool {
        let is_builtin = |source: &Source| Source::builtins().any(|(_, name)| name == source.name());
        self.request.sources.iter().any(is_builtin)
    }

    /// The GRANT, without the role, of the rights that the built-in scripts need.
    fn grant(&self) -> &'static str {
        let changes_rows = |source: &Source| {
            Source::builtins().any(|(option, name)| name == source.name() && option != "select-only")
        };
        if self.request.sources.iter().any(changes_rows) { GRANT_TO_WRITE } else { GRANT_TO_READ }
    }

    /// The scripts, parsed.
    pub fn scripts(&self) -> &Scripts {
        &self.scripts
    }

    /// Asks the server for the scale, where built-in scripts need it. Nothing is changed.
    ///
    /// # Errors
    /// If pgbench's tables are needed and not there, or the server cannot be asked.
    pub fn plan(self, connection: &Connection) -> LocalBoxFuture<'_, Result<Plan, TpsError>> {
        Box::pin(async move {
            let asked = self.request.scale;
            let mut warnings = Vec::new();
            let scale = if self.needs_tables() {
                let found = branches(connection, self.grant()).await?;
                if let Some(asked) = asked.filter(|asked| *asked != found) {
                    warnings.push(format!(
                    "--scale {asked} is ignored: the built-in scripts take the number of rows of pgbench_branches ({found}) \
                     as the scale"
                ));
                }
                found
            } else {
                asked.unwrap_or(1)
            };
            let Self { request, scripts } = self;
            Ok(Plan { request, scripts, scale, warnings })
        })
    }
}

/// The scale that pgbench's tables were filled with. `grant` gives the rights that the scripts need.
async fn branches(connection: &Connection, grant: &'static str) -> Result<i64, TpsError> {
    if !exists(connection, "pgbench_branches").await? {
        let database = value(connection, "SELECT current_database()::text", &[]).await?;
        let elsewhere: Option<String> = value(connection, SCHEMA, &[]).await?;
        let is_standby: bool = value(connection, "SELECT pg_is_in_recovery()", &[]).await?;
        return Err(match elsewhere {
            Some(schema) => TpsError::off_path(database, schema),
            None if is_standby => TpsError::NoTablesOnStandby { database },
            None => TpsError::NoTables { database },
        });
    }
    let may_read = "SELECT has_table_privilege(to_regclass('pgbench_branches'), 'SELECT')";
    if !value::<bool>(connection, may_read, &[]).await? {
        let role = value(connection, "SELECT quote_ident(current_user)", &[]).await?;
        return Err(TpsError::Privilege { role, grant });
    }
    match value(connection, "SELECT count(*) FROM \"pgbench_branches\"", &[]).await? {
        0 => Err(TpsError::Empty),
        count => Ok(count),
    }
}

/// Whether there is such a table in the search path.
async fn exists(connection: &Connection, table: &str) -> Result<bool, TpsError> {
    value(connection, "SELECT to_regclass(quote_ident($1)) IS NOT NULL", &[&table]).await
}

/// The one value of a query's one row.
pub(crate) async fn value<T>(
    connection: &Connection,
    query: &str,
    parameters: &[&(dyn tokio_postgres::types::ToSql + Sync)],
) -> Result<T, TpsError>
where
    T: tokio_postgres::types::FromSqlOwned,
{
    match connection.client.query_one(query, parameters).await {
        Ok(row) => Ok(row.get(0)),
        Err(error) => Err(connection.explain(error).await.into()),
    }
}
