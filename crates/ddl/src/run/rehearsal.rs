//! Runs the migration on tables without rows, and chooses the tables to fill, and their rows.

use std::collections::BTreeSet;

use ::fill::{SchemaTriggers, Skipped, TableRows};
use connect::Target;
use server::Session;

use super::assumed::{self, Assumed};
use super::cascades::Cascades;
use super::changes::Changes;
use super::copies::Copies;
use super::databases::Databases;
use super::fill::Filler;
use super::rehearse::{Shape, Table, Tables};
use super::rules::Rules;
use super::suit::{self, Retyped, Zoned};
use super::unsuited::Columns;
use super::{
    Measurement, Observer, defaults, dependents, left_out, locale, mappings, missing, settings, stall,
    unfired, zone,
};
use crate::better;
use crate::error::DdlError;
use crate::outcome::{Failed, StatementOutcome};
use crate::request::Amount;
use crate::triggers::{RowTrigger, RowTriggers};

/// Results of running the migration on tables without rows.
pub(super) struct Rehearsed<'a> {
    /// The fills that it needs.
    pub(super) recipe: Filler<'a>,
    /// The columns that it fills.
    pub(super) columns: Columns,
    /// Tables that stay empty though they could be filled, because no statement uses them.
    pub(super) unused: Vec<String>,
    /// The work of the statements.
    pub(super) works: Vec<Assumed>,
    /// Whether better ways will be measured.
    pub(super) has_better: bool,
    /// Whether the look disturbs a statement.
    pub(super) is_disturbed: bool,
    /// Number of transactions that wait for a blocker.
    pub(super) waiting: u32,
    /// Whether the schema had user mappings, which it no longer has.
    pub(super) had_mappings: bool,
    /// The roles that the schema has made.
    pub(super) roles: Vec<String>,
    /// The time zone, if it decides on a rewrite and nobody asked for it.
    pub(super) zone: Option<zone::Unasked>,
    /// The statements that the server refuses in the original.
    pub(super) refused: dependents::Refused,
    /// The triggers of the tables before the migration.
    pub(super) row_triggers: RowTriggers,
}

