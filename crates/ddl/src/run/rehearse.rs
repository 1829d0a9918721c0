//! Runs the migration on tables without rows: which tables it uses, and which rules it adds for their rows.
//!
//! The tables are those whose locks the statements take, which no reading of their text could tell, and those that their code would write if there
//! were rows. The tables that these reference need rows too, and so do those that reference tables whose rows a statement changes.

use std::collections::{BTreeMap, BTreeSet};

use connect::{ConnectError, Target};
use fill::is_name_of;
use server::Session;
use server::quote::{qualified, shown_qualified};
use sql::{Kind as Token, Text};

use crate::error::DdlError;
use crate::find::{Kind, LockMode, shown_relation};
use crate::outcome::StatementOutcome;
use crate::run::rules::{self, Rule};
use crate::run::suit::Casts;

/// Tables in which frameworks note the migrations that ran: Rails, Django, Alembic, Flyway, Liquibase, Diesel, SQLx, goose, Prisma,
/// Knex. No rows are generated for them.
const VERSIONS: [&str; 12] = [
    "schema_migrations",
    "ar_internal_metadata",
    "django_migrations",
    "alembic_version",
    "flyway_schema_history",
    "databasechangelog",
    "databasechangeloglock",
    "__diesel_schema_migrations",
    "_sqlx_migrations",
    "goose_db_version",
    "_prisma_migrations",
    "knex_migrations",
];

/// A relation that may have rows.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) schema: String,
    pub(crate) name: String,
    kind: Kind,
    can_be_filled: bool,
    root: u32,
    /// The table of which it is a partition, or those of which it is an INHERITS child.
    parents: Vec<u32>,
    needs: Vec<u32>,
}

impl Table {
    /// `schema.name`, as a fill has it.
    pub(crate) fn plain_name(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    /// Whether a framework notes its migrations there.
    pub(crate) fn is_of_versions(&self) -> bool {
        VERSIONS.contains(&self.name.as_str())
    }

    /// Schema and name for people, also of the schema public: quoted where SQL needs quotes.
    pub(crate) fn shown_in_full(&self) -> String {
        shown_qualified(&self.schema, &self.name)
    }

    /// Its name for people.
    pub(crate) fn shown(&self) -> String {
        shown_relation(&self.schema, &self.name)
    }

    /// Schema and name as SQL.
    pub(crate) fn sql(&self) -> String {
        qualified(&self.schema, &self.name)
    }

    /// Kind of the relation.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// The table of which it is a partition; else itself.
    pub(crate) fn root(&self) -> u32 {
        self.root
    }

    /// Whether a name, with or without its schema, is meant.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        is_name_of((&self.schema, &self.name), name)
    }
}

/// The relations before the migration, by OID.
#[derive(Debug)]
pub(crate) struct Tables(BTreeMap<u32, Table>);

impl Tables {
    pub(crate) async fn read(target: &Target) -> Result<Self, ConnectError> {
        let session = Session::open(target).await?;
        let rows = session.rows(include_str!("../sql/tables.sql"), &[]).await?;
        let table = |row: &tokio_postgres::Row| {
            let mut needs: Vec<u32> = row.get("referenced");
            needs.extend(row.get::<_, Vec<u32>>("read"));
            let (schema, name) = (row.get("schema"), row.get("name"));
            let (kind, can_be_filled) = (Kind::of(row.get("kind")), row.get("is_table"));
            let (root, parents) = (row.get("root"), row.get("parents"));
            (row.get("oid"), Table { schema, name, kind, can_be_filled, root, parents, needs })
        };
        let tables = rows.iter().map(table).collect();
        session.close().await;
        Ok(Self(tables))
    }

    /// The tables that can be filled.
    pub(crate) fn filled(&self) -> impl Iterator<Item = (u32, &Table)> {
        self.0
            .iter()
            .filter(|(oid, table)| table.can_be_filled && table.root == **oid)
            .map(|(oid, table)| (*oid, table))
    }

    /// Those that can be filled and have rows, by their names for people, if the user may read them. `target` is their
    /// database.
    pub(crate) async fn with_rows(&self, target: &Target) -> Result<BTreeSet<String>, ConnectError> {
        let session = Session::open(target).await?;
        let oids: Vec<u32> = self.filled().map(|(oid, _)| oid).collect();
        let readable = "SELECT c.oid FROM pg_catalog.pg_class c WHERE c.oid = ANY ($1) \
             AND pg_catalog.has_schema_privilege(c.relnamespace, 'USAGE') \
             AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT')";
        let readable = session.rows(readable, &[&oids]).await?;
        let readable: BTreeSet<u32> = readable.iter().map(|row| row.get("oid")).collect();
        let tables: Vec<&Table> =
            self.filled().filter(|(oid, _)| readable.contains(oid)).map(|(_, table)| table).collect();
        let any: Vec<String> =
            tables.iter().map(|table| format!("EXISTS (SELECT FROM {})", table.sql())).collect();
        let query = format!("SELECT ARRAY[{}]::bool[] AS have_rows", any.join(", "));
        let have_rows: Vec<bool> = session.row(&query, &[]).await?.get("have_rows");
        session.close().await;
        let each = tables.into_iter().zip(have_rows);
        Ok(each.filter(|(_, has_rows)| *has_rows).map(|(table, _)| table.shown()).collect())
    }

