//! The statements that create the tables as `pgbench -i` does.

use dump::{Piece, Reader};
use rowgen::{Column, Table, Values};
use tokio_postgres::error::{ErrorPosition, SqlState};

use super::absent::Adapted;
use crate::error::FillError;
use crate::plan::tables::{bound, key, leaves};
use crate::plan::{Method, Plan};
use crate::request::{IndexKind, InitStep, Persistence};
use crate::run::scratch::SCRATCH_MARK;
use connect::Connection;
use server::ask;
use server::marked;
use server::quote::{identifier, literal, qualified};

/// All statements of the step `create`, in order. Constant columns have their values as defaults
/// during the load.
pub(crate) fn create(plan: &Plan) -> Vec<String> {
    let tables = &plan.tables;
    if plan.is_own_table() {
        return plan.create.clone();
    }
    let schema = plan.create_schema.then(|| {
        let schema = identifier(&plan.schema);
        let mark = plan
            .request
            .is_scratch
            .then(|| format!("; COMMENT ON SCHEMA {schema} IS {}", literal(SCRATCH_MARK)));
        format!("CREATE SCHEMA {schema}{}", mark.unwrap_or_default())
    });
    let small = tables.small.iter().map(|table| create_plain(plan, table));
    let is_made_with_rows = plan.partitions.is_none() && plan.method == Method::CreateTableAs;
    let marks = tables.all().filter(|_| !is_made_with_rows).filter_map(|table| mark(plan, table));
    let bulk = match plan.partitions {
        // Made with its rows.
        None if plan.method == Method::CreateTableAs => Vec::new(),
        None => vec![create_plain(plan, &tables.bulk)],
        Some(partitions) => {
            let parent = qualified(&plan.schema, &tables.bulk.name);
            let by = partitions.method.sql();
            let key = key(&tables.bulk).map_or("", |key| &key.name);
            let mut statements = vec![format!(
                "CREATE TABLE {parent} ({}) PARTITION BY {by} ({})",
                columns(&tables.bulk),
                identifier(key)
            )];
            for (number, leaf) in (0..).zip(leaves(&tables.bulk, plan.partitions)) {
                statements.push(format!(
                    "CREATE {}TABLE {} PARTITION OF {parent} FOR VALUES {}{}",
                    persistence(plan),
                    qualified(&plan.schema, &leaf),
                    bound(tables.bulk.rows, partitions, number),
                    options(plan, &tables.bulk)
                ));
            }
            statements
        }
    };
    schema.into_iter().chain(small).chain(bulk).chain(marks).collect()
}

/// The comment that marks a table as one of `--ladder`, so that only such tables are dropped later.
pub(crate) fn mark(plan: &Plan, table: &Table) -> Option<String> {
    let name = qualified(&plan.schema, &table.name);
    plan.request.is_scratch.then(|| format!("COMMENT ON TABLE {name} IS {}", literal(SCRATCH_MARK)))
}

fn create_plain(plan: &Plan, table: &Table) -> String {
    let name = qualified(&plan.schema, &table.name);
    format!("CREATE {}TABLE {name} ({}){}", persistence(plan), columns(table), options(plan, table))
}

fn persistence(plan: &Plan) -> &'static str {
    match plan.persistence {
        Persistence::Logged => "",
        Persistence::Unlogged => "UNLOGGED ",
    }
}

/// Storage parameters and tablespace. pgbench gives every table but the empty history its
/// fillfactor, 100 too.
fn options(plan: &Plan, table: &Table) -> String {
    let fillfactor = plan.load_fillfactor();
    let mut parameters = Vec::new();
    if key(table).is_some() {
        parameters.push(format!("fillfactor = {fillfactor}"));
    }
    if !plan.autovacuum {
        parameters.push("autovacuum_enabled = off".to_owned());
    }
    let with =
        if parameters.is_empty() { String::new() } else { format!(" WITH ({})", parameters.join(", ")) };
    let tablespace =
        plan.tablespace.as_ref().map_or(String::new(), |name| format!(" TABLESPACE {}", identifier(name)));
    with + &tablespace
}