impl Measurement<'_> {
    /// Runs the migration on empty tables, and chooses the tables to fill, and their rows.
    pub(super) async fn rehearse(
        &self,
        site: &Copies<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Rehearsed<'_>, DdlError> {
        observer.step("creating the tables");
        let empty = site.databases.create("empty").await?;
        let session = Session::open(&empty).await?;
        let skipped = self.create_schema(&session, site.databases).await?;
        let had_mappings = mappings::were_dropped(&session).await?;
        let triggers = SchemaTriggers::read(&session.connection).await?;
        let row_triggers = self.row_triggers(&session).await?;
        session.close().await;
        let roles = site.databases.made_roles().await?;
        let of_skipped = left_out::warnings(&skipped, &self.request.schema.origin, &roles);
        for warning in of_skipped.iter().chain(&left_out::of_triggers(&triggers)) {
            observer.warned(warning);
        }
        observer.step("reading the tables and their constraints");
        let (tables, before) = (Tables::read(&empty).await?, Shape::read(&empty).await?);
        let inserted = tables.with_rows(&empty).await?;
        self.try_probes(site, &empty, observer).await?;
        let named = self.named().into_iter().map(|(option, name)| tables.named(option, name));
        let named: BTreeSet<u32> = named.collect::<Result<_, _>>()?;
        let mut statements = StatementOutcome::of_all(&self.request.script.statements);
        let mut added = Rules::new(&tables);
        let (at, schema) = ((site, &empty), &self.request.schema);
        let looked = dependents::look(at, schema, &mut statements, &mut added, observer);
        let (migrated, costs, refused) = Box::pin(looked).await?;
        missing::complete(&self.request.schema, &skipped, &mut statements);
        missing::name_alike(tables.filled().map(|(_, table)| table), &mut statements);
        if let Some(error) = certain(&statements) {
            return Err(error);
        }
        observer.step("reading the tables and their constraints after the migration");
        let mut after = Shape::read(&migrated).await?;
        let zoned = before.casts.zoned(&after.casts);
        let zone = self.unknown(site, [&empty, &migrated], (&zoned, &tables), observer).await?;
        added.add(std::mem::take(&mut after.rules), None);
        after.rules = added.all();
        site.databases.drop(&migrated).await?;
        let mut used = tables.used(&statements, &named);
        let is_filled =
            |oid: &u32| named.contains(oid) || !tables.get(*oid).is_some_and(Table::is_of_versions);
        used.retain(is_filled);
        let unused = tables.filled().filter(|(oid, _)| !used.contains(oid));
        let mut without_rows = self.request.without_rows();
        let mut known_empty = without_rows.clone();
        let of_versions = tables.filled().map(|(_, table)| table).filter(|table| table.is_of_versions());
        known_empty.extend(of_versions.map(Table::plain_name));
        let empty_ones: Vec<String> = unused.map(|(_, table)| table.plain_name()).collect();
        without_rows.retain(|name| !empty_ones.contains(name));
        observer.stage("choosing the rows of the tables");
        observer.step("adding the rules of the migration to the tables");
        let changes = Changes::of(&statements, &tables);
        let cascades = Cascades::read(&empty).await?;
        let unfired = unfired::warning(schema, &statements, (&changes, &cascades, &tables));
        let (additions, unsuited) = suit::additions(&empty, &tables, [&before, &after], &changes).await?;
        for warning in unfired.iter().chain(&unsuited) {
            observer.warned(warning);
        }
        let looked = (&tables, statements.as_slice());
        let defaults = defaults::rows(&empty, self.request, looked, added.beside()).await?;
        site.databases.drop(&empty).await?;
        let retyped =
            before.casts.retyped(&after.casts, (&tables, &changes), (statements.as_slice(), &added));
        let mut specs = self.specs(&retyped, observer);
        specs.extend(defaults.iter().map(|one| one.spec.clone()));
        let unused = empty_ones.iter().filter(|name| !known_empty.contains(name)).cloned().collect();
        let recipe = Filler {
            site: self.site,
            request: self.request,
            skipped,
            empty: empty_ones,
            without_rows,
            additions,
            specs,
            defaults,
            triggers,
            inserted,
        };
        let works = assumed::works(&statements, (&changes, &tables), &cascades);
        let better = better::migration(&statements, site.databases.version());
        let has_better = self.request.alternatives && better.is_some();
        let columns = Columns::of(&tables, [&before.casts, &after.casts], &added);
        let (is_disturbed, waiting) = (costs.is_disturbed, stall::waiting_transactions(&statements));
        Ok(Rehearsed {
            recipe,
            columns,
            unused,
            works,
            has_better,
            is_disturbed,
            waiting,
            had_mappings,
            roles,
            zone,
            refused,
            row_triggers,
        })
    }

    /// The triggers of the original, which the copy lacks, or of the schema.
    async fn row_triggers(&self, session: &Session) -> Result<RowTriggers, DdlError> {
        let schema = &self.request.schema;
        let are_lacking = schema.is_copy();
        let all = if are_lacking {
            schema.triggers.clone()
        } else {
            RowTrigger::of_database(&session.connection).await?
        };
        Ok(RowTriggers { all, are_lacking })
    }

    /// Runs the user's scripts of readers and writers once, in a copy of the tables without rows.
    async fn try_probes(
        &self,
        site: &Copies<'_>,
        empty: &Target,
        observer: &mut dyn Observer,
    ) -> Result<(), DdlError> {
        let Some(probes) = self.request.probes.as_ref().filter(|probes| probes.is_own()) else {
            return Ok(());
        };
        observer.step("trying the scripts of readers and writers");
        let copy = site.databases.copy(empty, "probe").await?;
        let with_settings = settings::with(&copy, site.settings);
        stall::check::check(&with_settings, probes, self.request.seed).await?;
        site.databases.drop(&copy).await?;
        Ok(())
    }

    /// Warns of statements on which an unknown time zone or locale has effects. Returns the time zone, if it decides on a rewrite and nobody asked for it.
    async fn unknown(
        &self,
        site: &Copies<'_>,
        [before, after]: [&Target; 2],
        (zoned, tables): (&[Zoned], &Tables),
        observer: &mut dyn Observer,
    ) -> Result<Option<zone::Unasked>, DdlError> {
        let zone = zone::unasked(self.request, after, (zoned, tables)).await?;
        let statements = self.request.script.statements.as_slice();
        let doubt = site.databases.doubt.as_ref();
        let of_locale = locale::warning(doubt, (statements, tables), [before, after]).await?;
        for warning in zone.iter().map(zone::Unasked::warning).chain(of_locale) {
            observer.warned(&warning);
        }
        Ok(zone)
    }

    /// Specifications of the columns whose types the migration changes; warns of those whose values in the original do not fit.
    fn specs(&self, retyped: &[Retyped], observer: &mut dyn Observer) -> Vec<String> {
        let schema = &self.request.schema;
        let unfit = retyped.iter().filter_map(|one| one.warning(schema, &self.request.script.statements));
        unfit.for_each(|warning| observer.warned(&warning));
        retyped.iter().filter_map(|one| one.spec(schema)).collect()
    }

    /// Creates the tables, and notes the roles that the SQL makes. Returns the statements that the server cannot run.
    async fn create_schema(
        &self,
        session: &Session,
        databases: &Databases,
    ) -> Result<Vec<Skipped>, DdlError> {
        session.run("BEGIN").await?;
        let skipped = ::fill::create_schema(&session.connection, &self.request.schema.sql).await?;
        databases.note_roles_of_schema(session).await?;
        session.run("COMMIT").await?;
        Ok(skipped)
    }

    /// The tables that options name, each with its option.
    fn named(&self) -> Vec<(&'static str, &str)> {
        let of_column = |text: &'_ str| -> Option<usize> { text.split('=').next()?.rfind('.') };
        let columns =
            self.request.columns.iter().filter_map(|text| Some(("--column", &text[..of_column(text)?])));
        let mut named: Vec<(&'static str, &str)> = columns.collect();
        match &self.request.amount {
            Amount::Sizes(sizes) => named.extend(sizes.iter().map(|size| ("--size", size.table.as_str()))),
            Amount::Rules(rules) => {
                for rule in rules {
                    named.push(("--rows", &rule.table));
                    if let TableRows::PerRow { of, .. } = &rule.rows {
                        named.push(("--rows", of));
                    }
                }
            }
            Amount::AsOriginal | Amount::Size(_) | Amount::Rows(_) => {}
        }
        named
    }
}

/// The error of the statements that the server refuses whatever rows there are; none if the first that fails is not one of them.
fn certain(statements: &[StatementOutcome]) -> Option<DdlError> {
    let mut failures = statements.iter().filter_map(|one| Some((one, one.failed.as_ref()?)));
    let (first, failed) = failures.next().filter(|(_, failed)| failed.is_certain)?;
    let other = |(one, failed): (&StatementOutcome, &Failed)| {
        format!("statement {} ({}): {}", one.number, one.statement.place(), failed.message)
    };
    let others = failures.filter(|(_, failed)| failed.is_certain).map(other).collect();
    let (number, place) = (first.number, first.statement.place());
    Some(DdlError::Statement { number, place, failed: failed.clone(), others })
}
