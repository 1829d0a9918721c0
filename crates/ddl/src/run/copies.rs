//! Copies of the filled databases, in which the migration runs: to look at it, to time it, and with readers and writers. The last
//! run needs no copy.

use std::collections::BTreeSet;
use std::time::Duration;

use connect::{ConnectError, Target};

use super::cost::{self, Costs, Run};
use super::databases::Databases;
use super::fill::Filled;
use super::forecasts::sized;
use super::look::{Look, Looked};
use super::missed::Missed;
use super::rehearse::{Table, Tables};
use super::rules::Rules;
use super::settings::with;
use super::stall::{self, Candidates};
use super::{Observer, workers};
use crate::error::DdlError;
use crate::find::{Class, Kind};
use crate::outcome::{AtSize, Probed, Space, SpaceAt, Stall, StatementOutcome, TableAt};
use crate::request::Probes;
use crate::script::StatementKind;

/// Runs the migration in copies of databases.
pub(crate) struct Copies<'a> {
    pub(crate) databases: &'a Databases,
    pub(crate) settings: &'a [(String, String)],
}

impl Copies<'_> {
    /// Looks at the statements in a copy of the size at this place. If `is_timed`, this run is also one that counts. If the look disturbed a
    /// statement, the costs are those of another run, and some of the spaces ([`take_spaces`]). Returns whether there was one.
    pub(crate) async fn look_at_all(
        &self,
        (filled, place): (&Filled, usize),
        statements: &mut [StatementOutcome],
        is_timed: bool,
        observer: &mut dyn Observer,
    ) -> Result<bool, DdlError> {
        let (copy, mut costs) =
            Box::pin(self.look_as(&filled.database, statements, (is_timed, None), observer)).await?;
        self.databases.drop(&copy).await?;
        let is_disturbed = costs.is_disturbed;
        if is_disturbed {
            observer.stage("timing the statements that the look disturbed");
            costs = self.run(statements, &filled.database, true, observer).await?;
            take_spaces(statements, costs.spaces());
        }
        for one in statements.iter_mut() {
            let oids = one.found.as_ref().map(|found| &found.tables);
            let is_of = |table: &&TableAt| oids.is_some_and(|oids| oids.contains(&table.oid));
            one.tables = filled.tables.iter().filter(is_of).map(|table| table.name.clone()).collect();
            if let Some(found) = &one.found {
                // A forecast knows the sizes from which on a sort writes files.
                let temporary = found.space.temporary.or(found.missed_temporary.then_some(0));
                let space = Space { temporary, ..found.space };
                one.spaces.push(SpaceAt { place, bytes: 0, rows: 0, space });
            }
        }
        if is_timed {
            add(statements, costs, place);
        }
        Ok(is_disturbed)
    }

    /// Looks at the statements in a copy, which it returns with their costs, and reads the rules after each. If one fails, begins anew without it.
    pub(crate) async fn look(
        &self,
        original: &Target,
        statements: &mut [StatementOutcome],
        rules: &mut Rules,
        observer: &mut dyn Observer,
    ) -> Result<(Target, Costs), DdlError> {
        Box::pin(self.look_as(original, statements, (false, Some(rules)), observer)).await
    }

    /// The same, with rules if there are any to read. If their times do not count (`is_timed`), the statements have parallel workers only where the server counts what these read.
    async fn look_as(
        &self,
        original: &Target,
        statements: &mut [StatementOutcome],
        (is_timed, mut rules): (bool, Option<&mut Rules>),
        observer: &mut dyn Observer,
    ) -> Result<(Target, Costs), DdlError> {
        loop {
            observer.step("copying the tables");
            let copy = self.databases.copy(original, "look").await?;
            let migrating = self.with_settings(&copy);
            let version = self.databases.version();
            let migrating = if is_timed { migrating } else { workers::counted(migrating, version) };
            let looked = self.look_once((&copy, &migrating), statements, rules.as_deref_mut(), observer);
            if let Some(costs) = looked.await? {
                return Ok((copy, costs));
            }
            self.databases.drop(&copy).await?;
        }
    }

    /// The costs of the statements; none if one failed that had not before.
    async fn look_once(
        &self,
        (copy, migrating): (&Target, &Target),
        statements: &mut [StatementOutcome],
        mut rules: Option<&mut Rules>,
        observer: &mut dyn Observer,
    ) -> Result<Option<Costs>, DdlError> {
        if let Some(rules) = rules.as_deref_mut() {
            rules.clear();
        }
        let mut look = Look::begin(copy, migrating, self.databases).await?;
        // The first change of a page after a checkpoint writes the whole page to WAL, also of those that the look has changed.
        self.databases.flush().await?;
        let of = statements.len();
        let mut costs = Costs::of(statements.len());
        let mut missed = Missed::default();
        let until = runnable(statements);
        let to_run = statements[..until].iter().enumerate().filter(|(_, one)| one.failed.is_none());
        let to_run: Vec<usize> = to_run.map(|(place, _)| place).collect();
        for place in to_run {
            let one = &mut statements[place];
            observer.statement(one.number, of, &one.statement);
            observer.step("running the statement");
            match look.statement(&one.statement).await? {
                Looked::Ran(ran) => {
                    one.found = ran.effects;
                    costs.is_disturbed |= ran.is_disturbed;
                    costs.ran(place, (ran.took, ran.wal), &one.statement, look.is_in_transaction());
                    if let Some(rules) = rules.as_deref_mut().filter(|_| one.found.is_some()) {
                        look.read_rules(rules, place).await?;
                    }
                }
                Looked::Failed(failed) => {
                    (one.found, one.failed) = (None, Some(failed));
                    look.end().await;
                    return Ok(None);
                }
            }
            // Without rows, there is nothing to sort.
            if rules.is_none() && !look.is_in_transaction() {
                self.mark(&mut missed, &look, &mut statements[..=place], false).await?;
            }
        }
        if rules.is_none() {
            self.mark(&mut missed, &look, statements, true).await?;
        }
        look.end().await;
        Ok(Some(costs))
    }

    /// Marks the statements so far whose temporary files were missed.
    async fn mark(
        &self,
        missed: &mut Missed,
        look: &Look<'_>,
        statements: &mut [StatementOutcome],
        is_last: bool,
    ) -> Result<(), ConnectError> {
        let (session, watcher) = look.sessions();
        missed.mark((session, watcher, self.databases.version()), statements, is_last).await
    }

    /// Times the statements in a copy of the size at this place.
    pub(crate) async fn time(
        &self,
        statements: &mut [StatementOutcome],
        (filled, place): (&Filled, usize),
        observer: &mut dyn Observer,
    ) -> Result<(), DdlError> {
        let costs = self.run(statements, &filled.database, false, observer).await?;
        add(statements, costs, place);
        Ok(())
    }

    /// The costs of the statements in a copy; also their spaces, if `has_spaces`. If one fails that did not before, begins anew without it.
    async fn run(
        &self,
        statements: &mut [StatementOutcome],
        original: &Target,
        has_spaces: bool,
        observer: &mut dyn Observer,
    ) -> Result<Costs, DdlError> {
        loop {
            observer.step("copying the tables");
            let copy = self.databases.copy(original, "cost").await?;
            let migrating = self.with_settings(&copy);
            let to_run = &statements[..runnable(statements)];
            let run =
                cost::measure((&copy, &migrating), (self.databases, has_spaces), to_run, observer).await?;
            self.databases.drop(&copy).await?;
            match run {
                Run::Failed(number, failed) => statements[number].failed = Some(failed),
                Run::Done(costs) => return Ok(costs),
            }
        }
    }

    /// The waits of readers and writers in a copy, those of each statement by its place; in the database itself, which is then
    /// dropped, if no later run needs it (`is_last`). `run` has the time of a blocker, if there is one, and the seed.
    pub(crate) async fn stall(
        &self,
        (filled, is_last): (&Filled, bool),
        statements: &[StatementOutcome],
        probes: &Probes,
        run: (Option<Duration>, u64),
        observer: &mut dyn Observer,
    ) -> Result<(Probed, Vec<Option<Stall>>), DdlError> {
        observer.step("copying the tables");
        let copy = if is_last {
            self.databases.take(&filled.database, "stall").await?
        } else {
            self.databases.copy(&filled.database, "stall").await?
        };
        let tables = Tables::read(&copy).await?;
        let held = statements.iter().filter_map(|one| one.found.as_ref()).flat_map(|found| found.held.keys());
        let roots: BTreeSet<u32> = held.filter_map(|oid| Some(tables.get(*oid)?.root())).collect();
        let oids = tables.filled().map(|(oid, _)| oid).filter(|oid| roots.contains(oid)).collect();
        let is_view = |oid: &u32| {
            let kind = tables.get(*oid).map(Table::kind);
            matches!(kind, Some(Kind::MaterializedView | Kind::Other))
        };
        let views = roots.iter().copied().filter(is_view).collect();
        let candidates = Candidates::of(&tables, (oids, views), &filled.tables);
        let until = runnable(statements);
        let migrating = self.with_settings(&copy);
        let targets = (&copy, &migrating);
        let statements = &statements[..until];
        let measured =
            stall::measure(self.databases, targets, statements, &candidates, probes, run, observer);
        let found = measured.await?;
        self.databases.drop(&copy).await?;
        Ok((found.probed, found.stalls))
    }

    fn with_settings(&self, target: &Target) -> Target {
        with(target, self.settings)
    }
}

