//! Large values: compressed, or moved out of line into the TOAST table, as PostgreSQL decides for new rows
//! (`heap_toast_insert_or_update` in `heaptoast.c`, `toast_helper.c`, `toast_save_datum` in `toast_internals.c`).

mod moved;
mod pglz;

use lz4_flex::block::{compress_into, get_maximum_output_size};

pub use self::moved::MovedValues;
use self::pglz::Compressor;
use crate::heap::TUPLE_HEADER;
use crate::{Geometry, LINE_POINTER, PAGE_HEADER, max_align};

/// `TOAST_POINTER_SIZE`: bytes that stay in the row of a value that is moved out.
const POINTER: usize = 18;
/// Offset of the value's number (`va_valueid`) in a pointer.
const VALUE_ID: usize = 10;
/// `VARTAG_ONDISK`.
const ON_DISK: u8 = 18;
/// `VARHDRSZ`, and `VARHDRSZ_COMPRESSED`, which has the uncompressed length behind the header.
const HEADER: usize = 4;
const COMPRESSED_HEADER: usize = 8;
/// Bytes before a chunk's data: a byte of padding up to the tuple's next multiple of 8, `chunk_id`,
/// `chunk_seq` and a header.
const CHUNK_HEAD: u32 = 1 + 4 + 4 + 4;

/// Storage of a column (`pg_attribute.attstorage`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToastStorage {
    /// Values stay as they are.
    Plain,
    /// Values are moved out, and never compressed.
    External,
    /// Values are compressed, then moved out.
    Extended,
    /// Values are compressed, and moved out only if the row does not fit a page otherwise.
    Main,
}

/// Compression of values (`pg_attribute.attcompression`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToastCompression {
    /// The method that PostgreSQL itself has.
    Pglz,
    /// LZ4's block format.
    Lz4,
}

impl ToastCompression {
    /// The two highest bits of a length (`ToastCompressionId`).
    fn bits(self) -> u32 {
        match self {
            Self::Pglz => 0,
            Self::Lz4 => 1 << 30,
        }
    }
}

/// A column, as tuples have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToastAttribute {
    /// Bytes; none of a type of varying length.
    pub length: Option<u32>,
    /// Alignment, bytes.
    pub align: u32,
    /// Storage of values of varying length.
    pub storage: ToastStorage,
    /// Compression of its values.
    pub compression: ToastCompression,
}

/// Compresses large values of rows, or moves them out.
#[derive(Clone, Debug)]
pub struct Toaster {
    attributes: Vec<ToastAttribute>,
    /// OID of the TOAST table; none if there is none.
    table: Option<u32>,
    /// Length of a tuple above which its values are compressed or moved out, bytes.
    threshold: usize,
    /// Lengths that such a tuple is shortened to: `toast_tuple_target`, and the one for moving
    /// [`ToastStorage::Main`] values out.
    target: usize,
    target_main: usize,
    /// Data of a chunk at most, bytes (`TOAST_MAX_CHUNK_SIZE`).
    chunk: usize,
    compressor: Compressor,
    /// Values of the row that is being shortened.
    values: Vec<Value>,
    /// Its compressed values, with headers.
    compressed: Vec<u8>,
}

/// A value of the row that is looked at.
#[derive(Clone, Copy, Debug)]
struct Value {
    form: Form,
    /// With its header, bytes.
    size: usize,
    /// Whether the value stays as it is now.
    is_settled: bool,
    is_incompressible: bool,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Null,
    Fixed {
        /// Offset in the body.
        start: usize,
    },
    /// With a header of 1 byte, or of 4 bytes.
    Inline {
        /// Offset in the body.
        start: usize,
        header: usize,
    },
    Compressed {
        /// Offset among the compressed values.
        start: usize,
        /// Length of the value without a header, bytes.
        raw: usize,
    },
    /// The fields of the pointer.
    Moved {
        raw_size: u32,
        info: u32,
        /// Position among the values that were moved out: the longest value of a row comes first.
        position: usize,
    },
}

impl Toaster {
    /// For rows of a table with these columns. `target` is its `toast_tuple_target` (bytes), if that is set, and `table`
    /// the OID of its TOAST table, if it has one.
    pub fn new(
        geometry: Geometry,
        attributes: Vec<ToastAttribute>,
        target: Option<u32>,
        table: Option<u32>,
    ) -> Self {
        let threshold = geometry.toast_threshold();
        Self {
            attributes,
            table,
            threshold: threshold as usize,
            target: target.unwrap_or(threshold) as usize,
            target_main: geometry.longest_tuple() as usize,
            chunk: geometry.toast_chunk() as usize,
            compressor: Compressor::new(),
            values: Vec::new(),
            compressed: Vec::new(),
        }
    }

    /// Whether a row with a body of so many bytes is too long to be stored as it is.
    pub fn is_needed(&self, body: usize) -> bool {
        TUPLE_HEADER as usize + body > self.threshold
    }

    /// Length of the longest tuple that a page holds, bytes.
    pub fn longest_tuple(&self) -> usize {
        self.target_main
    }

