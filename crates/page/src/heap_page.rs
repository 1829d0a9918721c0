//! Heap pages of frozen tuples, as COPY (FREEZE) leaves them (`heap_multi_insert` in `heapam.c`,
//! `RelationPutHeapTuple` in `hio.c`).

use crate::heap::{FreeSpace, TUPLE_HEADER};
use crate::layout::{PageHeader, line_pointer};
use crate::{Geometry, max_align, set_checksum};

/// `PD_ALL_VISIBLE`: everybody sees all of the page's tuples.
const ALL_VISIBLE: u16 = 0x0004;
/// `HEAP_HASNULL`.
const HAS_NULL: u16 = 0x0001;
/// `HEAP_HASVARWIDTH`.
const HAS_VARWIDTH: u16 = 0x0002;
/// `HEAP_HASEXTERNAL`.
const HAS_EXTERNAL: u16 = 0x0004;
/// `HEAP_XMIN_FROZEN`: inserted before all transactions.
const XMIN_FROZEN: u16 = 0x0300;
/// `HEAP_XMAX_INVALID`: neither deleted nor locked.
const XMAX_INVALID: u16 = 0x0800;
/// `FrozenTransactionId`.
const FROZEN_TRANSACTION: u32 = 2;

/// The fixed header of a tuple, bytes, as an index.
const HEADER: usize = TUPLE_HEADER as usize;

/// Flags of a tuple's header that depend on its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TupleFlags {
    /// Number of attributes, including those that are NULL.
    pub attributes: u16,
    /// Whether the body begins with a null bitmap.
    pub has_nulls: bool,
    /// Whether any attribute that is not NULL has a variable length.
    pub has_varwidth: bool,
    /// Whether any attribute is a pointer to a value in the TOAST table.
    pub has_external: bool,
}

impl TupleFlags {
    /// Flags of a body with so many attributes, all of fixed length and none NULL.
    pub fn of(attributes: u16) -> Self {
        Self { attributes, has_nulls: false, has_varwidth: false, has_external: false }
    }

    /// `t_infomask2`, which has nothing but the number of attributes here.
    fn infomask2(self) -> u16 {
        self.attributes
    }

    fn infomask(self) -> u16 {
        let has = |flag, yes| if yes { flag } else { 0 };
        let has_values = has(HAS_VARWIDTH, self.has_varwidth) | has(HAS_EXTERNAL, self.has_external);
        XMIN_FROZEN | XMAX_INVALID | has(HAS_NULL, self.has_nulls) | has_values
    }

    /// `t_hoff`: where the attributes begin.
    fn data_offset(self) -> u8 {
        let bitmap = if self.has_nulls { u32::from(self.attributes).div_ceil(8) } else { 0 };
        u8::try_from(max_align(TUPLE_HEADER + bitmap)).expect("a table has at most 1600 columns")
    }
}

/// A heap page that is being filled, in a buffer that may hold anything before.
///
/// A tuple is given by its *body*: all its bytes after the 23 of the fixed header, thus the null
/// bitmap if it has NULLs, zeros up to the next multiple of 8 of the tuple, and the attributes as
/// `heap_fill_tuple` lays them out.
///
/// ```
/// use page::{HeapPage, TupleFlags};
///
/// let mut block = vec![0; 8192];
/// let mut page = HeapPage::begin(&mut block, 0, 100);
/// // A row of an int, 7: one byte up to the multiple of 8, then the attribute.
/// let (body, flags) = ([0, 7, 0, 0, 0], TupleFlags::of(1));
/// while page.fits(body.len()) {
///     page.push(&body, flags);
/// }
/// assert_eq!(page.rows(), 226);
/// page.finish(true);
/// ```
#[derive(Debug)]
pub struct HeapPage<'a> {
    page: &'a mut [u8],
    block: u32,
    free_space: FreeSpace,
}

impl<'a> HeapPage<'a> {
    /// The page for this block of the heap, counted over all segments, at a fillfactor (percent, 10
    /// to 100).
    ///
    /// # Panics
    /// For a buffer whose length is no block size of PostgreSQL's.
    pub fn begin(page: &'a mut [u8], block: u32, fillfactor: u8) -> Self {
        let free_space = FreeSpace::new(Geometry::of(page), fillfactor);
        Self { page, block, free_space }
    }

    /// Whether a tuple with a body of so many bytes goes in, by the rule of
    /// [`Geometry::rows_per_page`]: an empty page takes any.
    pub fn fits(&self, body: usize) -> bool {
        u32::try_from(HEADER + body).is_ok_and(|tuple| self.free_space.takes(tuple))
    }

    /// Places a tuple that [fits](Self::fits).
    ///
    /// # Panics
    /// For a body that the page has no room for even without its fillfactor.
    pub fn push(&mut self, body: &[u8], flags: TupleFlags) {
        let length = u32::try_from(HEADER + body.len()).expect(FULL);
        let aligned = max_align(length);
        let (lower, upper) = self.free_space.bounds();
        let hole = &mut self.page[lower as usize..upper as usize];
        let (pointer, hole) = hole.split_first_chunk_mut().expect(FULL);
        let start = hole.len().checked_sub(aligned as usize).expect(FULL);
        let tuple = &mut hole[start..];

        self.free_space.take(length);
        *pointer = line_pointer(upper - aligned, length);
        // First zeros up to the next multiple of 8, then what may be where some of them are.
        let (_, end) = tuple.split_last_chunk_mut::<8>().expect(FULL);
        end.fill(0);
        tuple[..=HEADER].copy_from_slice(&header(self.block, self.free_space.rows(), flags));
        tuple[HEADER..length as usize].copy_from_slice(body);
    }

    /// Tuples in the page.
    pub fn rows(&self) -> u32 {
        self.free_space.rows()
    }

    /// Completes the page, with its checksum if the server has them enabled.
    pub fn finish(self, checksums: bool) {
        let Self { page, block, free_space } = self;
        let (lower, upper) = free_space.bounds();
        page[lower as usize..upper as usize].fill(0);
        PageHeader { flags: ALL_VISIBLE, lower, upper, ..PageHeader::plain(Geometry::of(page)) }.write(page);
        if checksums {
            set_checksum(page, block);
        }
    }
}

/// Why a tuple cannot be placed.
const FULL: &str = "the page has room for the tuple";

/// `HeapTupleHeaderData` of the page's tuple with this number, from 1, and a byte 0.
fn header(block: u32, number: u32, flags: TupleFlags) -> [u8; HEADER + 1] {
    let mut header = [0; HEADER + 1];
    header[..4].copy_from_slice(&FROZEN_TRANSACTION.to_le_bytes());
    // t_xmax and t_cid are 0. t_ctid is the tuple itself; a block number's upper half comes first.
    header[12..16].copy_from_slice(&block.rotate_left(16).to_le_bytes());
    let number = u16::try_from(number).expect("a page has at most 32768 bytes");
    header[16..18].copy_from_slice(&number.to_le_bytes());
    header[18..20].copy_from_slice(&flags.infomask2().to_le_bytes());
    header[20..22].copy_from_slice(&flags.infomask().to_le_bytes());
    header[22] = flags.data_offset();
    header
}
