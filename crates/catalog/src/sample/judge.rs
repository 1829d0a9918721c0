//! The server as judge of tuples: which of them fulfil conditions that pgrig does not understand.
//!
//! One query casts many tuples to the columns' types and evaluates the conditions. If a tuple raises an error, as a cast
//! may, a `DO` block, which takes longer, judges each by itself and catches the errors. Both create nothing, and run in a
//! transaction that may be read-only.

use std::time::{Duration, Instant};

use serde::Deserialize;
use server::quote::{identifier, literal};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Json;
use tokio_postgres::{Client, Error};

use crate::error::CatalogError;
use crate::info::{ColumnInfo, LeafInfo, Source};

/// Values of some columns, in their types' input syntax; none stands for NULL.
pub(super) type Tuple = Vec<Option<String>>;

/// Longest time for all tuples of a question.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Tuples that one block judges. PostgreSQL copies the array of those that passed with each further one.
const IN_A_BLOCK: usize = 500;
/// Tuples that one query judges if it raises no error and is quick: planning it takes as long as judging some hundreds.
const IN_A_QUERY: usize = 2_000;
/// Longest time of a quick query.
const QUICK: Duration = Duration::from_secs(1);

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
    pub(super) conditions: Vec<String>,
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
        let (mut rest, mut size) = (tuples, IN_A_BLOCK);
        while !rest.is_empty() && !all.gave_up {
            let (some, others) = rest.split_at(size.min(rest.len()));
            let asked = Instant::now();
            let judged = self.judge_some(some, TIMEOUT.saturating_sub(begun.elapsed())).await?;
            let is_quick = judged.error.is_none() && asked.elapsed() < QUICK;
            size = if is_quick { IN_A_QUERY } else { IN_A_BLOCK };
            all.add(judged);
            rest = others;
        }
        Ok(all)
    }

    /// Whether all tuples fulfil the conditions; none if the server does not judge all of them in time. The transaction is as it was
    /// before.
    pub(super) async fn accepts_all(&self, tuples: &[Tuple]) -> Result<Option<bool>, CatalogError> {
        let begun = Instant::now();
        for some in tuples.chunks(IN_A_BLOCK) {
            let judged = self.judge_some(some, TIMEOUT.saturating_sub(begun.elapsed())).await?;
            if judged.gave_up {
                return Ok(None);
            }
            if judged.passed.len() < some.len() {
                return Ok(Some(false));
            }
        }
        Ok(Some(true))
    }

    /// Of each condition, whether all tuples fulfil it. No answer if one of them raises an error, or takes too long. The transaction
    /// is as it was before.
    pub(super) async fn kept(&self, tuples: &[Tuple]) -> Result<Option<Vec<bool>>, CatalogError> {
        let begun = Instant::now();
        let query = self.query_of_each();
        let mut kept = vec![true; self.conditions.len()];
        for some in tuples.chunks(IN_A_QUERY) {
            let left = TIMEOUT.saturating_sub(begun.elapsed());
            match undone(self.client, self.ask_of_each(&query, some, left)).await? {
                Ok(verdicts) => {
                    for (kept, verdict) in kept.iter_mut().zip(verdicts) {
                        *kept &= verdict;
                    }
                }
                Err(_) => return Ok(None),
            }
            if !kept.contains(&true) {
                break;
            }
        }
        Ok(Some(kept))
    }

    async fn judge_some(&self, tuples: &[Tuple], timeout: Duration) -> Result<Judged, CatalogError> {
        let begun = Instant::now();
        let refused = match undone(self.client, self.ask_at_once(tuples, timeout)).await? {
            Ok(passed) => return Ok(Judged { passed, ..Judged::default() }),
            Err(error) => error,
        };
        // 57014: the time is over.
        if refused.code() == Some(&SqlState::QUERY_CANCELED) {
            return Ok(Judged::given_up(&refused));
        }
        let mut all = Judged::default();
        for block in tuples.chunks(IN_A_BLOCK) {
            let left = timeout.saturating_sub(begun.elapsed());
            let judged = undone(self.client, self.ask_one_by_one(block, left)).await?;
            all.add(judged.unwrap_or_else(|error| Judged::given_up(&error)));
            if all.gave_up {
                break;
            }
        }
        Ok(all)
    }

    /// Of each tuple, the number of the partition that it lies in; none if it lies in none of these. No answer if the tuple does
    /// not tell, or if the server does not say. The transaction is as it was before.
    pub(super) async fn places(
        &self,
        tuples: &[Tuple],
        leaves: &[&LeafInfo],
    ) -> Result<Option<Vec<Option<usize>>>, CatalogError> {
        if leaves.is_empty() || !self.ranging.is_empty() {
            return Ok(None);
        }
        let begun = Instant::now();
        let query = self.query_of_places(leaves);
        let mut places = Vec::with_capacity(tuples.len());
        for some in tuples.chunks(IN_A_BLOCK) {
            let left = TIMEOUT.saturating_sub(begun.elapsed());
            match undone(self.client, self.ask_for_places(&query, some, left)).await? {
                Ok(more) => places.extend(more),
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(places))
    }

    async fn ask_for_places(
        &self,
        query: &str,
        tuples: &[Tuple],
        timeout: Duration,
    ) -> Result<Vec<Option<usize>>, Error> {
        self.client.batch_execute(&limit(timeout)).await?;
        let others = self.others();
        let row = self.client.query_one(query, &[&Json(tuples), &Json(&others)]).await?;
        row.try_get::<_, Json<Vec<Option<usize>>>>(0).map(|Json(places)| places)
    }

    /// The tuples that pass. The first error ends the query.
    async fn ask_at_once(&self, tuples: &[Tuple], timeout: Duration) -> Result<Vec<Tuple>, Error> {
        self.client.batch_execute(&limit(timeout)).await?;
        let others = self.others();
        let row = self.client.query_one(&self.query(), &[&Json(tuples), &Json(&others)]).await?;
        row.try_get::<_, Json<Vec<Tuple>>>(0).map(|Json(passed)| passed)
    }

    async fn ask_of_each(
        &self,
        query: &str,
        tuples: &[Tuple],
        timeout: Duration,
    ) -> Result<Vec<bool>, Error> {
        self.client.batch_execute(&limit(timeout)).await?;
        let others = self.others();
        self.client.query_one(query, &[&Json(tuples), &Json(&others)]).await?.try_get(0)
    }

    async fn ask_one_by_one(&self, tuples: &[Tuple], timeout: Duration) -> Result<Judged, Error> {
        let others = self.others();
        self.client
            .query_one(
                "SELECT set_config('pgrig.tuples', $1::json::text, true), set_config('pgrig.others', $2::json::text, true)",
                &[&Json(tuples), &Json(&others)],
            )
            .await?;
        self.client.batch_execute(&format!("{}; DO {}", limit(timeout), literal(&self.block()))).await?;
        let row = self.client.query_one("SELECT current_setting('pgrig.judged')::json", &[]).await?;
        row.try_get::<_, Json<Judged>>(0).map(|Json(judged)| judged)
    }

    /// The rows of the columns that do not follow the tuple; one without columns if there are none.
    fn others(&self) -> Vec<Tuple> {
        if self.others.is_empty() { vec![Tuple::new()] } else { self.others.clone() }
    }

    /// The conditions, all as one.
    fn condition(&self) -> String {
        let conditions: Vec<String> =
            self.conditions.iter().map(|condition| format!("(({condition})) IS NOT FALSE")).collect();
        conditions.join(" AND ")
    }

    /// The tuple's values as the server writes them.
    fn texts(&self) -> String {
        let columns = self.columns.iter().enumerate();
        let texts: Vec<String> =
            columns.map(|(at, column)| format!("{}::text", value("pgrig_tuple", at, column))).collect();
        texts.join(", ")
    }

    /// A subquery with the columns of the tuple, once for each row of the other columns, which `others` is an expression for. Each
    /// value is cast once, however often the conditions name it: OFFSET keeps the planner from merging the subqueries.
    fn rows(&self, others: &str) -> String {
        let named = |sql: String, column: &ColumnInfo| format!("{sql} AS {}", identifier(&column.name));
        let tuple = self.columns.iter().enumerate();
        let ranging = self.ranging.iter().enumerate();
        let (computed, given): (Vec<&ColumnInfo>, Vec<&ColumnInfo>) =
            self.by_server.iter().copied().partition(|column| column.is_generated());
        let inner: Vec<String> = tuple
            .map(|(at, column)| named(value("pgrig_tuple", at, column), column))
            .chain(ranging.map(|(at, column)| named(value("other", at, column), column)))
            .chain(given.into_iter().map(|column| named(default(column), column)))
            .collect();
        let computed: Vec<String> =
            computed.into_iter().map(|column| format!(", {}", named(default(column), column))).collect();
        format!(
            "(SELECT given.*{computed}
                FROM (SELECT {inner} FROM json_array_elements({others}) AS other (value) OFFSET 0) AS given
              OFFSET 0) AS tuple",
            computed = computed.concat(),
            inner = inner.join(", "),
        )
    }

    /// The query that judges all tuples. In conditions, names are those of the tuple, as the innermost ones.
    fn query(&self) -> String {
        format!(
            "SELECT coalesce(json_agg(judged.texts ORDER BY judged.number), '[]')
               FROM (SELECT pgrig_tuple.number, json_build_array({texts}) AS texts
                       FROM json_array_elements($1::json) WITH ORDINALITY AS pgrig_tuple (value, number)
                      WHERE (SELECT bool_and({condition}) FROM {rows})) AS judged",
            texts = self.texts(),
            condition = self.condition(),
            rows = self.rows("$2::json"),
        )
    }

    /// The query for the conditions that all tuples fulfil. OFFSET keeps the planner from judging the tuples once for each condition.
    fn query_of_each(&self) -> String {
        let each = self.conditions.iter().map(|condition| format!("bool_and((({condition})) IS NOT FALSE)"));
        let of_tuple: Vec<String> = each.collect();
        let of_all: Vec<String> =
            (1..=self.conditions.len()).map(|number| format!("bool_and(judged.kept[{number}])")).collect();
        format!(
            "SELECT ARRAY[{of_all}]
               FROM (SELECT (SELECT ARRAY[{of_tuple}] FROM {rows}) AS kept
                       FROM json_array_elements($1::json) AS pgrig_tuple (value) OFFSET 0) AS judged",
            of_all = of_all.join(", "),
            of_tuple = of_tuple.join(", "),
            rows = self.rows("$2::json"),
        )
    }

    /// The query for the partition that each tuple lies in.
    fn query_of_places(&self, leaves: &[&LeafInfo]) -> String {
        let each = leaves
            .iter()
            .enumerate()
            .map(|(at, leaf)| format!(" WHEN ({}) THEN {at}", leaf.bound.as_deref().unwrap_or("true")));
        let cases: Vec<String> = each.collect();
        format!(
            "SELECT coalesce(json_agg(judged.place ORDER BY judged.number), '[]')
               FROM (SELECT pgrig_tuple.number, (SELECT CASE{cases} END FROM {rows}) AS place
                       FROM json_array_elements($1::json) WITH ORDINALITY AS pgrig_tuple (value, number)) AS judged",
            cases = cases.concat(),
            rows = self.rows("$2::json"),
        )
    }

    /// Text of the block.
    fn block(&self) -> String {
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
                        SELECT bool_and({condition}) INTO pgrig_passes FROM {rows};
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
            condition = self.condition(),
            rows = self.rows("current_setting('pgrig.others')::json"),
            texts = self.texts(),
        )
    }
}

