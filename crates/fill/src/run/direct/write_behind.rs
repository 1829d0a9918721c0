//! Write-behind: a second thread writes the pages that a thread has built, while that one builds the next pages.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, ScopedJoinHandle};

use super::Failure;
use super::fork::{Buffer, Fork};

/// Buffers of a thread: one is filled while the other is written.
const BUFFERS: usize = 2;

/// Writes pages, in the order in which they were given, on a thread of its own.
pub(super) struct WriteBehind<'f> {
    full: Sender<Pages<'f>>,
    free: Receiver<Buffer>,
}

/// Pages to write.
struct Pages<'f> {
    fork: &'f Fork,
    first_block: u32,
    buffer: Buffer,
    bytes: usize,
    /// Rows of the fill that are written with these pages.
    rows: u64,
}

/// Runs `make`, which builds pages, beside a thread that writes them and calls `written` with the number of rows.
///
/// # Errors
/// Those of `make`, and those of the writes. All writes have ended when it returns.
pub(super) fn with_write_behind<'f>(
    written: impl Fn(u64) + Send,
    make: impl FnOnce(&WriteBehind<'f>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    thread::scope(|scope| {
        let (full, to_write) = channel();
        let (again, free) = channel();
        for _ in 0..BUFFERS {
            again.send(Buffer::default()).expect("the receiver is in this function");
        }
        let writer = scope.spawn(move || write_all(&to_write, &again, &written));
        let write_behind = WriteBehind { full, free };
        let outcome = make(&write_behind);
        drop(write_behind);
        // A write that failed is the reason why `make` ended early.
        ended(writer).and(outcome)
    })
}

impl<'f> WriteBehind<'f> {
    /// Has `build` fill so many bytes, and then writes them at this block; with them so many rows of the fill are
    /// written. Returns false if an earlier write has failed: then there is nothing more to do.
    pub(super) fn write(
        &self,
        fork: &'f Fork,
        first_block: u32,
        (bytes, rows): (usize, u64),
        build: impl FnOnce(&mut [u8]),
    ) -> bool {
        let Ok(mut buffer) = self.free.recv() else { return false };
        build(buffer.of(bytes));
        self.full.send(Pages { fork, first_block, buffer, bytes, rows }).is_ok()
    }
}

fn write_all(
    to_write: &Receiver<Pages<'_>>,
    again: &Sender<Buffer>,
    written: &impl Fn(u64),
) -> Result<(), Failure> {
    for Pages { fork, first_block, mut buffer, bytes, rows } in to_write {
        fork.write(first_block, buffer.of(bytes)).map_err(|error| fork.failure(error))?;
        written(rows);
        // Nobody takes it once all pages are built.
        let _ = again.send(buffer);
    }
    Ok(())
}

fn ended(writer: ScopedJoinHandle<'_, Result<(), Failure>>) -> Result<(), Failure> {
    writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
