//! Fills of tables of a test's own.

use connect::Connection;
use fill::{
    Amount, Conduct, FillError, InitStep, InitSteps, Method, MethodChoice, OwnTable, Plan, Request, Subject,
    Triggers, Unwatched,
};
use server::{DataDirectory, Survey};
use testkit::{Database, Server, shared};
use tokio_postgres::types::FromSqlOwned;

/// A database in the shared server of a release, and its tables.
pub(crate) struct Tables {
    pub(crate) server: &'static Server,
    pub(crate) database: Database,
    pub(crate) connection: Connection,
}

/// A fill of one table.
pub(crate) struct Filling {
    pub(crate) table: &'static str,
    pub(crate) rows: u64,
    pub(crate) columns: &'static [&'static str],
    pub(crate) together: &'static [&'static str],
    pub(crate) triggers: Triggers,
}

impl Filling {
    /// So many rows of the table.
    pub(crate) fn of(table: &'static str, rows: u64) -> Self {
        Self { table, rows, columns: &[], together: &[], triggers: Triggers::On }
    }

    fn request(&self) -> Request {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let steps = InitSteps::whole().without(InitStep::Create).without(InitStep::PrimaryKeys);
        let subject = Subject::Table(OwnTable {
            name: Some(self.table.to_owned()),
            ddl: None,
            create_roles: false,
            columns: owned(self.columns),
            seed: 7,
            plain: false,
            triggers: self.triggers,
            together: owned(self.together),
            in_cycle: false,
            order: fill::RowOrder::Any,
        });
        Request { subject, method: MethodChoice::Auto, ..Request::new(Amount::Rows(self.rows), steps) }
    }
}

impl Tables {
    /// Runs the script in an empty database.
    pub(crate) async fn new(major: u16, script: &str) -> Self {
        Self::on(shared(major), script).await
    }

    /// Runs the script in an empty database of this server.
    pub(crate) async fn on(server: &'static Server, script: &str) -> Self {
        let database = server.database().await;
        let connection = database.target.connect().await.unwrap();
        let tables = Self { server, database, connection };
        tables.execute("CREATE EXTENSION amcheck; CREATE EXTENSION pg_visibility").await;
        tables.execute(script).await;
        tables
    }

    pub(crate) async fn plan(&self, filling: &Filling) -> Result<Plan, FillError> {
        let directory = DataDirectory::Own(self.server.data_dir());
        let survey = Survey::for_tables(&self.connection, &directory, "test").await.unwrap();
        let request = filling.request();
        request.check()?;
        fill::plan(&survey, &self.connection, &request, false).await
    }

    /// Plans and runs the fill.
    pub(crate) async fn fill(&self, filling: &Filling) -> Result<Method, FillError> {
        let plan = self.plan(filling).await?;
        self.run(filling, &plan).await
    }

    async fn run(&self, filling: &Filling, plan: &Plan) -> Result<Method, FillError> {
        let records = Some(self.server.home().join("direct"));
        let conduct = Conduct { records, ..Conduct::default() };
        let never = Box::pin(std::future::pending());
        let outcome = fill::run(&self.database.target, plan, conduct, &Unwatched, never).await?;
        assert_eq!(outcome.rows, filling.rows, "{}", filling.table);
        Ok(plan.method)
    }

    /// Fills the table with pages, and has PostgreSQL's checkers look at all of it.
    pub(crate) async fn fill_directly(&self, filling: &Filling) {
        let plan = self.plan(filling).await.unwrap_or_else(|error| panic!("{}: {error}", filling.table));
        assert_eq!(plan.method, Method::Direct, "{}: {:?}", filling.table, plan.reasons);
        self.run(filling, &plan).await.unwrap_or_else(|error| panic!("{}: {error}", filling.table));
        for table in self.leaves(filling.table).await {
            self.assert_sound(&table).await;
        }
    }

    /// The partitions that hold the table's rows, or itself.
    pub(crate) async fn leaves(&self, table: &str) -> Vec<String> {
        self.value(&format!(
            "SELECT coalesce(array_agg(relid::regclass::text ORDER BY relid), ARRAY['{table}'])
               FROM pg_partition_tree('{table}') WHERE isleaf"
        ))
        .await
    }

    /// Why the fill goes by COPY.
    pub(crate) async fn reason(&self, filling: &Filling) -> String {
        let plan = self.plan(filling).await.unwrap();
        assert_ne!(plan.method, Method::Direct, "{}", filling.table);
        plan.reasons.join("; ")
    }

    pub(crate) async fn execute(&self, sql: &str) {
        self.connection.client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{error:?}: {sql}"));
    }

    /// The server's error message for the statement.
    pub(crate) async fn refusal(&self, sql: &str) -> String {
        let error = self.connection.client.batch_execute(sql).await.expect_err(sql);
        error.as_db_error().unwrap_or_else(|| panic!("{error:?}: {sql}")).message().to_owned()
    }

    /// The only value of a query.
    pub(crate) async fn value<T: FromSqlOwned>(&self, query: &str) -> T {
        let row = self.connection.client.query_one(query, &[]).await;
        row.unwrap_or_else(|error| panic!("{error:?}: {query}")).get(0)
    }

    /// amcheck and pg_visibility find nothing in the heap, the TOAST table, their maps, and every B-tree.
    pub(crate) async fn assert_sound(&self, table: &str) {
        let toast = format!(
            "(SELECT reltoastrelid FROM pg_class WHERE oid = '{table}'::regclass AND reltoastrelid <> 0)"
        );
        let both = format!("'{table}'::regclass, {toast}");
        let of_both = |check: &str| {
            format!(
                "SELECT string_agg(format('%s: %s', oid::regclass, f), '; ') FROM pg_class, LATERAL {check} f WHERE oid IN ({both})"
            )
        };
        let mut checks = vec!["pg_check_frozen(oid)", "pg_check_visible(oid)"];
        if self.database.major >= 14 {
            checks.push("verify_heapam(oid, check_toast => true)");
        }
        for check in checks {
            assert_eq!(self.value::<Option<String>>(&of_both(check)).await, None, "{table}: {check}");
        }
        self.execute(&format!(
            "SELECT bt_index_parent_check(i.indexrelid, heapallindexed => true, rootdescend => true)
               FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
              WHERE i.indrelid IN ({both}) AND m.amname = 'btree'"
        ))
        .await;
        let visible = format!(
            "SELECT count(*) FROM pg_class, LATERAL pg_visibility_map(oid::regclass) WHERE oid IN ({both}) AND NOT (all_visible AND all_frozen)"
        );
        assert_eq!(
            self.value::<i64>(&visible).await,
            0,
            "{table}'s visibility map, or that of its TOAST table"
        );
    }
}
