//! Materialized views that refer to the tables: refreshed at the end, if the SQL created them.

use connect::{ConnectError, SqlState};
use server::Session;
use server::quote::qualified;

use super::plan::{PlannedTable, SchemaPlan};
use super::run::SchemaObserver;

/// Classes of errors that depend on the rows: cardinality, data, constraints, and RAISE in a function.
const OF_ROWS: [&str; 4] = ["21", "22", "23", "P0"];

/// A materialized view that stays unpopulated.
#[derive(Clone, Debug)]
pub struct Unpopulated {
    /// Its name as SQL.
    pub view: String,
    /// The server's message.
    why: String,
}

impl Unpopulated {
    /// A sentence for people.
    pub fn warning(&self) -> String {
        let Self { view, why } = self;
        format!(
            "materialized view {view} stays unpopulated, because REFRESH MATERIALIZED VIEW fails on the generated rows ({why})"
        )
    }
}

/// The materialized views by what became of them.
#[derive(Default)]
pub(super) struct Views {
    /// Names as SQL.
    pub(super) refreshed: Vec<String>,
    pub(super) unpopulated: Vec<Unpopulated>,
}

/// Refreshes the views. One whose query or index fails on the rows is emptied, and cannot be read.
pub(super) async fn refresh(
    session: &Session,
    plan: &SchemaPlan,
    observer: &dyn SchemaObserver,
) -> Result<Views, ConnectError> {
    let created = plan.tables.iter().filter(|_| plan.request.ddl.is_some());
    let name = |table: &PlannedTable| qualified(&table.schema, &table.name);
    let tables: Vec<String> = created.map(name).collect();
    let rows = session.rows(include_str!("../sql/schema_views.sql"), &[&tables]).await?;
    let mut views = Views::default();
    for (place, row) in rows.iter().enumerate() {
        let view: String = row.get("name");
        observer.step(&format!("refreshing {view}, materialized view {} of {}", place + 1, rows.len()));
        let refresh = format!("REFRESH MATERIALIZED VIEW {view}");
        match session.run(&refresh).await {
            Ok(()) => views.refreshed.push(view),
            Err(error) if is_of_rows(&error) => {
                session.run(&format!("{refresh} WITH NO DATA")).await?;
                views.unpopulated.push(Unpopulated { view, why: message(&error) });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(views)
}

/// Whether other rows could prevent the error. A view that reads an unpopulated one has no rows either.
fn is_of_rows(error: &ConnectError) -> bool {
    error.sqlstate().is_some_and(|state| {
        OF_ROWS.iter().any(|class| state.code().starts_with(class))
            || *state == SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE
    })
}

/// The server's message without the statement.
fn message(error: &ConnectError) -> String {
    match error {
        ConnectError::Query { error, .. } => error.message.clone(),
        error => error.to_string(),
    }
}