fn columns(table: &Table) -> String {
    table.columns.iter().map(column).collect::<Vec<_>>().join(", ")
}

fn column(column: &Column) -> String {
    let not_null = if column.not_null { " NOT NULL" } else { "" };
    let default = default(column).map_or(String::new(), |value| format!(" DEFAULT {value}"));
    format!("{} {}{not_null}{default}", identifier(&column.name), column.kind.sql())
}

/// A constant column's value, unless it is NULL anyway.
fn default(column: &Column) -> Option<String> {
    match &column.values {
        Values::Int(value) => Some(value.to_string()),
        Values::Text(text) => Some(literal(text)),
        _ => None,
    }
}

/// The user's SQL, after the statements of `before`, wrapped so that it cannot end its transaction:
/// the server refuses COMMIT and similar commands there. Unqualified names belong to `schema`, if
/// one is given. First, they wait until no other pgrig creates tables in this schema.
pub(crate) fn of_script(schema: Option<&str>, create_schema: bool, script: &Adapted) -> Vec<String> {
    let create =
        schema.filter(|_| create_schema).map(|schema| format!("CREATE SCHEMA {}", identifier(schema)));
    let path = schema.map(|schema| {
        let first = literal(&format!("{}, ", identifier(schema)));
        format!("SELECT set_config('search_path', {first} || current_setting('search_path'), true)")
    });
    let execute = format!("DO LANGUAGE plpgsql {}", literal(&block(&script.sql)));
    [alone(schema)]
        .into_iter()
        .chain(script.before.iter().cloned())
        .chain(create)
        .chain(path)
        .chain([execute])
        .collect()
}

/// A statement that waits until no other transaction of pgrig's creates tables in this schema, and holds up others until its
/// transaction ends.
///
/// PostgreSQL 18 chooses names of sequences and indexes that no transaction under way has taken. That of a pgrig which was killed a
/// moment ago may still be under way, and a plan would have names that the tables do not get.
fn alone(schema: Option<&str>) -> String {
    let name = format!("pgrig create {}", schema.unwrap_or_default());
    format!("SELECT pg_advisory_xact_lock({}, hashtext({}))", marked::NUMBER, literal(&name))
}

/// A PL/pgSQL block that executes the script's statements. Each EXECUTE is on the block's line that has the number of
/// the statement's first line in the script, so that the context of an error tells it.
fn block(script: &str) -> String {
    let mut block = "BEGIN".to_owned();
    let mut line = 1;
    for (first_line, statement) in statements(script) {
        // The server reads this literal when it executes it: perhaps after a SET of standard_conforming_strings.
        let execute = format!(" EXECUTE E{};", literal(&statement.replace('\\', "\\\\")));
        block.extend(std::iter::repeat_n('\n', first_line.saturating_sub(line)));
        line = line.max(first_line) + execute.matches('\n').count();
        block.push_str(&execute);
    }
    block + " END"
}

/// The script's statements with the lines on which they begin, from 1. A script that cannot be cut is one statement, and
/// the server reports its error.
fn statements(script: &str) -> Vec<(usize, String)> {
    let mut reader = Reader::new(script.as_bytes());
    let mut statements = Vec::new();
    loop {
        let statement = match reader.next() {
            Ok(Some(Piece::Statement(bytes))) => String::from_utf8_lossy(bytes).into_owned(),
            Ok(Some(Piece::Between(_))) => continue,
            Ok(None) => return statements,
            Ok(Some(_)) | Err(_) => return vec![(1, script.to_owned())],
        };
        statements.push((usize::try_from(reader.line()).unwrap_or(1), statement));
    }
}

