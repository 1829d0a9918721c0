//! The written forks of a table: their blocks, the maps of a heap, and the sync of all files.

use std::sync::Arc;

use page::visibility_map_page;

use super::DataDirectory;
use super::error::Failure;
use super::fork::{self, Buffer, Fork};
use super::heap::Heap;
use super::index::{Index, IndexFile};

/// The result of writing.
#[derive(Clone)]
pub(super) struct Written {
    pub(super) rows: u64,
    pub(super) heap: Blocks,
    /// The TOAST table, its blocks and its index.
    pub(super) toast: Option<(String, Blocks, Arc<IndexFile>)>,
    pub(super) indexes: Vec<Arc<Index>>,
}

/// Numbers of blocks of a heap and of its maps.
#[derive(Clone, Copy)]
pub(super) struct Blocks {
    pub(super) main: u32,
    pub(super) visible: u32,
    pub(super) free: u32,
}

impl Blocks {
    /// The forks of a heap of this name.
    pub(super) fn forks(self, name: &str) -> [(&str, &'static str, u32); 3] {
        [(name, "main", self.main), (name, "vm", self.visible), (name, "fsm", self.free)]
    }

    /// Writes the maps beside the heap's main fork. No page has free space for further rows, and a
    /// page of the free space map that says so is all zeros (`fsm_readbuf` in `freespace.c`).
    fn maps(self, main: &Fork, data_directory: &DataDirectory) -> Result<[Fork; 2], Failure> {
        let [visible, free] = ["_vm", "_fsm"].map(|suffix| main.beside(suffix));
        let mut page = Buffer::default();
        let page = page.of(data_directory.geometry.block_size() as usize);
        for block in 0..self.free {
            free.write(block, page).map_err(|error| free.failure(error))?;
        }
        for block in 0..self.visible {
            visibility_map_page(page, block, self.main.into(), data_directory.checksums);
            visible.write(block, page).map_err(|error| visible.failure(error))?;
        }
        Ok([visible, free])
    }
}

/// Writes the maps, and syncs all files.
pub(super) fn finish(heap: &Heap, written: &Written) -> Result<(), Failure> {
    let maps = written.heap.maps(&heap.fork, &heap.data_directory)?;
    let toast = heap.toast.as_ref().and_then(|toast| toast.table.as_ref());
    let maps_of_toast = match (toast, &written.toast) {
        (Some(table), Some((_, blocks, _))) => Some(blocks.maps(&table.fork, &heap.data_directory)?),
        _ => None,
    };
    let of_indexes = written.indexes.iter().map(|index| &index.file.fork);
    let of_toast = toast.iter().flat_map(|table| [&table.fork, &table.index.fork]);
    let of_maps = maps.iter().chain(maps_of_toast.iter().flatten());
    let forks: Vec<&Fork> =
        [&heap.fork].into_iter().chain(of_maps).chain(of_toast).chain(of_indexes).collect();
    fork::sync(&forks)?;
    forks.into_iter().for_each(Fork::keep);
    Ok(())
}
