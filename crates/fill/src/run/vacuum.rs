//! The step `vacuum`.

use rowgen::Table;
use tokio_postgres::types::ToSql;

use super::direct::{self, ColumnStatistics};
use super::filler::Filler;
use crate::plan::Method;
use connect::ConnectError;
use server::Session;
use server::quote::qualified;

/// The first release with functions that set statistics.
const TAKES_STATISTICS: u32 = 18;

impl Filler<'_> {
    pub(super) async fn vacuum(&self, session: &Session) -> Result<(), ConnectError> {
        let options = self.plan.vacuum.unwrap_or("ANALYZE");
        for table in self.plan.tables.all() {
            let name = qualified(&self.plan.schema, &table.name);
            if self.plan.method == Method::Direct && table.name == self.plan.tables.bulk.name {
                self.analyze_direct(session, table).await?;
            } else {
                self.watched(session, &format!("VACUUM ({options}) {name}")).await?;
            }
        }
        Ok(())
    }

    /// Sets the statistics of a table whose pages were written all-visible and frozen: there is
    /// nothing to vacuum. Since 18, statistics that pgrig knows can be set without reading the
    /// table.
    async fn analyze_direct(&self, session: &Session, table: &Table) -> Result<(), ConnectError> {
        let plan = self.plan;
        let name = qualified(&plan.schema, &table.name);
        // A table of the user's may have statistics of expressions too.
        let is_ours = !plan.is_own_table() && plan.partitions.is_none();
        let can_be_told = plan.major >= TAKES_STATISTICS && is_ours && plan.rows_done() == 0;
        let Some(known) = direct::statistics(table).filter(|_| can_be_told) else {
            return self.watched(session, &format!("ANALYZE {name}")).await;
        };
        let rows = i64::try_from(table.rows).unwrap_or(i64::MAX);
        session.rows(include_str!("../sql/restore_relation_statistics.sql"), &[&name, &rows]).await?;
        for ColumnStatistics {
            column,
            null_frac,
            avg_width,
            n_distinct,
            most_common,
            histogram,
            correlation,
        } in known
        {
            let (values, shares) = most_common.unzip();
            let query = include_str!("../sql/restore_column_statistics.sql");
            let of_column = [&plan.schema, &table.name, &column];
            let [schema, table, column] = of_column.map(|name| name as &(dyn ToSql + Sync));
            session
                .row(
                    query,
                    &[
                        schema,
                        table,
                        column,
                        &null_frac,
                        &avg_width,
                        &n_distinct,
                        &values,
                        &shares,
                        &histogram,
                        &correlation,
                    ],
                )
                .await?;
        }
        Ok(())
    }
}