/// The part of an error of [`run_script`] that names another database.
pub(crate) const ANOTHER_DATABASE: &str = "another database: -d DBNAME";
/// The remedy of [`run_script`] for an object that the database lacks.
pub(crate) const CREATE_FIRST: &str = ". Create it in that database first, or leave it out of the statement";
/// The end of an error of [`run_script`] that is for --ddl, not for a model.
pub(crate) const INSTEAD_OF_DDL: &str = " or --table NAME instead of --ddl";

/// Runs the statements of the user's script.
///
/// # Errors
/// [`FillError::Ddl`] with the line that the server complains about.
pub(crate) async fn run_script(connection: &Connection, statements: &[String]) -> Result<(), FillError> {
    // A failed transaction answers no query.
    let role: String = ask(connection, "SELECT quote_ident(current_user)", &[]).await?.get(0);
    let Err(error) = connection.client.batch_execute(&statements.join(";\n")).await else { return Ok(()) };
    let line = line_of(&error).map_or(String::new(), |line| format!("line {line}: "));
    let of_transaction = error.as_db_error().is_some_and(|error| {
        error.code() == &SqlState::FEATURE_NOT_SUPPORTED && error.message().contains("transaction commands")
    });
    if of_transaction {
        return Err(FillError::refused_ddl(
            "pgrig runs the statements in a transaction of its own: remove BEGIN, COMMIT and all other statements that \
             begin or end one. Nothing was changed",
        ));
    }
    let exists = [SqlState::DUPLICATE_TABLE, SqlState::DUPLICATE_OBJECT, SqlState::DUPLICATE_FUNCTION];
    let is_there = error.code().is_some_and(|code| exists.contains(code));
    let remedy = if is_there {
        ". If another pgrig fill creates them at the same time, wait for its end. To create the tables elsewhere, give --schema NAME if \
         the statements name no schema, or another database: -d DBNAME. To fill tables that exist, give --all-tables or --table NAME instead of --ddl"
    } else if error.code() == Some(&SqlState::UNDEFINED_OBJECT) {
        CREATE_FIRST
    } else if is_of_missing_extension(&error) {
        ". Install it on that server, or leave it out of the statements"
    } else if error.code() == Some(&SqlState::ACTIVE_SQL_TRANSACTION) {
        ". pgrig runs the statements in one transaction: leave out CONCURRENTLY, and create databases and tablespaces first"
    } else {
        ""
    };
    let remedy = if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) {
        &format!(
            ". Grant role {role} the missing privilege (for schema public: GRANT CREATE ON SCHEMA public TO {role}), \
             connect as another role, or give another --schema"
        )
    } else {
        remedy
    };
    let sqlstate = error.code().cloned();
    let said = connection.explain(error).await.to_string();
    // The statement is the first one of the script, which waits for other fills.
    let said = said.split("; the statement: ").next().filter(|_| is_there).unwrap_or(&said);
    let said = said.trim_end_matches('.');
    Err(FillError::Ddl { problem: format!("{line}{said}. Nothing was changed{remedy}"), sqlstate })
}

/// Whether the server lacks the files of an extension (`parse_extension_control_file` in `extension.c`: from PostgreSQL 15
/// on, the SQLSTATE is that of all that is not supported).
fn is_of_missing_extension(error: &tokio_postgres::Error) -> bool {
    let is_not_available =
        || error.as_db_error().is_some_and(|error| error.message().starts_with("extension "));
    match error.code() {
        Some(code) if *code == SqlState::UNDEFINED_FILE => true,
        Some(code) if *code == SqlState::FEATURE_NOT_SUPPORTED => is_not_available(),
        _ => false,
    }
}

