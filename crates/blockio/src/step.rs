//! The steps as data: the statements, and the least that a server must read and write for each.

use crate::plan::{MARK, Names, Plan};
use crate::request::Mode;
use server::quote::{literal, qualified};

/// Name of the setting whose rows queries search for; in the article `shared_buffers`.
const NAME: &str = "setting_0100";

/// One timed step.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    /// Its name in run documents; in [`Mode::Compat`] the collector's key.
    pub name: &'static str,
    /// Its title for people.
    pub title: &'static str,
    /// Key of the same work in the collector of the published check, if it has one.
    pub key: Option<&'static str>,
    pub(super) action: Action,
    /// The least that the step must read.
    pub(super) reads: Share,
    /// The least that the step must write.
    pub(super) writes: Share,
    /// Whether the table is evicted from shared_buffers before it, where that is possible.
    pub(super) evicts: bool,
}

/// Kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Create,
    Checkpoint,
    Vacuum,
    Query(Query),
    Index,
    Cluster,
}

/// The rows that a query searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Query {
    /// The rows of one setting in every copy, by a plan of the server's choice.
    ByName,
    /// All rows by an index scan.
    ByIndex,
    /// A range of copies in the middle; in the published check, half of all.
    Range,
}

/// A part of table and index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    Nothing,
    Heap,
    Index,
    HeapAndIndex,
    /// Blocks that the query's plan touched.
    Touched,
}

const fn step(name: &'static str, title: &'static str, action: Action, reads: Share, writes: Share) -> Step {
    Step { name, title, key: None, action, reads, writes, evicts: false }
}

impl Step {
    const fn evicted(self) -> Self {
        Self { evicts: true, ..self }
    }

    const fn known_as(self, key: &'static str) -> Self {
        Self { key: Some(key), ..self }
    }
}

/// pgrig's own steps, in order.
static OWN: [Step; 10] = [
    step("create", "create", Action::Create, Share::Nothing, Share::Heap).known_as("CREATE_TABLE"),
    step("checkpoint", "checkpoint", Action::Checkpoint, Share::Nothing, Share::Nothing),
    step("vacuum", "vacuum", Action::Vacuum, Share::Heap, Share::Heap).known_as("VACUUM"),
    step("scan-first", "first scan", Action::Query(Query::ByName), Share::Heap, Share::Nothing).evicted(),
    step("scan-again", "scan again", Action::Query(Query::ByName), Share::Heap, Share::Nothing),
    step("range", "1 % range", Action::Query(Query::Range), Share::Heap, Share::Nothing),
    step("create-index", "index", Action::Index, Share::Heap, Share::Index).known_as("CREATE_INDEX"),
    step("lookup-before", "lookup", Action::Query(Query::ByIndex), Share::Touched, Share::Nothing).evicted(),
    step("cluster", "cluster", Action::Cluster, Share::Heap, Share::HeapAndIndex).known_as("CLUSTER"),
    step("lookup-after", "lookup after", Action::Query(Query::ByIndex), Share::Touched, Share::Nothing)
        .evicted(),
];

/// The published statements, in the order of `cbc-psql.sql`, named as in `cbc-lines.txt`
/// (gregs1104/pgbench-tools, tests/cbc).
static COMPAT: [Step; 9] = [
    published("CREATE_TABLE", Action::Create, Share::Nothing, Share::Heap),
    published("VACUUM", Action::Vacuum, Share::Heap, Share::Heap),
    published("CREATE_INDEX", Action::Index, Share::Heap, Share::Index),
    published("SELECT_u1", Action::Query(Query::ByName), Share::Touched, Share::Nothing),
    published("SELECT_c1", Action::Query(Query::ByName), Share::Touched, Share::Nothing),
    published("SELECT_r", Action::Query(Query::Range), Share::Touched, Share::Nothing),
    published("CLUSTER", Action::Cluster, Share::Heap, Share::HeapAndIndex),
    published("SELECT_u2", Action::Query(Query::ByName), Share::Touched, Share::Nothing),
    published("SELECT_c2", Action::Query(Query::ByName), Share::Touched, Share::Nothing),
];

const fn published(key: &'static str, action: Action, reads: Share, writes: Share) -> Step {
    step(key, key, action, reads, writes).known_as(key)
}

/// The steps of a mode.
pub fn steps(mode: Mode) -> &'static [Step] {
    match mode {
        Mode::Own => &OWN,
        Mode::Compat => &COMPAT,
    }
}

