//! The rest of a fill that was interrupted.

use catalog::{Scope, TableInfo};

use super::{
    PlannedTable, Planner, Postponed, PostponedKey, SchemaPlan, TableState, cycles, different, divisible,
    postponed, tables, whole,
};
use crate::error::{BegunError, FillError};
use crate::ledger;
use crate::plan::{Plan, plan};
use crate::schema::record::{self, Begun, RecordedTable};
use crate::schema::request::SchemaAmount;
use server::ask;
use server::quote::qualified;

impl Planner<'_> {
    /// Plans for the tables that are not filled yet.
    ///
    /// # Errors
    /// If a table is not as the fill left it.
    pub(super) async fn resumed(&self, begun: Begun) -> Result<SchemaPlan, FillError> {
        let filled_before = Some(begun.tables.iter().filter(|(_, is_filled)| *is_filled).count());
        let names: Vec<String> = begun
            .tables
            .iter()
            .map(|(recorded, _)| qualified(&recorded.schema, &recorded.described.name))
            .collect();
        let numbers: Vec<Option<usize>> = begun
            .tables
            .iter()
            .map(|(recorded, _)| recorded.cycle.as_ref().map(|cycle| cycle.number))
            .collect();
        let shown: Vec<String> =
            begun.tables.iter().map(|(recorded, _)| recorded.described.name.clone()).collect();
        if self.request.part.is_some() {
            divisible(begun.tables.iter().filter(|(_, is_marked)| !is_marked).map(|(recorded, _)| recorded))?;
        }
        (self.steps)("reading the catalogs on the tables");
        let infos = TableInfo::read_all(&self.connection.client, &names, Scope::Idle).await?;
        let mut planned = Vec::with_capacity(begun.tables.len());
        for (at, ((recorded, is_marked), info)) in begun.tables.into_iter().zip(infos).enumerate() {
            (self.steps)(&format!("looking at {}, table {} of {}", names[at], at + 1, names.len()));
            let is_member = |other: &usize| numbers[at].is_some() && numbers[*other] == numbers[at];
            let before = (0..at).filter(is_member).map(|other| names[other].clone());
            let together = before.chain(names[at + 1..].iter().cloned()).collect();
            // Those of a table that is marked are made.
            let makes = if is_marked { Vec::new() } else { recorded.postponed.makes.clone() };
            let foreign_keys = self.unmade(&names[at], &recorded.postponed.foreign_keys).await?;
            let recorded = RecordedTable { postponed: Postponed { makes, foreign_keys }, ..recorded };
            let left = match self.left(info?, &recorded, is_marked, together).await {
                // A fill that is going on has filled it since the record was read.
                Err(changed @ FillError::Begun(BegunError::TableChanged { .. })) => {
                    return Err(self.in_hand(&begun.schema).await?.unwrap_or(changed));
                }
                left => left?,
            };
            let state = match left {
                None => TableState::Filled,
                Some(mut plan) => {
                    // Not once it has foreign keys, if a crash has emptied tables that are unlogged.
                    if recorded.whole
                        && self.request.part.is_none()
                        && self.stand_alone(&names[at..=at]).await?
                    {
                        whole::load_whole(&mut plan);
                    }
                    postponed::announce(&mut plan, &recorded.postponed);
                    let members: Vec<&str> =
                        (0..shown.len()).filter(is_member).map(|other| &*shown[other]).collect();
                    cycles::announce(&mut plan, &recorded, &members);
                    TableState::ToFill(Box::new(plan))
                }
            };
            planned.push(PlannedTable {
                schema: recorded.schema.clone(),
                name: recorded.described.name.clone(),
                rows: recorded.described.rows.saturating_sub(recorded.first_row),
                why: recorded.why.clone(),
                predicted: recorded.predicted,
                state,
                recorded,
            });
        }
        different::announce(&mut planned, self.request);
        let size = match self.request.amount {
            SchemaAmount::Size(size) => Some(size),
            SchemaAmount::Rows(_) | SchemaAmount::Rules => None,
        };
        Ok(SchemaPlan {
            request: self.request.clone(),
            create: Vec::new(),
            record_schema: begun.schema,
            is_resumed: true,
            filled_before,
            size,
            tables: planned,
            skipped: Vec::new(),
            warnings: Vec::new(),
        })
    }

    /// The error of a fill that another session runs, if one does.
    async fn in_hand(&self, schema: &str) -> Result<Option<FillError>, FillError> {
        let query = include_str!("../../sql/in_hand.sql");
        let pid: Option<i32> = ask(self.connection, query, &[&record::name(schema)]).await?.get("pid");
        Ok(pid.map(|pid| BegunError::InHand { pid }.into()))
    }

    /// The foreign keys of these that do not exist in the table.
    async fn unmade(&self, table: &str, keys: &[PostponedKey]) -> Result<Vec<PostponedKey>, FillError> {
        let mut unmade = Vec::new();
        for key in keys {
            let query = include_str!("../../sql/has_constraint.sql");
            if !ask(self.connection, query, &[&table, &key.name]).await?.get::<_, bool>(0) {
                unmade.push(key.clone());
            }
        }
        Ok(unmade)
    }

    /// The plan for the missing rows of a table; none if it is filled.
    async fn left(
        &self,
        info: TableInfo,
        recorded: &RecordedTable,
        is_marked: bool,
        together: Vec<String>,
    ) -> Result<Option<Plan>, FillError> {
        let name = qualified(&recorded.schema, &recorded.described.name);
        let has_rows: bool =
            ask(self.connection, &format!("SELECT EXISTS (SELECT FROM {name})"), &[]).await?.get(0);
        let rows = recorded.described.rows.saturating_sub(recorded.first_row);
        // A crash of the server empties unlogged tables.
        if is_marked && (has_rows || rows == 0) {
            return Ok(None);
        }
        let query = include_str!("../../sql/ledger.sql");
        let ledger = ledger::name(&recorded.described.name);
        let has_ledger: bool =
            ask(self.connection, query, &[&recorded.schema, &ledger]).await?.get("ledger_exists");
        let request = tables::request_for(self.request, recorded, together.clone());
        if has_ledger {
            return plan(self.survey, self.connection, &request, true).await.map(Some);
        }
        if has_rows && !self.request.append {
            return Err(BegunError::TableChanged { table: info.shown() }.into());
        }
        self.plan_of(info, recorded, together).await.map(Some)
    }
}