/// The line of the user's script that the server complains about, if it is known: that of the position that the server
/// reports within the statement, or else that on which the statement begins.
fn line_of(error: &tokio_postgres::Error) -> Option<usize> {
    let error = error.as_db_error()?;
    let context = error.where_()?;
    let first = context.rfind(BLOCK).and_then(|at| number(&context[at + BLOCK.len()..]))?;
    let within = match error.position() {
        // In a function that the statement calls, the position is that in the function's text.
        Some(ErrorPosition::Internal { position, query }) if context.matches("PL/pgSQL").count() == 1 => {
            let before = query.chars().take(usize::try_from(*position).ok()?);
            before.filter(|character| *character == '\n').count()
        }
        _ => 0,
    };
    Some(first + within)
}

/// Name of the block in the context of an error (`plpgsql_compile_inline` in `pl_comp.c`); the line follows.
const BLOCK: &str = "inline_code_block";

/// The first number in the text.
fn number(text: &str) -> Option<usize> {
    let digits = text.trim_start_matches(|character: char| !character.is_ascii_digit());
    let end = digits.find(|character: char| !character.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// CREATE TABLE AS, with all rows: article 000's level 0.
pub(crate) fn create_table_as(plan: &Plan, table: &Table) -> String {
    let column = &table.columns[0];
    let series =
        format!("generate_series(1::{kind}, {rows}::{kind})", kind = column.kind.sql(), rows = table.rows);
    format!(
        "CREATE {}TABLE {}{} AS SELECT {series} AS {}",
        persistence(plan),
        qualified(&plan.schema, &table.name),
        options(plan, table),
        identifier(&column.name)
    )
}

/// Sets the load's defaults on an existing table again: crash recovery may have emptied unlogged
/// tables after the defaults were dropped.
pub(crate) fn set_defaults(plan: &Plan, table: &Table) -> Option<String> {
    alter_columns(plan, table, |column| default(column).map(|value| format!("SET DEFAULT {value}")))
}

/// Takes the load's defaults away again; none where the table has none.
pub(crate) fn drop_defaults(plan: &Plan, table: &Table) -> Option<String> {
    alter_columns(plan, table, |column| default(column).map(|_| "DROP DEFAULT".to_owned()))
}

fn alter_columns(plan: &Plan, table: &Table, action: impl Fn(&Column) -> Option<String>) -> Option<String> {
    let actions: Vec<String> = table
        .columns
        .iter()
        .filter_map(|column| Some(format!("ALTER {} {}", identifier(&column.name), action(column)?)))
        .collect();
    let name = qualified(&plan.schema, &table.name);
    (!actions.is_empty()).then(|| format!("ALTER TABLE {name} {}", actions.join(", ")))
}

/// DROP TABLE of all that exist, in one statement as they may reference each other.
pub(crate) fn drop_tables(plan: &Plan) -> String {
    let names: Vec<String> = plan.dropped.iter().map(|name| qualified(&plan.schema, name)).collect();
    format!("DROP TABLE {}", names.join(", "))
}

/// The bulk table's index, as asked for, or a small table's primary key; none for history.
pub(crate) fn add_index(plan: &Plan, table: &Table) -> Option<String> {
    let column = identifier(&key(table)?.name);
    let name = qualified(&plan.schema, &table.name);
    let tablespace = plan.index_tablespace.as_ref().map(|name| identifier(name));
    let is_bulk = table.name == plan.tables.bulk.name;
    match plan.index {
        IndexKind::None => None,
        IndexKind::Brin if is_bulk => {
            let index = identifier(&brin_name(table));
            let at = tablespace.map_or(String::new(), |name| format!(" TABLESPACE {name}"));
            Some(format!("CREATE INDEX {index} ON {name} USING brin ({column}){at}"))
        }
        IndexKind::Brin | IndexKind::Btree => {
            let at = tablespace.map_or(String::new(), |name| format!(" USING INDEX TABLESPACE {name}"));
            Some(format!("ALTER TABLE {name} ADD PRIMARY KEY ({column}){at}"))
        }
    }
}

/// Adds the primary key of a relation that holds rows of the bulk table. The primary key of the
/// whole table then uses it.
pub(crate) fn add_key(plan: &Plan, relation: &str) -> Vec<String> {
    let leaf = Table { name: relation.to_owned(), ..plan.tables.bulk.clone() };
    add_index(plan, &leaf).into_iter().collect()
}

/// Name of the BRIN index, as PostgreSQL names indexes.
pub(crate) fn brin_name(table: &Table) -> String {
    key(table).map_or(String::new(), |key| format!("{}_{}_idx", table.name, key.name))
}

/// A foreign key, by the name and with the columns that pgbench gives it (`initCreateFKeys`).
pub(crate) struct ForeignKey {
    pub table: &'static str,
    pub column: &'static str,
    pub references: &'static str,
}

/// All of them.
pub(crate) const FOREIGN_KEYS: [ForeignKey; 5] = [
    ForeignKey { table: "pgbench_tellers", column: "bid", references: "pgbench_branches" },
    ForeignKey { table: "pgbench_accounts", column: "bid", references: "pgbench_branches" },
    ForeignKey { table: "pgbench_history", column: "bid", references: "pgbench_branches" },
    ForeignKey { table: "pgbench_history", column: "tid", references: "pgbench_tellers" },
    ForeignKey { table: "pgbench_history", column: "aid", references: "pgbench_accounts" },
];

impl ForeignKey {
    /// The constraint's name.
    pub(crate) fn name(&self) -> String {
        format!("{}_{}_fkey", self.table, self.column)
    }

    /// ALTER TABLE … ADD.
    pub(crate) fn add(&self, plan: &Plan) -> String {
        format!(
            "ALTER TABLE {} ADD CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {}",
            qualified(&plan.schema, self.table),
            identifier(&self.name()),
            identifier(self.column),
            qualified(&plan.schema, self.references)
        )
    }
}

/// Drops foreign keys that an earlier run has added, because a referenced table cannot be
/// truncated. A later step adds them again.
pub(crate) fn drop_foreign_keys(plan: &Plan) -> Vec<String> {
    let is_in_the_way = plan.method.is_frozen() && plan.includes(InitStep::ForeignKeys);
    let keys = FOREIGN_KEYS.iter().filter(|_| is_in_the_way);
    keys.map(|key| {
        let table = qualified(&plan.schema, key.table);
        format!("ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {}", identifier(&key.name()))
    })
    .collect()
}

/// The two statements that spread a dense leaf out at the final fillfactor.
pub(crate) fn explode(plan: &Plan, leaf: &str) -> [String; 2] {
    let name = qualified(&plan.schema, leaf);
    [format!("ALTER TABLE {name} SET (fillfactor = {})", plan.fillfactor), format!("VACUUM (FULL) {name}")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_stands_on_the_line_of_the_script() {
        let script =
            "-- tables\nCREATE TABLE a (\n  id int);\n\nSET a = 1; SELECT E'\\n;'\n\n;\n-- Ä\nSELECT 2";
        let block = block(script);
        let lines: Vec<&str> = block.lines().collect();
        assert!(lines[1].contains("EXECUTE E'CREATE TABLE a ("), "{block}");
        assert!(lines[4].contains("EXECUTE E'SET a = 1;'; EXECUTE E'SELECT E''\\\\n;''"), "{block}");
        assert!(lines[8].contains("SELECT 2") && lines[8].ends_with(" END"), "{block}");
        // It cannot be cut.
        assert_eq!(statements("SELECT 1;\nSELECT '").len(), 1);
        // A body with semicolons is of one statement.
        let function = "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT 2; END;\nSELECT 1;";
        assert_eq!(statements(function).len(), 2);
    }

    #[test]
    fn the_number_after_a_word_is_read_in_any_language() {
        assert_eq!(number(" line 12 at EXECUTE"), Some(12));
        assert_eq!(number(" Zeile 7 bei EXECUTE"), Some(7));
        assert_eq!(number(" at EXECUTE"), None);
    }
}
