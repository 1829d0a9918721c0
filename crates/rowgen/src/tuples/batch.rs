//! Bodies one after another in a buffer that is used again and again.

/// A batch of tuple bodies.
#[derive(Clone, Debug, Default)]
pub struct Tuples {
    bytes: Vec<u8>,
    shapes: Vec<Shape>,
}

/// Properties of a body besides its bytes.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Its end in the batch's bytes.
    end: u32,
    features: Features,
}

/// Properties of a body that a tuple's header records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Features {
    pub(super) has_nulls: bool,
    pub(super) has_varwidth: bool,
}

/// All of a heap tuple after the first 23 bytes of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body<'a> {
    /// Null bitmap, padding, attributes.
    pub bytes: &'a [u8],
    /// Whether there is a null bitmap (`HEAP_HASNULL`).
    pub has_nulls: bool,
    /// Whether there is a value of a varying-length type (`HEAP_HASVARWIDTH`).
    pub has_varwidth: bool,
}

impl Tuples {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes all bodies out; the memory stays.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.shapes.clear();
    }

    /// Number of bodies.
    pub fn len(&self) -> usize {
        self.shapes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }

    /// Length of all bodies together, bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The bodies, in order.
    pub fn bodies(&self) -> impl ExactSizeIterator<Item = Body<'_>> {
        let mut rest = &*self.bytes;
        let mut start = 0;
        self.shapes.iter().map(move |&Shape { end, features: Features { has_nulls, has_varwidth } }| {
            let (bytes, after) = rest.split_at((end - start) as usize);
            (rest, start) = (after, end);
            Body { bytes, has_nulls, has_varwidth }
        })
    }

    /// Appends a body whose bytes `write` appends.
    pub(super) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Features) {
        let features = write(&mut self.bytes);
        self.shapes.push(Shape { end: offset(self.bytes.len()), features });
    }

    /// Appends bodies of one length that stand one after another, and gives their bytes for changes.
    pub(super) fn push_many(&mut self, bodies: &[u8], length: usize, features: Features) -> &mut [u8] {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bodies);
        // That the last one's end fits means that all do.
        let (mut end, last) = (offset(start), offset(self.bytes.len()));
        let length = offset(length);
        self.shapes.extend((0..(last - end) / length).map(|_| {
            end += length;
            Shape { end, features }
        }));
        &mut self.bytes[start..]
    }
}

fn offset(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a batch is below 4 GB")
}
