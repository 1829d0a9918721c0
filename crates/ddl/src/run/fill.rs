//! Fills the tables of a migration: at which scales, and at each scale.
//!
//! At scale 1, the tables have the amount that the user asked for. pgrig fills them at smaller scales: the largest takes no
//! more than the request allows.

use std::collections::BTreeSet;

use connect::Target;
use fill::limits::Limits;
use fill::{
    FillError, FillSteps, MethodChoice, PlannedTable, RowsRule, SchemaAmount, SchemaLimits, SchemaPlan,
    SchemaRequest, SchemaTriggers, Skipped, TableRows, Unpopulated, is_name_of, plan_schema, run_schema,
};
use futures_util::future::LocalBoxFuture;
use server::{Session, Steps, Survey};

use crate::error::DdlError;
use crate::outcome::{StatementOutcome, TableAt};
use crate::request::{Amount, Request};
use crate::run::Site;
use crate::run::defaults::DefaultRows;
use crate::run::keys;
use crate::run::suit::{self, Addition};

/// Rows of tables that reference nothing, where the user gives a size.
const BASE: u64 = 10_000;
/// About so many rows are in the plan from which the bytes of a row are known.
const SIGHTED: f64 = 1e6;

/// Fills databases with the same tables.
pub(crate) struct Filler<'a> {
    pub(crate) site: &'a Site<'a>,
    pub(crate) request: &'a Request,
    /// Statements of the schema that the server cannot run.
    pub(crate) skipped: Vec<Skipped>,
    /// Tables that get no rows, because no statement uses them, `schema.name`.
    pub(crate) empty: Vec<String>,
    /// Tables that get no rows, because they have none in the original.
    pub(crate) without_rows: Vec<String>,
    /// Rules of the migration that the rows keep.
    pub(crate) additions: Vec<Addition>,
    /// Specifications for types that the migration gives, and for default partitions.
    pub(crate) specs: Vec<String>,
    /// Rows for default partitions.
    pub(crate) defaults: Vec<DefaultRows>,
    /// Triggers of the schema, which do not run for the rows.
    pub(crate) triggers: SchemaTriggers,
    /// Tables that get no generated rows, because the schema inserts rows there, by their names for people.
    pub(crate) inserted: BTreeSet<String>,
}

/// Scales of the fills.
#[derive(Clone, Debug)]
pub(crate) struct Scales {
    /// The largest; less than 1 if the amount of the user is larger than what is filled.
    pub(crate) largest: f64,
    /// The least `--up-to` with which the tables are filled at that scale. They may come out smaller or larger.
    pub(crate) up_to: f64,
    /// Whether that is the amount of the user.
    pub(crate) is_whole: bool,
    /// Rows of tables whose size the user gave.
    pub(crate) rules: Vec<RowsRule>,
    /// The largest plan.
    pub(crate) plan: Option<SchemaPlan>,
}

/// A database that is filled.
pub(crate) struct Filled {
    pub(crate) database: Target,
    pub(crate) tables: Vec<TableAt>,
    /// Warnings about materialized views without rows.
    pub(crate) warnings: Vec<String>,
}

/// A session that plans fills.
#[derive(Clone, Copy)]
struct Planning<'a> {
    session: &'a Session,
    survey: &'a Survey,
    steps: Steps<'a>,
}

