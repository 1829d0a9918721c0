//! Makes the tables of a dump unlogged.

use std::collections::{HashMap, HashSet};

use sql::Syntax;

use crate::fact::{Fact, fact};
use crate::name::{Relation, Scope};
use crate::remarks::Remarks;
use crate::survey::Notes;
use crate::syntax::{self, is_connect};
use crate::{DumpError, Left, Piece, Summary, Survey, TableName, Why};

/// The text that is inserted where [`Unlogger::look`] returns.
pub const UNLOGGED: &[u8] = b"UNLOGGED ";
/// The first major version with unlogged sequences.
const UNLOGGED_SEQUENCES: u32 = 15;
/// Whether sequences are made unlogged too; PostgreSQL can from 15 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sequences {
    /// They are if the dump's header names such a server.
    #[default]
    AsDumped,
    /// They are, whatever the dump's header says.
    Unlogged,
    /// Never. Those of identity columns follow their tables even so, which is the server's doing.
    Left,
}

/// Options of an [`Unlogger`].
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Tables to leave as they are. Tables that they reference stay too.
    pub keep: Vec<TableName>,
    /// Whether sequences are made unlogged.
    pub sequences: Sequences,
}

/// Says where [`UNLOGGED`] goes into the statements of a dump.
#[derive(Debug)]
pub struct Unlogger {
    options: Options,
    /// Tables that a first pass found have to stay as they are.
    kept: HashMap<Relation, Why>,
    kept_sequences: HashSet<Relation>,
    /// The notes of a first pass. With them, the second pass does not look for facts.
    pub(crate) notes: Option<Notes>,
    /// For each table to keep, whether it has been seen.
    keep_found: Vec<bool>,
    syntax: Syntax,
    scope: Scope,
    /// Major version of the server that was dumped, from the dump's header.
    server_major: Option<u32>,
    /// Whether the dump of a database, or of a cluster, has begun and not ended.
    database_is_open: bool,
    cluster_is_open: bool,
    /// Partitioned table and partition.
    partitions: Vec<(Relation, Relation)>,
    /// Tables and sequences that were made unlogged.
    unlogged: HashSet<Relation>,
    /// Tables that were left as they are.
    left: HashMap<Relation, Why>,
    summary: Summary,
}

impl Unlogger {
    /// For a dump that can be read only once: a table that turns out too late to have to be permanent is an error.
    pub fn in_one_pass(options: Options) -> Self {
        Self {
            keep_found: vec![false; options.keep.len()],
            options,
            kept: HashMap::new(),
            kept_sequences: HashSet::new(),
            notes: None,
            syntax: Syntax::default(),
            scope: Scope::default(),
            server_major: None,
            database_is_open: false,
            cluster_is_open: false,
            partitions: Vec::new(),
            unlogged: HashSet::new(),
            left: HashMap::new(),
            summary: Summary::default(),
        }
    }

    /// For a dump that was read before.
    ///
    /// # Errors
    /// If a table to keep is not in the dump.
    pub fn after(survey: Survey, options: Options) -> Result<Self, DumpError> {
        let kept = survey.kept(&options.keep)?;
        let kept_sequences = survey.kept_sequences(&kept).cloned().collect();
        Ok(Self { kept, kept_sequences, notes: Some(survey.notes), ..Self::in_one_pass(options) })
    }

    /// The place in this piece at which [`UNLOGGED`] must be inserted, if at all. All pieces of the dump must be
    /// shown, in order.
    ///
    /// # Errors
    /// If a table that has been made unlogged must not be; never after a [`Survey`] of the same dump.
    pub fn look(&mut self, piece: Piece<'_>) -> Result<Option<usize>, DumpError> {
        let insertion = match piece {
            Piece::Statement(statement) => match fact(statement, self.syntax) {
                Some(fact) => self.heed(fact)?,
                None => None,
            },
            Piece::Between(text) => {
                if let Some(remarks) = Remarks::of(text) {
                    self.remember(remarks);
                }
                None
            }
            Piece::Meta(line) => {
                if is_connect(line) {
                    self.scope.next_database();
                }
                None
            }
            Piece::CopyData(_) | Piece::CopyEnd(_) => None,
        };
        syntax::follow(&mut self.syntax, piece);
        Ok(insertion)
    }

    /// The summary, after all of the dump has been shown.
    ///
    /// # Errors
    /// If a table to keep was not in the dump.
    pub fn finish(mut self) -> Result<Summary, DumpError> {
        if let Some(missing) = self.keep_found.iter().position(|found| !found) {
            return Err(DumpError::NoSuchTable(self.options.keep[missing].to_string()));
        }
        self.summary.is_cut_off = self.database_is_open || self.cluster_is_open;
        let mut left = self.left.into_iter().collect::<Vec<_>>();
        left.sort_by(|(one, _), (other, _)| one.cmp(other));
        self.summary.left =
            left.into_iter().map(|(table, why)| Left { table: table.to_string(), why }).collect();
        Ok(self.summary)
    }

    pub(crate) fn remember(&mut self, remarks: Remarks) {
        self.server_major = remarks.server_major.or(self.server_major);
        self.database_is_open = remarks.database_is_open.unwrap_or(self.database_is_open);
        self.cluster_is_open = remarks.cluster_is_open.unwrap_or(self.cluster_is_open);
    }

