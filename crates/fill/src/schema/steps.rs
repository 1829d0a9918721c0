//! A schema fill as steps, for a caller that shows one line.

use super::plan::{PlannedTable, SchemaPlan};
use super::run::SchemaObserver;
use crate::run::{Observer, Unwatched};
use server::Steps;
use server::quote::shown_qualified;

/// Tells of each table as a step.
pub struct FillSteps<'a> {
    steps: Steps<'a>,
    tables: usize,
}

impl<'a> FillSteps<'a> {
    /// For the fill that this plan describes.
    pub fn new(plan: &SchemaPlan, steps: Steps<'a>) -> Self {
        Self { steps, tables: plan.tables.len() }
    }

    fn table(&self, doing: &str, place: usize, table: &PlannedTable) {
        let name = shown_qualified(&table.schema, &table.name);
        (self.steps)(&format!("{doing} {name}, table {} of {}", place + 1, self.tables));
    }
}

impl SchemaObserver for FillSteps<'_> {
    fn step(&self, text: &str) {
        (self.steps)(text);
    }

    fn table_started<'o>(&'o self, place: usize, table: &'o PlannedTable) -> Box<dyn Observer + 'o> {
        self.table("filling", place, table);
        Box::new(Unwatched)
    }

    fn foreign_key_started<'o>(&'o self, place: usize, table: &'o PlannedTable) -> Box<dyn Observer + 'o> {
        self.table("adding a foreign key to", place, table);
        Box::new(Unwatched)
    }

    fn waiting(&self, _: &str) {}
}
