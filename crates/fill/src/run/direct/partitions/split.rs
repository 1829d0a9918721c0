//! Finds the leaf of every row before the first page is written.

use std::sync::Arc;

use rowgen::{Constants, Encoder, Format, Table, Tuples};

use super::super::Failure;
use super::super::pieces::{InTurn, Pieces, Stop};
use super::super::threads::{Task, Threads};
use super::tree::Tree;
use crate::run::rows::{RowList, RowSource};

/// Rows that a thread looks at in one go.
const PIECE: u64 = 1 << 15;

/// State that the threads share.
struct Split {
    tree: Tree,
    /// The table with its key columns only.
    keys: Table,
    name: String,
    pieces: Pieces,
    lists: InTurn<Vec<RowList>>,
}

/// The rows of each leaf, in their order. `name` is the table's.
pub(super) async fn split(
    tree: Tree,
    (name, table): (&str, &Table),
    rows: RowSource,
    (leaves, threads): (usize, u16),
) -> Result<Vec<RowList>, Failure> {
    let lists = (0..leaves).map(|_| RowList::default()).collect();
    let keys =
        Table { columns: tree.columns.iter().map(|column| column.column.clone()).collect(), ..table.clone() };
    let pieces = Pieces::new(rows, PIECE);
    let split = Arc::new(Split { tree, keys, name: name.to_owned(), pieces, lists: InTurn::new(lists) });
    let task = |_| {
        let split = Arc::clone(&split);
        let task: Task = Box::new(move |stop, _| split.work(stop));
        task
    };
    Threads::start((0..threads).map(task).collect()).finish(&|_| {}).await?;
    Ok(split.lists.look_mut(std::mem::take))
}

impl Split {
    fn work(&self, stop: &Stop) -> Result<(), Failure> {
        let mut tuples = Tuples::new();
        let mut keys: Vec<Vec<_>> = self.tree.columns.iter().map(|_| Vec::new()).collect();
        let mut leaves = Vec::new();
        while !stop.is_set()
            && let Some(piece) = self.pieces.next()
        {
            for (column, keys) in self.tree.columns.iter().zip(&mut keys) {
                column.keys(&piece.rows, &mut tuples, keys);
            }
            leaves.clear();
            for (place, row) in piece.rows.numbers().enumerate() {
                leaves.push(self.tree.leaf(&keys, place).ok_or_else(|| self.no_partition(row))?);
            }
            let sorted_out = |lists: &mut Vec<RowList>| {
                for (row, leaf) in piece.rows.numbers().zip(&leaves) {
                    lists[*leaf as usize].push(row);
                }
            };
            if self.lists.come(piece.number, stop, sorted_out).is_none() {
                break;
            }
        }
        Ok(())
    }

    fn no_partition(&self, row: u64) -> Failure {
        let mut text = Vec::new();
        Encoder::new(&self.keys, Format::Text, Constants::Sent).encode(row..row + 1, &mut text);
        let key = String::from_utf8_lossy(&text).trim_end().replace('\t', ", ");
        Failure::NoPartition { table: self.name.clone(), key }
    }
}