impl Judged {
    /// Adds the outcome for further tuples.
    fn add(&mut self, more: Self) {
        self.passed.extend(more.passed);
        self.error = more.error.or(self.error.take());
        self.gave_up = more.gave_up;
    }

    fn given_up(error: &Error) -> Self {
        let error = error.as_db_error().map(|why| why.message().to_owned());
        Self { passed: Vec::new(), error, gave_up: true }
    }
}

/// Does the work; then the transaction is as it was before. The inner error is a refusal of the server.
pub(super) async fn undone<T>(
    client: &Client,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<Result<T, Error>, CatalogError> {
    client.batch_execute("SAVEPOINT pgrig").await?;
    match work.await {
        Err(error) if error.as_db_error().is_none() => Err(error.into()),
        outcome => {
            client.batch_execute("ROLLBACK TO SAVEPOINT pgrig; RELEASE SAVEPOINT pgrig").await?;
            Ok(outcome)
        }
    }
}

/// The statement that limits the next ones; 0 would mean no limit.
fn limit(timeout: Duration) -> String {
    format!("SET LOCAL statement_timeout = {}", timeout.as_millis().max(1))
}

/// SQL of a tuple's value, cast to its column's type.
fn value(of: &str, at: usize, column: &ColumnInfo) -> String {
    format!("({of}.value ->> {at})::{}", column.data_type.sql)
}

/// SQL of the value that the server puts into a column.
fn default(column: &ColumnInfo) -> String {
    let expression = match &column.source {
        Source::Default { expression, .. } | Source::Generated { expression, .. } => expression,
        Source::Identity { .. } | Source::Nothing => "NULL",
    };
    format!("({expression})::{}", column.data_type.sql)
}