    /// Appends the body that the server would store to `out`; returns whether it has pointers to values that were moved
    /// out. Those are appended to `moved`.
    pub fn toast(
        &mut self,
        body: &[u8],
        has_nulls: bool,
        out: &mut Vec<u8>,
        moved: &mut MovedValues,
    ) -> bool {
        let offset = self.data_offset(has_nulls);
        let before = offset - TUPLE_HEADER as usize;
        self.read(body, before, has_nulls);
        let mut row = Row { toaster: self, data: &body[before..], moved };
        row.shorten(offset);
        out.extend_from_slice(&body[..before]);
        self.write(&body[before..], out, moved)
    }

    /// Length of the header, with the null bitmap.
    fn data_offset(&self, has_nulls: bool) -> usize {
        let bitmap = if has_nulls { self.attributes.len().div_ceil(8) } else { 0 };
        (TUPLE_HEADER as usize + bitmap).next_multiple_of(8)
    }

    /// Finds the values of a body (`heap_deform_tuple`).
    fn read(&mut self, body: &[u8], before: usize, has_nulls: bool) {
        self.values.clear();
        self.compressed.clear();
        let data = &body[before..];
        let mut offset = 0_usize;
        for (position, attribute) in self.attributes.iter().enumerate() {
            let is_null = has_nulls && body[position / 8] >> (position % 8) & 1 == 0;
            let (form, size) = match attribute.length {
                _ if is_null => (Form::Null, 0),
                Some(length) => {
                    offset = offset.next_multiple_of(attribute.align as usize);
                    (Form::Fixed { start: offset }, length as usize)
                }
                None => {
                    // Padding is zeros, and no header of 1 byte is.
                    if data[offset] == 0 {
                        offset = offset.next_multiple_of(attribute.align as usize);
                    }
                    let (header, size) = varlena(&data[offset..]);
                    (Form::Inline { start: offset, header }, size)
                }
            };
            offset += size;
            let is_settled =
                attribute.length.is_some() || is_null || attribute.storage == ToastStorage::Plain;
            self.values.push(Value { form, size, is_settled, is_incompressible: false });
        }
    }

    /// `heap_compute_data_size`.
    fn data_size(&self) -> usize {
        let mut offset = 0_usize;
        for (value, attribute) in self.values.iter().zip(&self.attributes) {
            offset = value.begin(offset, attribute) + value.stored();
        }
        offset
    }

    /// `heap_fill_tuple`; returns whether there are pointers.
    fn write(&self, data: &[u8], out: &mut Vec<u8>, moved: &mut MovedValues) -> bool {
        let start = out.len();
        let mut has_external = false;
        for (value, attribute) in self.values.iter().zip(&self.attributes) {
            let begin = value.begin(out.len() - start, attribute);
            out.resize(start + begin, 0);
            match value.form {
                Form::Null => {}
                Form::Fixed { start } | Form::Inline { start, .. } => {
                    out.extend_from_slice(&data[start..][..value.size]);
                }
                Form::Compressed { start, .. } => {
                    out.extend_from_slice(&self.compressed[start..][..value.size]);
                }
                Form::Moved { raw_size, info, position } => {
                    moved.pointers[position] = out.len() + VALUE_ID;
                    out.extend([1, ON_DISK]);
                    for field in [raw_size, info, 0, self.table.unwrap_or(0)] {
                        out.extend(field.to_le_bytes());
                    }
                    has_external = true;
                }
            }
        }
        has_external
    }
}

impl Value {
    /// Offset at which a value begins that follows `offset` bytes.
    fn begin(&self, offset: usize, attribute: &ToastAttribute) -> usize {
        match self.form {
            Form::Null | Form::Moved { .. } | Form::Inline { header: 1, .. } => offset,
            Form::Fixed { .. } | Form::Inline { .. } | Form::Compressed { .. } => {
                offset.next_multiple_of(attribute.align as usize)
            }
        }
    }

    /// Length of the value in the row, bytes.
    fn stored(&self) -> usize {
        if matches!(self.form, Form::Moved { .. }) { POINTER } else { self.size }
    }
}

/// A row whose values are being compressed and moved out.
struct Row<'a> {
    toaster: &'a mut Toaster,
    /// Its values as they are.
    data: &'a [u8],
    moved: &'a mut MovedValues,
}