impl Filler<'_> {
    /// Decides on the scales. `database` has no relations, and none afterwards. Leaves out rules and specifications of the
    /// migration for which no rows can be made.
    pub(crate) async fn scales(&mut self, database: &Target, steps: Steps<'_>) -> Result<Scales, DdlError> {
        let session = Session::open(database).await?;
        let survey = Survey::for_tables(&session.connection, self.site.directory, self.site.pgrig).await?;
        let scales = self.scales_on(Planning { session: &session, survey: &survey, steps }).await;
        session.close().await;
        scales
    }

    async fn scales_on(&mut self, planning: Planning<'_>) -> Result<Scales, DdlError> {
        let sight = f64::min(1.0, SIGHTED / self.about());
        let mut rules = Vec::new();
        let Some(mut plan) = self.possible_plan(planning, sight).await? else {
            return Ok(Scales { largest: 1.0, up_to: 0.0, is_whole: true, rules, plan: None });
        };
        if let Amount::Sizes(sizes) = &self.request.amount {
            for size in sizes {
                rules.push(RowsRule {
                    table: size.table.clone(),
                    rows: rows_for(&plan, size.bytes, &size.table)?,
                });
            }
            let plan_of_sizes = self.plan(planning, sight_of(&rules), &rules).await?;
            plan = plan_of_sizes.ok_or(FillError::NothingToFill)?;
        }
        let sight = if rules.is_empty() { sight } else { sight_of(&rules) };
        let of_scale_1 = bytes(&plan) / sight;
        #[expect(clippy::cast_precision_loss, reason = "sizes need no more")]
        let (wanted, most) = match self.request.amount {
            Amount::Size(size) => (size as f64 / of_scale_1, self.request.up_to as f64 / of_scale_1),
            _ => (1.0, self.request.up_to as f64 / of_scale_1),
        };
        let largest = f64::min(wanted, most);
        let plan = if largest.total_cmp(&sight).is_eq() {
            Some(plan)
        } else {
            self.plan(planning, largest, &rules).await?
        };
        Ok(Scales { largest, up_to: largest * of_scale_1, is_whole: wanted <= most, rules, plan })
    }

    /// Rows at scale 1, about.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn about(&self) -> f64 {
        let of_rule = |rule: &RowsRule| match rule.rows {
            TableRows::Exactly(rows) | TableRows::InProportion(rows) => rows as f64,
            TableRows::PerRow { .. } => 0.0,
        };
        let known: f64 = self.rules(&[]).iter().map(of_rule).sum();
        match self.request.amount {
            Amount::Rows(rows) => known.max(rows as f64 * 4.0),
            _ => known.max(BASE as f64),
        }
    }

    /// The plan at a scale; none if no table needs rows. Leaves out additions and specifications, one by one, if no rows can be made
    /// with all of them.
    async fn possible_plan(
        &mut self,
        planning: Planning<'_>,
        scale: f64,
    ) -> Result<Option<SchemaPlan>, DdlError> {
        let error = match self.plan(planning, scale, &[]).await {
            Ok(plan) => return Ok(plan),
            Err(error) => error,
        };
        if self.additions.is_empty() && self.specs.is_empty() {
            return Err(error);
        }
        let additions = std::mem::take(&mut self.additions);
        let specs = std::mem::take(&mut self.specs);
        let (first_spec, of) = (additions.len(), additions.len() + specs.len());
        let mut plan = self.plan(planning, scale, &[]).await?;
        for (place, addition) in additions.into_iter().enumerate() {
            self.additions.push(addition);
            match self.plan_with(planning, scale, (place, of)).await {
                Ok(possible) => plan = possible,
                Err(_) => drop(self.additions.pop()),
            }
        }
        for (place, spec) in specs.into_iter().enumerate() {
            self.specs.push(spec);
            match self.plan_with(planning, scale, (first_spec + place, of)).await {
                Ok(possible) => plan = possible,
                Err(_) => drop(self.specs.pop()),
            }
        }
        Ok(plan)
    }

    /// The plan with one more rule of the migration: the one at this place of so many.
    async fn plan_with(
        &self,
        planning: Planning<'_>,
        scale: f64,
        (place, of): (usize, usize),
    ) -> Result<Option<SchemaPlan>, DdlError> {
        let steps =
            |text: &str| (planning.steps)(&format!("rule {} of {of} of the migration: {text}", place + 1));
        self.plan(Planning { steps: &steps, ..planning }, scale, &[]).await
    }

    /// The plan at a scale; none if no table needs rows.
    async fn plan(
        &self,
        planning: Planning<'_>,
        scale: f64,
        rules: &[RowsRule],
    ) -> Result<Option<SchemaPlan>, DdlError> {
        self.plan_by(planning, scale, rules, MethodChoice::Copy).await
    }

    /// The plan of a fill by a method.
    async fn plan_by(
        &self,
        planning: Planning<'_>,
        scale: f64,
        rules: &[RowsRule],
        method: MethodChoice,
    ) -> Result<Option<SchemaPlan>, DdlError> {
        let Planning { session, survey, steps } = planning;
        let request = SchemaRequest { method, ..self.schema_request(scale, rules) };
        match plan_schema(survey, &session.connection, &request, None, false, steps).await {
            Ok(plan) => Ok(plan),
            Err(FillError::NothingToFill | FillError::NoRows) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Fills an empty database at a scale.
    pub(crate) async fn fill(
        &self,
        database: Target,
        scale: f64,
        rules: &[RowsRule],
        method: MethodChoice,
        interrupt: LocalBoxFuture<'_, ()>,
        steps: Steps<'_>,
    ) -> Result<Filled, DdlError> {
        let session = Session::open(&database).await?;
        let survey = Survey::for_tables(&session.connection, self.site.directory, self.site.pgrig).await?;
        let planning = Planning { session: &session, survey: &survey, steps };
        let plan = self.plan_by(planning, scale, rules, method).await?;
        let mut warnings = Vec::new();
        match &plan {
            Some(plan) => {
                let limits = SchemaLimits { limits: Limits::default(), survey: &survey, arrival: None };
                let steps_of_fill = FillSteps::new(plan, steps);
                let outcome = run_schema(&database, plan, limits, None, &steps_of_fill, interrupt).await?;
                warnings = outcome.unpopulated.iter().map(unpopulated).collect();
                steps("dropping the rules that only the rows need");
                suit::drop_all(&database, &self.additions).await?;
                session.run(&self.triggers.enable()).await?;
            }
            None => drop(fill::create_schema(&session.connection, &self.request.schema.sql).await?),
        }
        steps("reading the sizes of the tables");
        let rows = session.rows(include_str!("../sql/sizes.sql"), &[]).await?;
        let whole = |number: i64| u64::try_from(number).unwrap_or_default();
        let table = |row: &tokio_postgres::Row| TableAt {
            oid: row.get("oid"),
            root: row.get("root"),
            name: row.get("name"),
            rows: whole(row.get("rows")),
            bytes: whole(row.get("bytes")),
            main: whole(row.get("main")),
        };
        let tables = rows.iter().map(table).collect();
        // Nobody may be connected to a database that is copied.
        session.close().await;
        Ok(Filled { database, tables, warnings })
    }

    /// The rules of the user, with those of the original.
    fn rules(&self, more: &[RowsRule]) -> Vec<RowsRule> {
        let most = if let Amount::Rows(rows) = self.request.amount { Some(rows) } else { None };
        let mut rules = more.to_vec();
        if let Amount::Rules(own) = &self.request.amount {
            rules.extend(own.iter().map(|rule| RowsRule {
                table: rule.table.clone(),
                rows: match &rule.rows {
                    TableRows::Exactly(rows) => TableRows::InProportion(*rows),
                    other => other.clone(),
                },
            }));
        }
        rules.extend(self.request.schema.rules(most));
        rules
    }

    fn schema_request(&self, scale: f64, rules: &[RowsRule]) -> SchemaRequest {
        let amount = match self.request.amount {
            Amount::Rows(rows) => SchemaAmount::Rows(rows),
            _ => SchemaAmount::Rules,
        };
        let mut columns = self.request.columns.clone();
        let is_given = |spec: &&String| is_given(&self.request.columns, spec);
        let suiting: Vec<String> = self.specs.iter().filter(|spec| !is_given(spec)).cloned().collect();
        columns.extend(suiting);
        let keys = self.additions.iter().filter_map(|addition| addition.key.as_ref());
        let sql = self.triggers.disabled_after(&self.request.schema.sql) + &suit::script(&self.additions);
        SchemaRequest {
            empty: [self.empty.as_slice(), self.without_rows.as_slice()].concat(),
            rules: self.rules(rules),
            scale,
            columns,
            modelled: keys::without_repeats(&self.request.schema.modelled, keys),
            spreads_keys: true,
            seed: self.request.seed,
            ..SchemaRequest::of_script(sql, amount)
        }
    }
}

/// A warning about a materialized view without rows.
fn unpopulated(view: &Unpopulated) -> String {
    format!(
        "{}: statements that read it are not measurable. If the migration needs it, give values with which it works (--column TABLE.COLUMN=SPEC)",
        view.warning()
    )
}

/// Tables that a statement used, and that were left empty because none had used them without rows.
pub(crate) fn unfilled(
    statements: &[StatementOutcome],
    tables: &[TableAt],
    empty: &[String],
) -> Vec<(String, usize)> {
    let is_unfilled = |table: &&TableAt| table.rows == 0 && empty.contains(&table.name);
    let first = |table: &TableAt| {
        let uses = |one: &&StatementOutcome| {
            one.found.as_ref().is_some_and(|found| found.held.contains_key(&table.oid))
        };
        Some((table.name.clone(), statements.iter().find(uses)?.number))
    };
    tables.iter().filter(is_unfilled).filter_map(first).collect()
}

/// Whether a specification is one of a column for which these, of the user, have another.
pub(crate) fn is_given(columns: &[String], spec: &str) -> bool {
    let column = |text: &str| text.split('=').next().unwrap_or_default().trim().to_owned();
    let spec = column(spec);
    let mut given = columns.iter().map(|text| column(text));
    given.any(|given| spec == given || spec.ends_with(&format!(".{given}")))
}

/// The scale at which tables of which some have so many rows are sighted.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn sight_of(rules: &[RowsRule]) -> f64 {
    let of_rule =
        |rule: &RowsRule| if let TableRows::InProportion(rows) = rule.rows { rows as f64 } else { 0.0 };
    f64::min(1.0, SIGHTED / rules.iter().map(of_rule).sum::<f64>().max(1.0))
}

/// Bytes of a plan.
#[expect(clippy::cast_precision_loss, reason = "sizes need no more")]
pub(crate) fn bytes(plan: &SchemaPlan) -> f64 {
    plan.predicted().max(1) as f64
}

/// The rows with which a table has a size, as the plan predicts it.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate"
)]
fn rows_for(plan: &SchemaPlan, bytes: u64, table: &str) -> Result<TableRows, DdlError> {
    let is_meant = |one: &&PlannedTable| is_name_of((&one.schema, &one.name), table);
    let found = plan.tables.iter().find(is_meant).ok_or_else(|| {
        let names: Vec<String> = plan.tables.iter().map(|one| one.name.clone()).collect();
        DdlError::NoSuchTable { option: "--size", table: table.to_owned(), tables: names.join(", ") }
    })?;
    let of_row = found.predicted as f64 / found.rows.max(1) as f64;
    Ok(TableRows::InProportion((bytes as f64 / of_row).max(1.0) as u64))
}
