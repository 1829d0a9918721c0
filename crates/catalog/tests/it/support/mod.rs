//! Shared by the tests of `catalog`: real servers, a database for each test, and the least
//! that a fill does with a description.

use failure::Classified;
use std::future::Future;

use bytes::Bytes;
use catalog::{CatalogError, DescribeRequest, Described, Scope, TableInfo, describe, verify};
use connect::{Connection, Target};
use futures_util::SinkExt;
use rowgen::{ColumnSpec, Constants, Encoder, Format};
use testkit::{RELEASES, block_on, shared};
use tokio_postgres::Client;

/// A database of a test's own.
pub(crate) struct Database {
    pub(crate) release: u32,
    target: Target,
    connection: Connection,
}

/// Runs a test on the oldest and on the newest release, in an empty database.
pub(crate) fn on_each_release<F: Future<Output = ()>>(test: impl Fn(Database) -> F) {
    for release in RELEASES {
        block_on(async {
            let testkit::Database { target, .. } = shared(release).database().await;
            let connection = target.connect().await.unwrap();
            test(Database { release: release.into(), target, connection }).await;
        });
    }
}

impl Database {
    pub(crate) fn client(&self) -> &Client {
        &self.connection.client
    }

    pub(crate) async fn sql(&self, script: &str) {
        self.client().batch_execute(script).await.unwrap_or_else(|error| panic!("{error:?}: {script}"));
    }

    /// The same database as another role.
    pub(crate) async fn as_role(&self, role: &str) -> Self {
        let target = self.target.clone().with_user(role);
        let connection = target.connect().await.unwrap();
        Self { release: self.release, target, connection }
    }

    /// A single value, as text.
    pub(crate) async fn value(&self, query: &str) -> String {
        let row = self.client().query_one(&format!("SELECT ({query})::text"), &[]).await;
        let row = row.unwrap_or_else(|error| panic!("{error:?}: {query}"));
        row.get::<_, Option<String>>(0).unwrap_or_else(|| "NULL".to_owned())
    }

    /// Describes, tries and loads so many rows.
    pub(crate) async fn fill(&self, table: &str, rows: u64) -> Result<Described, CatalogError> {
        self.fill_with(table, rows, &[]).await
    }

    /// [`Self::fill`] with `--column`s.
    pub(crate) async fn fill_with(
        &self,
        table: &str,
        rows: u64,
        columns: &[&str],
    ) -> Result<Described, CatalogError> {
        let request = DescribeRequest {
            columns: given(columns),
            rows: Some(rows),
            seed: 42,
            ..DescribeRequest::default()
        };
        self.fill_requested(table, &request).await
    }

    pub(crate) async fn fill_requested(
        &self,
        table: &str,
        request: &DescribeRequest,
    ) -> Result<Described, CatalogError> {
        let info = TableInfo::read(self.client(), table, Scope::Idle).await?;
        let described = describe(self.client(), &info, request, Scope::Idle).await?;
        let warnings = verify(self.client(), &info, &described, Scope::Idle).await?.warnings;
        assert_eq!(warnings, Vec::<String>::new());
        self.load(&info, &described).await;
        Ok(described)
    }

    /// Loads all described rows; the server must accept them.
    pub(crate) async fn load(&self, info: &TableInfo, described: &Described) {
        // verify() sends text; this load sends binary where possible, so both formats are tested.
        let format = if described.supports(Format::Binary) { Format::Binary } else { Format::Text };
        let encoder = Encoder::new(&described.table, format, Constants::Sent);
        let columns: Vec<String> = encoder.columns().map(server::quote::identifier).collect();
        let table = server::quote::qualified(&info.schema, &info.name);
        let statement =
            format!("COPY {table} ({}) FROM STDIN (FORMAT {})", columns.join(", "), format.name());
        let mut rows = encoder.header().to_vec();
        encoder.encode(described.first_row..described.table.rows, &mut rows);
        rows.extend_from_slice(encoder.trailer());
        let sink = self.client().copy_in::<_, Bytes>(&statement).await.unwrap();
        let mut sink = std::pin::pin!(sink);
        let sent = sink.send(Bytes::from(rows)).await;
        let loaded = sink.finish().await.unwrap_or_else(|error| panic!("{error:?}"));
        sent.unwrap();
        assert_eq!(loaded, described.table.rows - described.first_row);
    }

    /// The text of the error that a fill must end with; the table stays as it is.
    pub(crate) async fn refused(&self, table: &str, columns: &[&str]) -> String {
        match self.fill_with(table, 1_000, columns).await {
            Ok(described) => panic!("{table} was filled: {described:#?}"),
            Err(error) => {
                assert!(error.is_usage(), "{error:?}");
                error.to_string()
            }
        }
    }
}

/// `--column`s.
pub(crate) fn given(columns: &[&str]) -> Vec<ColumnSpec> {
    columns.iter().map(|column| column.parse().unwrap()).collect()
}