impl Row<'_> {
    /// The four rounds of `heap_toast_insert_or_update`. `offset` is the length of the header.
    fn shorten(&mut self, offset: usize) {
        let most = self.toaster.target.saturating_sub(offset);
        let has_table = self.toaster.table.is_some();
        while self.toaster.data_size() > most
            && let Some(at) = self.biggest(true, false)
        {
            if self.toaster.attributes[at].storage == ToastStorage::Extended {
                self.compress(at);
            } else {
                self.toaster.values[at].is_incompressible = true;
            }
            if self.toaster.values[at].size > most && has_table {
                self.move_out(at);
            }
        }
        while self.toaster.data_size() > most
            && has_table
            && let Some(at) = self.biggest(false, false)
        {
            self.move_out(at);
        }
        while self.toaster.data_size() > most
            && let Some(at) = self.biggest(true, true)
        {
            self.compress(at);
        }
        let most = self.toaster.target_main.saturating_sub(offset);
        while self.toaster.data_size() > most
            && has_table
            && let Some(at) = self.biggest(false, true)
        {
            self.move_out(at);
        }
    }

    /// The longest value that can still be compressed or, if not `to_compress`, moved out; only of
    /// columns with storage MAIN if `is_main`, else of the others
    /// (`toast_tuple_find_biggest_attribute`).
    fn biggest(&self, to_compress: bool, is_main: bool) -> Option<usize> {
        let mut most = POINTER.next_multiple_of(8);
        let mut biggest = None;
        for (at, (value, attribute)) in self.toaster.values.iter().zip(&self.toaster.attributes).enumerate() {
            let is_compressed = value.is_incompressible || matches!(value.form, Form::Compressed { .. });
            let is_out = value.is_settled
                || to_compress && is_compressed
                || is_main != (attribute.storage == ToastStorage::Main);
            if !is_out && value.size > most {
                (biggest, most) = (Some(at), value.size);
            }
        }
        biggest
    }

    /// `toast_compress_datum`.
    fn compress(&mut self, at: usize) {
        let Toaster { attributes, values, compressed, compressor, .. } = &mut *self.toaster;
        let (value, compression) = (&mut values[at], attributes[at].compression);
        let Form::Inline { start, header: header_length } = value.form else { return };
        let input = &self.data[start + header_length..start + value.size];
        let begin = compressed.len();
        compressed.extend([0; COMPRESSED_HEADER]);
        let is_done = match compression {
            ToastCompression::Pglz => compressor.compress(input, compressed),
            ToastCompression::Lz4 => lz4(input, compressed),
        };
        let size = compressed.len() - begin;
        // Less would be lost to header and padding.
        if !is_done || size + 2 >= input.len() {
            compressed.truncate(begin);
            value.is_incompressible = true;
            return;
        }
        compressed[begin..begin + HEADER].copy_from_slice(&header(size, true));
        compressed[begin + HEADER..begin + COMPRESSED_HEADER]
            .copy_from_slice(&(length(input.len()) | compression.bits()).to_le_bytes());
        value.form = Form::Compressed { start: begin, raw: input.len() };
        value.size = size;
    }

    /// `toast_save_datum`.
    fn move_out(&mut self, at: usize) {
        let Toaster { attributes, values, compressed, chunk, .. } = &mut *self.toaster;
        let value = &mut values[at];
        let (data, raw, bits) = match value.form {
            Form::Inline { start, header } => {
                (&self.data[start + header..start + value.size], value.size - header, 0)
            }
            Form::Compressed { start, raw } => {
                let bits = attributes[at].compression.bits();
                (&compressed[start + HEADER..start + value.size], raw, bits)
            }
            Form::Null | Form::Fixed { .. } | Form::Moved { .. } => return,
        };
        let (raw_size, info) = (length(raw + HEADER), length(data.len()) | bits);
        value.form = Form::Moved { raw_size, info, position: self.moved.chunks.len() };
        self.moved.push(data, *chunk);
        value.is_settled = true;
    }
}

/// Appends the input compressed with LZ4 (`lz4_compress_datum` in `toast_compression.c`); returns whether that is shorter.
/// PostgreSQL calls `LZ4_compress_default`, whose output differs in some bytes, and has about the same length.
fn lz4(input: &[u8], out: &mut Vec<u8>) -> bool {
    let begin = out.len();
    out.resize(begin + get_maximum_output_size(input.len()), 0);
    let written = compress_into(input, &mut out[begin..]).unwrap_or(usize::MAX);
    let is_done = written <= input.len();
    out.truncate(if is_done { begin + written } else { begin });
    is_done
}

/// Length of a value's header, and of the value with it (`VARSIZE_ANY`).
fn varlena(stored: &[u8]) -> (usize, usize) {
    if stored[0] & 1 == 1 {
        return (1, usize::from(stored[0] >> 1));
    }
    let header = stored.first_chunk().copied().map_or(0, u32::from_le_bytes);
    (HEADER, (header >> 2) as usize)
}

/// `SET_VARSIZE`, `SET_VARSIZE_COMPRESSED`.
fn header(size: usize, is_compressed: bool) -> [u8; HEADER] {
    (length(size) << 2 | u32::from(is_compressed) << 1).to_le_bytes()
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a value is below 1 GB")
}

impl Geometry {
    /// The longest tuple that a page holds, bytes (`MaxHeapTupleSize`, `TOAST_TUPLE_TARGET_MAIN`).
    pub fn longest_tuple(self) -> u32 {
        self.block_size() - max_align(PAGE_HEADER + LINE_POINTER)
    }

    /// Bytes of a value in a chunk, at most (`TOAST_MAX_CHUNK_SIZE` in `heaptoast.h`).
    pub(crate) fn toast_chunk(self) -> u32 {
        self.toast_threshold() - TUPLE_HEADER - CHUNK_HEAD
    }
}