    fn heed(&mut self, fact: Fact) -> Result<Option<usize>, DumpError> {
        match fact {
            Fact::Table { table, keyword, is_partitioned, partition_of, references } => {
                let table = self.scope.resolve(table);
                let insertion = self.create_table(&table, is_partitioned).then_some(keyword);
                if let Some(parent) = partition_of {
                    self.check_partition(parent, &table)?;
                }
                self.check_references(&table, references)?;
                Ok(insertion)
            }
            Fact::Sequence { sequence, keyword } => {
                let sequence = self.scope.resolve(sequence);
                let is_unlogged = self.unlogs_sequences() && !self.kept_sequences.contains(&sequence);
                if self.options.sequences == Sequences::AsDumped && self.server_major.is_none() {
                    self.summary.undecided_sequences += 1;
                }
                if is_unlogged {
                    self.summary.sequences += 1;
                    self.unlogged.insert(sequence);
                }
                Ok(is_unlogged.then_some(keyword))
            }
            Fact::UnloggedTable => {
                self.summary.unlogged_tables += 1;
                Ok(None)
            }
            fact => self.check(fact).map(|()| None),
        }
    }

    /// Decides on a table; true if it is made unlogged.
    fn create_table(&mut self, table: &Relation, is_partitioned: bool) -> bool {
        let mut is_asked = false;
        for (name, found) in self.options.keep.iter().zip(&mut self.keep_found) {
            if table.is_called(name) {
                *found = true;
                is_asked = true;
            }
        }
        let why = match self.kept.get(table) {
            Some(why) => why.clone(),
            None if is_asked => Why::Asked,
            None if is_partitioned => Why::Partitioned,
            None => {
                self.summary.tables += 1;
                self.unlogged.insert(table.clone());
                return true;
            }
        };
        self.left.insert(table.clone(), why);
        false
    }

    fn unlogs_sequences(&self) -> bool {
        match self.options.sequences {
            Sequences::Unlogged => true,
            Sequences::Left => false,
            Sequences::AsDumped => self.server_major.is_some_and(|major| major >= UNLOGGED_SEQUENCES),
        }
    }

    /// Refuses a fact that requires a table to be logged that has been made unlogged already.
    fn check(&mut self, fact: Fact) -> Result<(), DumpError> {
        match fact {
            Fact::ForeignKeys { table, references } => {
                let table = self.scope.resolve(table);
                self.check_references(&table, references)
            }
            Fact::Partition { parent, partition } => {
                let partition = self.scope.resolve(partition);
                self.check_partition(parent, &partition)
            }
            Fact::Owner { sequence, table } => {
                let (sequence, table) = (self.scope.resolve(sequence), self.scope.resolve(table));
                let is_kept = self.left.get(&table).is_some_and(|why| *why != Why::Partitioned);
                if is_kept && self.unlogged.contains(&sequence) {
                    let sequence = sequence.to_string();
                    self.summary.lone_sequences.push((sequence, table.to_string()));
                }
                Ok(())
            }
            Fact::Published { publication, tables } => {
                let publication = publication.to_string();
                tables.into_iter().try_for_each(|table| self.check_published(table, &publication))
            }
            Fact::PublishedAll { publication } => {
                self.summary.publications_of_all.push(publication.to_string());
                Ok(())
            }
            Fact::View { table } => {
                let table = self.scope.resolve(table);
                self.must_be_left(&table, || "a rule makes it a view".to_owned())
            }
            Fact::SearchPath { schema } => {
                self.scope.set_schema(schema);
                Ok(())
            }
            Fact::Table { .. } | Fact::UnloggedTable | Fact::Sequence { .. } => Ok(()),
        }
    }

    fn check_references(&self, from: &Relation, to: Vec<TableName>) -> Result<(), DumpError> {
        let Some(why) = self.left.get(from) else { return Ok(()) };
        let what = if *why == Why::Partitioned { "partitioned table " } else { "" };
        to.into_iter().map(|to| self.scope.resolve(to)).try_for_each(|to| {
            self.must_be_left(&to, || format!("{what}{from} references it and stays logged"))
        })
    }

    /// As `check`, for a published table. If it is partitioned, its partitions are published too.
    fn check_published(&mut self, table: TableName, publication: &str) -> Result<(), DumpError> {
        let table = self.scope.resolve(table);
        self.must_be_left(&table, || format!("publication {publication} publishes it"))?;
        self.hold_partitioned(&table, Why::Published { publication: publication.to_owned() })
    }

    fn check_partition(&mut self, parent: TableName, partition: &Relation) -> Result<(), DumpError> {
        let parent = self.scope.resolve(parent);
        self.partitions.push((parent.clone(), partition.clone()));
        let is_held = self.left.get(&parent).is_some_and(Why::holds_for_partitions);
        if is_held { self.hold_partition(partition, &parent) } else { Ok(()) }
    }

    fn hold_partition(&mut self, partition: &Relation, parent: &Relation) -> Result<(), DumpError> {
        self.must_be_left(partition, || format!("it is a partition of {parent}, which stays logged"))?;
        self.hold_partitioned(partition, Why::PartitionOf { kept: parent.to_string() })
    }

    /// Marks a table as one that must stay logged; if it is partitioned, also its partitions.
    fn hold_partitioned(&mut self, table: &Relation, because: Why) -> Result<(), DumpError> {
        let Some(why @ Why::Partitioned) = self.left.get_mut(table) else { return Ok(()) };
        *why = because;
        let partitions = self.partitions.iter().filter(|(parent, _)| parent == table);
        let partitions: Vec<_> = partitions.map(|(_, partition)| partition.clone()).collect();
        partitions.iter().try_for_each(|partition| self.hold_partition(partition, table))
    }

    fn must_be_left(&self, table: &Relation, why: impl FnOnce() -> String) -> Result<(), DumpError> {
        if !self.unlogged.contains(table) {
            return Ok(());
        }
        Err(DumpError::TooLate { table: table.to_string(), why: why() })
    }
}
