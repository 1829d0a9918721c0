//! Messages to the server, composed one behind the other ("54.7 Message Formats").

/// Messages to send.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    bytes: Vec<u8>,
    /// Number of bytes that have been sent.
    sent: usize,
}

/// The name of the unnamed statement or portal.
const UNNAMED: u8 = 0;

impl Outgoing {
    pub(super) fn query(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.message(b'Q', |body| {
            write(body);
            body.push(0);
        });
    }

    pub(super) fn parse(&mut self, statement: &str, sql: &str) {
        self.message(b'P', |body| {
            text(body, statement);
            text(body, sql);
            // No parameter has its type given.
            short(body, 0);
        });
    }

    pub(super) fn bind<P>(
        &mut self,
        statement: &str,
        parameters: &[P],
        mut write: impl FnMut(&P, &mut Vec<u8>) -> bool,
    ) {
        self.message(b'B', |body| {
            body.push(UNNAMED);
            text(body, statement);
            // All parameters are text.
            short(body, 0);
            short(body, u16::try_from(parameters.len()).expect("a statement has 65535 parameters at most"));
            for parameter in parameters {
                let at = body.len();
                body.extend_from_slice(&[0; LENGTH]);
                let length = if write(parameter, body) {
                    length(body.len() - at - LENGTH)
                } else {
                    body.truncate(at + LENGTH);
                    NULL
                };
                body[at..at + LENGTH].copy_from_slice(&length);
            }
            // So are all results.
            short(body, 0);
        });
    }

    pub(super) fn describe(&mut self) {
        self.message(b'D', |body| body.extend_from_slice(&[b'P', UNNAMED]));
    }

    pub(super) fn execute(&mut self) {
        // The last four: no limit of rows.
        self.message(b'E', |body| body.extend_from_slice(&[UNNAMED, 0, 0, 0, 0]));
    }

    pub(super) fn sync(&mut self) {
        self.message(b'S', |_| ());
    }

    pub(super) fn flush(&mut self) {
        self.message(b'H', |_| ());
    }

    pub(super) fn terminate(&mut self) {
        self.message(b'X', |_| ());
    }

    #[inline]
    fn message(&mut self, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.push(kind);
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; LENGTH]);
        write(&mut self.bytes);
        // It counts itself.
        let length = length(self.bytes.len() - at);
        self.bytes[at..at + LENGTH].copy_from_slice(&length);
    }

    #[inline]
    pub(super) fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    #[inline]
    pub(super) fn sent(&mut self, count: usize) {
        self.sent += count;
        if self.sent == self.bytes.len() {
            self.forget();
        }
    }

    /// Discards messages that have not been sent.
    pub(super) fn forget(&mut self) {
        self.bytes.clear();
        self.sent = 0;
    }
}

/// Bytes of a length.
const LENGTH: usize = 4;
/// The length of a parameter that has no value: -1.
const NULL: [u8; LENGTH] = [0xff; LENGTH];

fn length(bytes: usize) -> [u8; LENGTH] {
    u32::try_from(bytes).expect("a message is shorter than 4 GiB").to_be_bytes()
}

fn text(body: &mut Vec<u8>, text: &str) {
    body.extend_from_slice(text.as_bytes());
    body.push(0);
}

fn short(body: &mut Vec<u8>, number: u16) {
    body.extend_from_slice(&number.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_text_or_null() {
        let mut outgoing = Outgoing::default();
        outgoing.bind("s", &[Some("ab"), None, Some("")], |value, out| {
            // The text written for a NULL is discarded.
            out.extend_from_slice(value.unwrap_or("none").as_bytes());
            value.is_some()
        });
        let expected = b"B\0\0\0\x1b\0s\0\0\0\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0\0\0";
        assert_eq!(outgoing.unsent(), expected);
    }

    #[test]
    fn what_is_sent_is_gone() {
        let mut outgoing = Outgoing::default();
        outgoing.query(|out| out.extend_from_slice(b"ab"));
        outgoing.sent(3);
        outgoing.sync();
        assert_eq!(outgoing.unsent(), b"\0\x07ab\0S\0\0\0\x04");
        outgoing.sent(10);
        assert_eq!(outgoing.unsent(), b"");
        outgoing.flush();
        assert_eq!(outgoing.unsent(), b"H\0\0\0\x04");
    }
}