impl Step {
    /// The step of that name.
    pub fn named(mode: Mode, name: &str) -> Option<&'static Self> {
        steps(mode).iter().find(|step| step.name == name)
    }

    /// The SQL of the step. A table gets its mark in the transaction that creates it.
    pub(super) fn sql(&self, plan: &Plan, names: &Names) -> String {
        let sql = match plan.request.mode {
            Mode::Own => self.own_sql(plan, names),
            Mode::Compat => self.published_sql(&plan.request.size_gb()),
        };
        match self.action {
            Action::Create => {
                let table = qualified(&plan.schema, &names.table);
                format!("{sql}\n;COMMENT ON TABLE {table} IS {}", literal(MARK))
            }
            _ => sql,
        }
    }

    fn own_sql(&self, plan: &Plan, names: &Names) -> String {
        let table = qualified(&plan.schema, &names.table);
        // Without the clock calls of TIMING; EXPLAIN reports waits for blocks in any case.
        let explain = "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) SELECT max(sourceline) FROM";
        match self.action {
            Action::Create => format!(
                "CREATE TABLE {table} WITH (autovacuum_enabled = off) AS SELECT gs.x AS seq, s.* \
                 FROM generate_series(0, {}) gs(x) LEFT JOIN {} s ON (true)",
                plan.copies - 1,
                qualified(&plan.schema, crate::plan::SETTINGS),
            ),
            Action::Checkpoint => "CHECKPOINT".to_owned(),
            Action::Vacuum => format!("VACUUM (FREEZE, ANALYZE, VERBOSE) {table}"),
            Action::Query(Query::ByName | Query::ByIndex) => {
                format!("{explain} {table} WHERE name = {}", literal(NAME))
            }
            Action::Query(Query::Range) => {
                let wanted = (plan.copies / 100).max(1);
                let first = (plan.copies - wanted) / 2;
                format!("{explain} {table} WHERE seq >= {first} AND seq < {}", first + wanted)
            }
            Action::Index => {
                format!("CREATE INDEX {} ON {table} (name)", server::quote::identifier(&names.index))
            }
            Action::Cluster => {
                format!("CLUSTER {table} USING {}", server::quote::identifier(&names.index))
            }
        }
    }

    /// The SQL as published.
    fn published_sql(&self, size_gb: &str) -> String {
        match self.action {
            Action::Create => format!(
                "CREATE TABLE settings_loop AS SELECT gs.x AS seq,pgs.* FROM \
                 generate_series(0, {size_gb} * 12500,1) gs(x) LEFT JOIN pg_settings pgs ON (true);"
            ),
            Action::Checkpoint => "CHECKPOINT;".to_owned(),
            Action::Vacuum => "VACUUM (FREEZE ON, ANALYZE ON, VERBOSE ON) settings_loop;".to_owned(),
            Action::Query(Query::ByName | Query::ByIndex) => "EXPLAIN (ANALYZE ON, BUFFERS ON) SELECT \
                 max(sourceline) FROM settings_loop WHERE name='shared_buffers';"
                .to_owned(),
            Action::Query(Query::Range) => format!(
                "EXPLAIN (ANALYZE ON, BUFFERS ON) SELECT max(sourceline) FROM settings_loop WHERE \
                 seq < {size_gb} * 6250 LIMIT {size_gb} * 125;"
            ),
            Action::Index => "CREATE INDEX by_name ON settings_loop (name);".to_owned(),
            Action::Cluster => "CLUSTER verbose settings_loop USING by_name;".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cbc-psql.sql` with `-v scale=0.3`, from `CREATE TABLE` to the last `EXPLAIN`.
    const PUBLISHED: &str = "\
CREATE TABLE settings_loop AS SELECT gs.x AS seq,pgs.* FROM generate_series(0, 0.3 * 12500,1) gs(x) LEFT JOIN pg_settings pgs ON (true);
VACUUM (FREEZE ON, ANALYZE ON, VERBOSE ON) settings_loop;
CREATE INDEX by_name ON settings_loop (name);
EXPLAIN (ANALYZE ON, BUFFERS ON) SELECT max(sourceline) FROM settings_loop WHERE name='shared_buffers';
EXPLAIN (ANALYZE ON, BUFFERS ON) SELECT max(sourceline) FROM settings_loop WHERE name='shared_buffers';
EXPLAIN (ANALYZE ON, BUFFERS ON) SELECT max(sourceline) FROM settings_loop WHERE seq < 0.3 * 6250 LIMIT 0.3 * 125;
CLUSTER verbose settings_loop USING by_name;
EXPLAIN (ANALYZE ON, BUFFERS ON) SELECT max(sourceline) FROM settings_loop WHERE name='shared_buffers';
EXPLAIN (ANALYZE ON, BUFFERS ON) SELECT max(sourceline) FROM settings_loop WHERE name='shared_buffers';";

    #[test]
    fn compat_is_what_was_published() {
        let sent: Vec<String> = COMPAT.iter().map(|step| step.published_sql("0.3")).collect();
        assert_eq!(sent.join("\n"), PUBLISHED);
    }
}
