//! A first pass over a dump: which tables cannot be made unlogged, known before they are created.

use std::collections::HashMap;
use std::io::Read;
use std::ops::Range;

use sql::Syntax;

use crate::fact::{Fact, fact};
use crate::name::{Relation, Scope};
use crate::remarks::Remarks;
use crate::syntax::{self, is_connect};
use crate::{DumpError, Piece, Reader, TableName, Why};

/// Findings of a first pass over a dump: the references between tables, and the tables that must stay as they are.
#[derive(Debug, Default)]
pub struct Survey {
    /// Tables in the dump's order, and whether each is partitioned.
    tables: Vec<(Relation, bool)>,
    /// Referencing and referenced table.
    foreign_keys: Vec<(Relation, Relation)>,
    /// Partitioned table and partition.
    partitions: Vec<(Relation, Relation)>,
    published: Vec<(Relation, String)>,
    views: Vec<Relation>,
    /// Sequence and the table that owns it.
    owners: Vec<(Relation, Relation)>,
    pub(crate) notes: Notes,
}

/// The facts that a second pass over a dump needs.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// The notes in the dump's order.
    pub(crate) all: Vec<Note>,
    /// Length of the dump, bytes.
    pub(crate) length: u64,
}

/// Something in a dump that matters to an [`Unlogger`](crate::Unlogger).
#[derive(Debug)]
pub(crate) enum Note {
    /// A comment of pg_dump's that matters.
    Remarks(Remarks),
    /// Range of a piece that is not a comment, in bytes from the dump's first.
    Piece(Range<u64>),
}

impl Survey {
    /// Reads a whole dump.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of(input: impl Read) -> Result<Self, DumpError> {
        let mut reader = Reader::new(input);
        let mut syntax = Syntax::default();
        let mut scope = Scope::default();
        let mut survey = Self::default();
        loop {
            let begin = survey.notes.length + reader.rows().len() as u64;
            survey.notes.length = begin;
            let Some(piece) = reader.next()? else { break };
            survey.notes.length += piece.bytes().len() as u64;
            let has_fact = match piece {
                Piece::Statement(statement) => match fact(statement, syntax) {
                    Some(fact) => {
                        survey.note(fact, &mut scope);
                        true
                    }
                    None => false,
                },
                Piece::Meta(line) if is_connect(line) => {
                    scope.next_database();
                    true
                }
                Piece::Between(text) => {
                    survey.notes.all.extend(Remarks::of(text).map(Note::Remarks));
                    false
                }
                Piece::Meta(_) | Piece::CopyData(_) | Piece::CopyEnd(_) => false,
            };
            if syntax::follow(&mut syntax, piece) || has_fact {
                survey.notes.all.push(Note::Piece(begin..survey.notes.length));
            }
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
            Fact::UnloggedTable | Fact::Sequence { .. } | Fact::PublishedAll { .. } => {}
        }
    }

    fn references(&mut self, from: &Relation, to: Vec<TableName>, scope: &Scope) {
        self.foreign_keys.extend(to.into_iter().map(|to| (from.clone(), scope.resolve(to))));
    }

    /// The tables that stay as they are, and why: asked for or published, with their partitions; views; and whatever a
    /// permanent table references, since it may reference only permanent ones (ATAddForeignKeyConstraint in
    /// src/backend/commands/tablecmds.c). Partitioned tables are permanent always.
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
        // To keep a partitioned table means to keep its rows, so its partitions are kept, too.
        kept.close(&self.partitions, |parent| Why::PartitionOf { kept: parent.to_string() });
        self.views.iter().for_each(|view| kept.add(view, || Why::View));
        for (table, _) in self.tables.iter().filter(|(_, is_partitioned)| *is_partitioned) {
            kept.add(table, || Why::Partitioned);
        }
        kept.close(&self.foreign_keys, |from| Why::Referenced { by: from.to_string() });
        Ok(kept.left)
    }

    /// The sequences of tables that stay logged. They stay logged too: after a crash they must
    /// continue after the tables' values.
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
}

impl Kept {
    /// Adds a table. If it is added again, the first reason stays.
    fn add(&mut self, table: &Relation, why: impl FnOnce() -> Why) {
        if !self.left.contains_key(table) {
            self.left.insert(table.clone(), why());
        }
    }

    /// Adds all tables that the pairs lead to from the kept ones, until nothing is added any more.
    fn close(&mut self, pairs: &[(Relation, Relation)], why: impl Fn(&Relation) -> Why) {
        let mut groups = HashMap::<_, Vec<_>>::new();
        for (from, to) in pairs {
            groups.entry(from).or_default().push(to);
        }
        let mut unfollowed = self.left.keys().cloned().collect::<Vec<_>>();
        // The choice of the reported reason must not depend on the order of a hash map.
        unfollowed.sort();
        while let Some(from) = unfollowed.pop() {
            for &to in groups.get(&from).into_iter().flatten() {
                if !self.left.contains_key(to) {
                    self.add(to, || why(&from));
                    unfollowed.push(to.clone());
                }
            }
        }
    }
}
