//! The effects of a statement on tables and sequences.

use sql::{Kind, Syntax};

use crate::TableName;
use crate::parse::Parser;

/// An effect of a statement that matters to persistence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    /// CREATE TABLE, of an ordinary table, a partition, or a partitioned table.
    Table {
        table: TableName,
        /// Offset of the keyword TABLE.
        keyword: usize,
        is_partitioned: bool,
        /// The table that it is a partition of.
        partition_of: Option<TableName>,
        /// Tables of REFERENCES; pg_dump adds foreign keys later.
        references: Vec<TableName>,
    },
    /// CREATE UNLOGGED TABLE.
    UnloggedTable,
    /// CREATE SEQUENCE.
    Sequence { sequence: TableName, keyword: usize },
    /// ALTER TABLE … ADD … FOREIGN KEY … REFERENCES ….
    ForeignKeys { table: TableName, references: Vec<TableName> },
    /// ALTER TABLE … ATTACH PARTITION ….
    Partition { parent: TableName, partition: TableName },
    /// ALTER SEQUENCE … OWNED BY ….
    Owner { sequence: TableName, table: TableName },
    /// ALTER PUBLICATION … ADD TABLE …; CREATE PUBLICATION … FOR TABLE ….
    Published { publication: TableName, tables: Vec<TableName> },
    /// A publication of all tables, or of all in a schema: unlogged ones are left out of it.
    PublishedAll { publication: TableName },
    /// CREATE RULE "_RETURN": the table is a view. pg_dump wrote so until 2016.
    View { table: TableName },
    /// SET search_path: its first schema.
    SearchPath { schema: Vec<u8> },
}

/// Reads a statement.
pub(crate) fn fact(statement: &[u8], syntax: Syntax) -> Option<Fact> {
    // Rows as INSERT are most of some dumps.
    if !matches!(statement.first(), Some(b'c' | b'C' | b'a' | b'A' | b's' | b'S')) {
        return None;
    }
    let mut parser = Parser::new(statement, syntax);
    let parser = &mut parser;
    let verb = parser.next()?;
    if verb.is("create") {
        create(parser)
    } else if verb.is("alter") {
        alter(parser)
    } else if verb.is("set") {
        search_path(parser)
    } else {
        None
    }
}

fn create(parser: &mut Parser<'_>) -> Option<Fact> {
    let kind = parser.next()?;
    let keyword = kind.at;
    if kind.is("table") {
        parser.words(&["if", "not", "exists"]);
        let table = parser.table()?;
        Some(create_table(parser, table, keyword))
    } else if kind.is("unlogged") {
        parser.word("table").then_some(Fact::UnloggedTable)
    } else if kind.is("sequence") {
        parser.words(&["if", "not", "exists"]);
        Some(Fact::Sequence { sequence: parser.table()?, keyword })
    } else if kind.is("publication") {
        let publication = parser.table()?;
        parser.word("for").then(|| published(parser, publication))
    } else if kind.is("rule") {
        let is_return = parser.name()? == b"_RETURN";
        let is_on_select = parser.words(&["as", "on", "select", "to"]);
        (is_return && is_on_select).then(|| parser.table().map(|table| Fact::View { table }))?
    } else {
        None
    }
}

fn create_table(parser: &mut Parser<'_>, table: TableName, keyword: usize) -> Fact {
    let partition_of = if parser.words(&["partition", "of"]) { parser.table() } else { None };
    let mut is_partitioned = false;
    let mut references = Vec::new();
    let mut depth = 0_u32;
    while let Some(token) = parser.next() {
        match token.kind {
            Kind::Open => depth += 1,
            Kind::Close => depth = depth.saturating_sub(1),
            Kind::Word if token.is("references") => references.extend(parser.table()),
            Kind::Word if depth == 0 && token.is("partition") => is_partitioned |= parser.word("by"),
            _ => {}
        }
    }
    Fact::Table { table, keyword, is_partitioned, partition_of, references }
}

fn alter(parser: &mut Parser<'_>) -> Option<Fact> {
    let kind = parser.next()?;
    if kind.is("table") {
        parser.words(&["if", "exists"]);
        parser.word("only");
        alter_table(parser)
    } else if kind.is("sequence") {
        parser.words(&["if", "exists"]);
        let sequence = parser.table()?;
        if !parser.words(&["owned", "by"]) {
            return None;
        }
        parser.table_of_column().map(|table| Fact::Owner { sequence, table })
    } else if kind.is("publication") {
        let publication = parser.table()?;
        parser.word("add").then(|| published(parser, publication))
    } else {
        None
    }
}

fn alter_table(parser: &mut Parser<'_>) -> Option<Fact> {
    let table = parser.table()?;
    if parser.words(&["attach", "partition"]) {
        return parser.table().map(|partition| Fact::Partition { parent: table, partition });
    }
    let mut references = Vec::new();
    while let Some(token) = parser.next() {
        if token.is("references") {
            references.extend(parser.table());
        }
    }
    (!references.is_empty()).then_some(Fact::ForeignKeys { table, references })
}

/// Reads the list after FOR of CREATE PUBLICATION, or after ADD of ALTER PUBLICATION.
fn published(parser: &mut Parser<'_>, publication: TableName) -> Fact {
    if !parser.word("table") {
        return Fact::PublishedAll { publication };
    }
    let mut tables = Vec::new();
    let mut depth = 0_u32;
    let mut begins = true;
    while let Some(token) = parser.peek() {
        if begins {
            begins = false;
            parser.word("table");
            parser.word("only");
            tables.extend(parser.table());
            continue;
        }
        match token.kind {
            Kind::Open => depth += 1,
            Kind::Close => depth = depth.saturating_sub(1),
            _ => begins = depth == 0 && token.is_symbol(b','),
        }
        parser.next();
    }
    Fact::Published { publication, tables }
}

fn search_path(parser: &mut Parser<'_>) -> Option<Fact> {
    let _ = parser.word("session") || parser.word("local");
    if !(parser.word("search_path") && (parser.symbol(b'=') || parser.word("to"))) {
        return None;
    }
    parser.name().map(|schema| Fact::SearchPath { schema })
}