/// Takes the spaces of a run without pgrig's own transactions: of statements outside of transactions, and of those that change rows or copy files
/// after these, because they may find dead rows that the look has left, or fewer, or files that VACUUM could not truncate there. Of all others, the spaces of the look are right: its last
/// reading comes before the commit, and sees the old files beside the new ones. In this run, it comes after the commit.
fn take_spaces(statements: &mut [StatementOutcome], spaces: &[Option<Space>]) {
    let mut is_after = false;
    for (one, space) in statements.iter_mut().zip(spaces) {
        let Some(found) = &mut one.found else { continue };
        let is_disturbed = found.is_alone || is_after && matches!(found.class, Class::Rows | Class::Copy);
        if let Some(space) = space.filter(|_| is_disturbed) {
            let is_seen = space.temporary.is_some_and(|bytes| bytes > 0);
            let temporary = if is_seen { space.temporary } else { found.space.temporary };
            found.missed_temporary &= !is_seen;
            found.space = Space { temporary, ..space };
        }
        is_after |= found.is_alone;
    }
}

/// Adds a run at the size at this place. [`set_sizes`] has its bytes.
fn add(statements: &mut [StatementOutcome], costs: Costs, place: usize) {
    for (one, cost) in statements.iter_mut().zip(costs.all()) {
        let Some(cost) = cost else { continue };
        if one.measured.len() <= place {
            one.measured.push(AtSize { bytes: 0, rows: 0, runs: Vec::new() });
        }
        one.measured[place].runs.push(cost);
    }
}

/// Sets the bytes and rows at each size: of the tables that the last look found, because a statement may use others at another size.
pub(crate) fn set_sizes(statements: &mut [StatementOutcome], filled: &[Filled]) {
    for one in statements {
        let sizes: Vec<(u64, u64)> = filled.iter().map(|at| sized(&one.tables, &at.tables)).collect();
        for (at, size) in one.measured.iter_mut().zip(&sizes) {
            (at.bytes, at.rows) = *size;
        }
        for at in &mut one.spaces {
            (at.bytes, at.rows) = sizes[at.place];
        }
    }
}

/// The statements before this place run: after a failure of one that begins or ends a transaction, none does.
fn runnable(statements: &[StatementOutcome]) -> usize {
    let ends =
        |one: &StatementOutcome| one.failed.is_some() && one.statement.kind == StatementKind::Transaction;
    statements.iter().position(ends).unwrap_or(statements.len())
}
