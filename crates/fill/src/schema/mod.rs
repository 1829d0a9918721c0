//! Fills all tables of a schema: composed of fills of single tables, with the same modules
//! (request, plan, run, outcome).
//!
//! - `request`: the tables, the numbers of rows, and the user's options for individual tables.
//! - `plan/`: [`plan_schema`] reads the tables, puts them in an order in which each comes after those that it
//!   references, decides on the rows of each, and has a [`Plan`](crate::Plan) made for each. Keys of tables that come
//!   earlier are known before their rows are there, because a value follows from its row number.
//! - `record`: the table beside the filled ones from which an interrupted fill is completed.
//! - `run`: [`run_schema`] creates the tables and carries out the plans, in the order that the `task_queue` keeps.
//!   Tables of a cycle are one task.
//! - `views`: materialized views are refreshed after the rows; those that fail on them stay unpopulated.
//! - `triggers`: those of the schema, for callers that disable them while the tables are filled.
//! - `parts`: several processes load the rows; the last one to end carries out the steps after them.

mod create;
mod limits;
mod outcome;
mod parts;
mod plan;
mod record;
mod request;
mod run;
mod steps;
mod task_queue;
mod triggers;
mod views;

pub use create::create_schema;
pub use limits::SchemaLimits;
pub use outcome::{FilledTable, SchemaOutcome};
pub use plan::{
    OF_MODEL, PlannedTable, SchemaPlan, TableState, is_name_of, plan_schema, plan_schema_and_space,
    triggers_of_schema,
};
pub use request::{Modelled, ModelledType, OriginalHeap, RowsRule, SchemaAmount, SchemaRequest, TableRows};
pub use run::{SchemaObserver, run_schema};
pub use steps::FillSteps;
pub use triggers::SchemaTriggers;
pub use views::Unpopulated;
