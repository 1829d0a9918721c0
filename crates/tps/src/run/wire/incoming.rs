//! Received bytes, cut into messages.

use std::ops::Range;

/// A message's kind and length.
const HEADER: usize = 5;
/// Initial size of a session's buffer; libpq's is the same.
const INITIAL: usize = 16 << 10;
/// Size up to which the buffer grows when reads fill it. It grows further only for a longer
/// message.
const USUAL: usize = 64 << 10;

/// Received bytes. `bytes[start..end]` has not been taken yet; the bytes after it are free.
#[derive(Debug)]
pub(super) struct Incoming {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Default for Incoming {
    fn default() -> Self {
        Self { bytes: vec![0; INITIAL], start: 0, end: 0 }
    }
}

impl Incoming {
    /// Free space for the next bytes; never empty.
    #[inline]
    pub(super) fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.bytes.len() - self.end < self.bytes.len() / 4 {
            self.make_space();
        }
        &mut self.bytes[self.end..]
    }

    /// Makes space for the rest of a message that has begun.
    fn make_space(&mut self) {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end > self.bytes.len() / 2 {
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
    }

    /// Takes note of bytes that have been put into the space.
    #[inline]
    pub(super) fn filled(&mut self, count: usize) {
        self.end += count;
        if self.end == self.bytes.len() && self.bytes.len() < USUAL {
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
    }

    /// Takes the next message, if it is complete. Returns its kind, and the place of its body,
    /// which is valid until the next [`Self::space`].
    #[inline]
    pub(super) fn frame(&mut self) -> Result<Option<(u8, Range<usize>)>, String> {
        let [kind, length @ ..] = &self.bytes[self.start..self.end] else { return Ok(None) };
        let Some((length, _)) = length.split_first_chunk() else { return Ok(None) };
        // It counts itself.
        let Some(length) = (u32::from_be_bytes(*length) as usize).checked_sub(HEADER - 1) else {
            return Err(format!("the server's message of kind {:?} has no length", char::from(*kind)));
        };
        let body = self.start + HEADER..self.start + HEADER + length;
        if body.end > self.end {
            return Ok(None);
        }
        self.start = body.end;
        Ok(Some((*kind, body)))
    }

    /// Bytes of a message's body.
    #[inline]
    pub(super) fn bytes(&self, body: Range<usize>) -> &[u8] {
        &self.bytes[body]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn receive(incoming: &mut Incoming, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let space = incoming.space();
            let count = space.len().min(bytes.len());
            space[..count].copy_from_slice(&bytes[..count]);
            incoming.filled(count);
            bytes = &bytes[count..];
        }
    }

    proptest! {
        /// However long the messages are and however their bytes are cut, they come out as they went in.
        #[test]
        fn messages_come_out_whole(
            lengths in prop::collection::vec(prop_oneof![0..100_usize, 0..200_000_usize], 1..20),
            cut in 1..100_000_usize,
        ) {
            let body = |number: usize| {
                let length = lengths[number];
                std::iter::repeat_n(u8::try_from(number).unwrap(), length).collect::<Vec<u8>>()
            };
            let mut stream = Vec::new();
            for (number, length) in lengths.iter().enumerate() {
                stream.push(b'D');
                stream.extend(u32::try_from(length + 4).unwrap().to_be_bytes());
                stream.extend(body(number));
            }
            let mut incoming = Incoming::default();
            let mut number = 0;
            for piece in stream.chunks(cut) {
                receive(&mut incoming, piece);
                while let Some((kind, range)) = incoming.frame().unwrap() {
                    prop_assert_eq!(kind, b'D');
                    prop_assert!(incoming.bytes(range) == body(number));
                    number += 1;
                }
            }
            prop_assert_eq!(number, lengths.len());
        }
    }

    #[test]
    fn a_length_that_cannot_be() {
        let mut incoming = Incoming::default();
        receive(&mut incoming, b"Z\0\0\0\x03");
        assert!(incoming.frame().unwrap_err().contains("'Z'"));
    }
}