    /// The table that an option means.
    ///
    /// # Errors
    /// If there is no such table, or one in each of several schemas.
    pub(crate) fn named(&self, option: &'static str, name: &str) -> Result<u32, DdlError> {
        let meant: Vec<(u32, &Table)> = self.filled().filter(|(_, table)| table.is_named(name)).collect();
        let table = name.to_owned();
        match meant[..] {
            [(oid, _)] => Ok(oid),
            [] => {
                let tables = self.filled().map(|(_, table)| table.shown()).collect::<Vec<_>>().join(", ");
                Err(DdlError::NoSuchTable { option, table, tables })
            }
            _ => Err(DdlError::SeveralTables {
                option,
                table,
                tables: meant.iter().map(|(_, table)| table.sql()).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// All, partitions too, with their OIDs.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, &Table)> {
        self.0.iter().map(|(oid, table)| (*oid, table))
    }

    pub(crate) fn get(&self, oid: u32) -> Option<&Table> {
        self.0.get(&oid)
    }

    /// Whether a table is a partition or an INHERITS child of another one, at any distance.
    pub(crate) fn is_below(&self, oid: u32, ancestor: u32) -> bool {
        let parents = self.get(oid).map_or(&[][..], |table| table.parents.as_slice());
        parents.iter().any(|parent| *parent == ancestor || self.is_below(*parent, ancestor))
    }

    /// The tables that the statements use, with all whose rows these need.
    pub(crate) fn used(&self, statements: &[StatementOutcome], named: &BTreeSet<u32>) -> BTreeSet<u32> {
        let mut used = named.clone();
        for one in statements {
            if let Some(found) = &one.found {
                for (oid, modes) in &found.held {
                    let Some(table) = self.get(*oid) else { continue };
                    used.insert(table.root);
                    if modes.contains(&LockMode::RowExclusive) {
                        used.extend(self.referencing(table.root));
                    }
                }
                // Code without rows did not come to these.
                for table in found.by_text.written.iter().filter_map(|oid| self.get(*oid)) {
                    used.insert(table.root);
                    used.extend(self.referencing(table.root));
                }
                let copied = found.by_text.copied.iter().filter_map(|oid| self.get(*oid));
                used.extend(copied.map(|table| table.root));
            }
            // It fails without rows, or not all of its locks may have been seen: then there are the words of its text.
            let is_known = match &one.found {
                Some(found) => !found.is_alone,
                None => one.failed.is_none(),
            };
            if !is_known {
                let words = words(&one.statement.sql);
                let is_word = |table: &Table| words.contains(&table.name.to_lowercase());
                used.extend(self.0.values().filter(|table| is_word(table)).map(|table| table.root));
            }
        }
        let mut new: Vec<u32> = used.iter().copied().collect();
        while let Some(oid) = new.pop() {
            let needs = self.get(oid).map_or(&[][..], |table| table.needs.as_slice());
            new.extend(needs.iter().filter(|needed| used.insert(**needed)));
        }
        used
    }

    /// Tables that reference this one, at any distance: changes of its rows may change theirs.
    fn referencing(&self, oid: u32) -> BTreeSet<u32> {
        let (mut found, mut new) = (BTreeSet::new(), vec![oid]);
        while let Some(oid) = new.pop() {
            let direct = self.0.values().filter(|table| table.can_be_filled && table.needs.contains(&oid));
            new.extend(direct.map(|table| table.root).filter(|root| found.insert(*root)));
        }
        found
    }
}

/// The words and quoted names of a text, in lower case.
pub(crate) fn words(text: &str) -> BTreeSet<String> {
    let (mut words, mut at) = (BTreeSet::new(), 0);
    while let Ok(Some((kind, length))) = Text::whole(text).from(at).token() {
        let token = &text[at..at + length];
        at += length;
        match kind {
            Token::Word | Token::QuotedName => {
                words.insert(token.trim_matches('"').to_lowercase());
            }
            Token::Blank | Token::Comment => {}
            // A body in quotes has words of its own.
            _ => words.extend(token.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_lowercase)),
        }
    }
    words
}

/// Rules of all tables, and types of their columns, at one moment.
pub(crate) struct Shape {
    pub(crate) rules: Vec<Rule>,
    pub(crate) casts: Casts,
}

impl Shape {
    pub(crate) async fn read(target: &Target) -> Result<Self, ConnectError> {
        let session = Session::open(target).await?;
        session.run("SET search_path = ''").await?;
        let rules = rules::rules(&session, &[]).await?;
        let columns = session.rows(include_str!("../sql/columns.sql"), &[]).await?;
        let casts = Casts::of(&columns);
        session.close().await;
        Ok(Self { rules, casts })
    }
}
