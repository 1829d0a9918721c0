//! A first pass over a dump: which tables cannot be made unlogged, known before they are created.

use std::collections::HashMap;
use std::io::Read;

use crate::fact::{Fact, fact};
use crate::name::{Relation, Scope};
use crate::strings::{Strings, is_connect};
use crate::{DumpError, Piece, Reader, TableName, Why};

/// What a first pass over a dump found: which tables reference which, and which must stay as they are.
#[derive(Debug, Default)]
pub struct Survey {
    /// In the dump's order; whether it is partitioned.
    tables: Vec<(Relation, bool)>,
    /// From, to.
    foreign_keys: Vec<(Relation, Relation)>,
    /// Parent, partition.
    partitions: Vec<(Relation, Relation)>,
    published: Vec<(Relation, String)>,
    views: Vec<Relation>,
    /// Sequence, table.
    owners: Vec<(Relation, Relation)>,
}

impl Survey {
    /// Reads a whole dump.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of(input: impl Read) -> Result<Self, DumpError> {
        let mut reader = Reader::new(input);
        let mut strings = Strings::default();
        let mut scope = Scope::default();
        let mut survey = Self::default();
        while let Some(piece) = reader.next()? {
            match piece {
                Piece::Statement(statement) => {
                    if let Some(fact) = fact(statement, strings.backslash()) {
                        survey.note(fact, &mut scope);
                    }
                }
                Piece::Meta(line) if is_connect(line) => scope.next_database(),
                _ => {}
            }
            strings.follow(piece);
        }
        Ok(survey)
    }

    fn note(&mut self, fact: Fact, scope: &mut Scope) {
        match fact {
            Fact::Table { table, is_partitioned, partition_of, references, .. } => {
                let table = scope.resolve(table);
                self.partitions.extend(partition_of.map(|parent| (scope.resolve(parent), table.clone())));
                self.references(&table, references, scope);
                self.tables.push((table, is_partitioned));
            }
            Fact::ForeignKeys { table, references } => {
                self.references(&scope.resolve(table), references, scope);
            }
            Fact::Partition { parent, partition } => {
                self.partitions.push((scope.resolve(parent), scope.resolve(partition)));
            }
            Fact::Owner { sequence, table } => {
                self.owners.push((scope.resolve(sequence), scope.resolve(table)));
            }
            Fact::Published { publication, tables } => {
                let tables = tables.into_iter().map(|table| (scope.resolve(table), publication.to_string()));
                self.published.extend(tables);
            }
            Fact::View { table } => self.views.push(scope.resolve(table)),
            Fact::SearchPath { schema } => scope.set_schema(schema),
            Fact::Sequence { .. } | Fact::PublishedAll { .. } => {}
        }
    }

    fn references(&mut self, from: &Relation, to: Vec<TableName>, scope: &Scope) {
        self.foreign_keys.extend(to.into_iter().map(|to| (from.clone(), scope.resolve(to))));
    }

    /// The tables that stay as they are, and why: asked for, published, views; the partitions of those that are
    /// asked for; and whatever a permanent table references, since it may reference only permanent ones
    /// (ATAddForeignKeyConstraint in src/backend/commands/tablecmds.c). Partitioned tables are permanent always.
    pub(crate) fn kept(&self, keep: &[TableName]) -> Result<HashMap<Relation, Why>, DumpError> {
        let mut kept = Kept::default();
        for name in keep {
            let mut called = self.tables.iter().filter(|(table, _)| table.is_called(name)).peekable();
            called.peek().ok_or_else(|| DumpError::NoSuchTable(name.to_string()))?;
            called.for_each(|(table, _)| kept.add(table, || Why::Asked));
        }
        for (table, publication) in &self.published {
            kept.add(table, || Why::Published { publication: publication.clone() });
        }
        self.views.iter().for_each(|view| kept.add(view, || Why::View));
        for (table, _) in self.tables.iter().filter(|(_, is_partitioned)| *is_partitioned) {
            kept.add(table, || Why::Partitioned);
        }
        self.close(&mut kept);
        Ok(kept.left)
    }

    /// Adds what follows from what is kept.
    fn close(&self, kept: &mut Kept) {
        let references = grouped(&self.foreign_keys);
        let partitions = grouped(&self.partitions);
        while let Some(table) = kept.unfollowed.pop() {
            for to in references.get(&table).into_iter().flatten() {
                kept.add(to, || Why::Referenced { by: table.to_string() });
            }
            // Of a partitioned table the rows are what is asked for.
            if kept.left.get(&table).is_some_and(Why::holds_for_partitions) {
                for partition in partitions.get(&table).into_iter().flatten() {
                    kept.add(partition, || Why::PartitionOf { kept: table.to_string() });
                }
            }
        }
    }

    /// The sequences that belong to tables that are kept with their rows: after a crash they must go on behind them.
    pub(crate) fn kept_sequences<'a>(
        &'a self,
        kept: &'a HashMap<Relation, Why>,
    ) -> impl Iterator<Item = &'a Relation> {
        let is_kept = |table| kept.get(table).is_some_and(|why| *why != Why::Partitioned);
        self.owners.iter().filter(move |(_, table)| is_kept(table)).map(|(sequence, _)| sequence)
    }
}

/// Tables that stay as they are.
#[derive(Default)]
struct Kept {
    left: HashMap<Relation, Why>,
    /// Of which it has not been looked at what follows.
    unfollowed: Vec<Relation>,
}

impl Kept {
    fn add(&mut self, table: &Relation, why: impl FnOnce() -> Why) {
        if !self.left.contains_key(table) {
            self.left.insert(table.clone(), why());
            self.unfollowed.push(table.clone());
        }
    }
}

fn grouped(pairs: &[(Relation, Relation)]) -> HashMap<&Relation, Vec<&Relation>> {
    let mut groups = HashMap::<_, Vec<_>>::new();
    for (from, to) in pairs {
        groups.entry(from).or_default().push(to);
    }
    groups
}
