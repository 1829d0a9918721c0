//! The server as judge of tuples: which of them fulfil conditions that pgrig does not understand.
//!
//! One `DO` block casts each tuple to the columns' types and evaluates the conditions. It catches the errors that a
//! tuple raises, as a cast does, so that one tuple does not end the others. It creates nothing, and runs in a
//! transaction that may be read-only.

use std::time::{Duration, Instant};

use serde::Deserialize;
use server::quote::{identifier, literal};
use tokio_postgres::Client;
use tokio_postgres::types::Json;

use crate::error::CatalogError;
use crate::info::{ColumnInfo, Source};

/// Values of some columns, in their types' input syntax; none stands for NULL.
pub(super) type Tuple = Vec<Option<String>>;

/// Longest time for all tuples of a question.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Tuples that one block judges. PostgreSQL copies the array of those that passed with each further one.
const IN_A_BLOCK: usize = 500;

/// Conditions on tuples of columns.
pub(super) struct Judge<'a> {
    pub(super) client: &'a Client,
    /// The columns of the tuples.
    pub(super) columns: Vec<&'a ColumnInfo>,
    /// Columns whose values are independent of the tuple: the conditions must hold with each row of
    /// `others`.
    pub(super) ranging: Vec<&'a ColumnInfo>,
    pub(super) others: Vec<Tuple>,
    /// Columns that the server gives values, other than from a sequence.
    pub(super) by_server: Vec<&'a ColumnInfo>,
    /// SQL conditions, all of which have to hold.
    pub(super) conditions: Vec<&'a str>,
}

/// The outcome for some tuples.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Judged {
    /// Tuples that fulfil the conditions, as the server writes them.
    pub(super) passed: Vec<Tuple>,
    /// The last error that a tuple raised.
    pub(super) error: Option<String>,
    /// Whether the server did not judge all of them.
    #[serde(default)]
    pub(super) gave_up: bool,
}

impl Judge<'_> {
    /// Has the server judge the tuples. The transaction is as it was before.
    pub(super) async fn judge(&self, tuples: &[Tuple]) -> Result<Judged, CatalogError> {
        let begun = Instant::now();
        let mut all = Judged::default();
        for some in tuples.chunks(IN_A_BLOCK) {
            let judged = self.judge_some(some, TIMEOUT.saturating_sub(begun.elapsed())).await?;
            all.passed.extend(judged.passed);
            all.error = judged.error.or(all.error);
            all.gave_up = judged.gave_up;
            if all.gave_up {
                break;
            }
        }
        Ok(all)
    }

    async fn judge_some(&self, tuples: &[Tuple], timeout: Duration) -> Result<Judged, CatalogError> {
        self.client.batch_execute("SAVEPOINT pgrig").await?;
        let judged = self.ask(tuples, timeout).await;
        let is_lost = judged.as_ref().is_err_and(|error| error.as_db_error().is_none());
        if !is_lost {
            self.client.batch_execute("ROLLBACK TO SAVEPOINT pgrig; RELEASE SAVEPOINT pgrig").await?;
        }
        judged.or_else(|error| match error.as_db_error() {
            Some(why) => {
                Ok(Judged { passed: Vec::new(), error: Some(why.message().to_owned()), gave_up: true })
            }
            None => Err(error.into()),
        })
    }

    async fn ask(&self, tuples: &[Tuple], timeout: Duration) -> Result<Judged, tokio_postgres::Error> {
        let one = vec![Tuple::new()];
        let others = if self.others.is_empty() { &one } else { &self.others };
        self.client
            .query_one(
                "SELECT set_config('pgrig.tuples', $1::json::text, true), set_config('pgrig.others', $2::json::text, true)",
                &[&Json(tuples), &Json(others)],
            )
            .await?;
        // 0 would mean no limit.
        let timeout = format!("SET LOCAL statement_timeout = {}", timeout.as_millis().max(1));
        self.client.batch_execute(&format!("{timeout}; DO {}", literal(&self.block()))).await?;
        let row = self.client.query_one("SELECT current_setting('pgrig.judged')::json", &[]).await?;
        row.try_get::<_, Json<Judged>>(0).map(|Json(judged)| judged)
    }

    /// Text of the block.
    fn block(&self) -> String {
        let value = |of: &str, at: usize, column: &ColumnInfo| {
            format!("({of}.value ->> {at})::{}", column.data_type.sql)
        };
        let named = |sql: String, column: &ColumnInfo| format!("{sql} AS {}", identifier(&column.name));
        let tuple = self.columns.iter().enumerate();
        let ranging = self.ranging.iter().enumerate();
        let (computed, given): (Vec<&ColumnInfo>, Vec<&ColumnInfo>) =
            self.by_server.iter().copied().partition(|column| column.is_generated());
        let inner: Vec<String> = tuple
            .clone()
            .map(|(at, column)| named(value("pgrig_tuple", at, column), column))
            .chain(ranging.map(|(at, column)| named(value("other", at, column), column)))
            .chain(given.into_iter().map(|column| named(default(column), column)))
            .collect();
        let computed: Vec<String> =
            computed.into_iter().map(|column| format!(", {}", named(default(column), column))).collect();
        let conditions: Vec<String> =
            self.conditions.iter().map(|condition| format!("(({condition})) IS NOT FALSE")).collect();
        let texts: Vec<String> =
            tuple.map(|(at, column)| format!("{}::text", value("pgrig_tuple", at, column))).collect();
        format!(
            "#variable_conflict use_column
            DECLARE
                pgrig_tuple record;
                pgrig_passes boolean;
                pgrig_passed text[] := '{{}}';
                pgrig_error text;
            BEGIN
                FOR pgrig_tuple IN
                    SELECT each.value FROM json_array_elements(current_setting('pgrig.tuples')::json) AS each (value)
                LOOP
                    BEGIN
                        SELECT bool_and({conditions}) INTO pgrig_passes
                          FROM (SELECT given.*{computed}
                                  FROM (SELECT {inner}
                                          FROM json_array_elements(current_setting('pgrig.others')::json) AS other (value)
                                       ) AS given) AS tuple;
                        IF pgrig_passes THEN
                            pgrig_passed := pgrig_passed || json_build_array({texts})::text;
                        END IF;
                    EXCEPTION WHEN OTHERS THEN
                        pgrig_error := SQLERRM;
                    END;
                END LOOP;
                PERFORM set_config('pgrig.judged', json_build_object(
                    'passed', ('[' || array_to_string(pgrig_passed, ',') || ']')::json, 'error', pgrig_error)::text, true);
            END",
            conditions = conditions.join(" AND "),
            computed = computed.concat(),
            inner = inner.join(", "),
            texts = texts.join(", "),
        )
    }
}

/// SQL of the value that the server puts into a column.
fn default(column: &ColumnInfo) -> String {
    let expression = match &column.source {
        Source::Default { expression, .. } | Source::Generated { expression, .. } => expression,
        Source::Identity { .. } | Source::Nothing => "NULL",
    };
    format!("({expression})::{}", column.data_type.sql)
}
