//! The lines of COPY: the columns of each row, escapes, the encoding, and the end.

use std::io;

use super::wrong;
use measure::human::counted;

/// No row can be longer: PostgreSQL's MaxAllocSize (src/include/utils/memutils.h), twice for escaped characters.
const LONGEST: usize = 2 << 30;
/// Bytes that COPY always escapes (`CopyAttributeOutText` of src/backend/commands/copyto.c).
const ESCAPED: [u8; 5] = [0, 8, 11, 12, 13];
/// Letters after a backslash.
const LETTERS: &[u8] = b"bfnrtvN\\";

/// Checks the lines of one COPY, in pieces.
pub(in crate::check) struct Rows {
    /// Number of columns; none if it is not known.
    columns: Option<usize>,
    is_utf8: bool,
    /// The beginning of a line that goes on in the next piece.
    line: Vec<u8>,
    count: u64,
    /// Whether lines end with CR and LF, as the first one does; the server decides so, too (copyfromparse.c: `EOL_CRNL`).
    has_cr: Option<bool>,
    has_ended: bool,
}

impl Rows {
    /// For the data of this COPY statement.
    pub(in crate::check) fn new(statement: &[u8], is_utf8: bool) -> Self {
        Self {
            columns: columns(statement),
            is_utf8,
            line: Vec::new(),
            count: 0,
            has_cr: None,
            has_ended: false,
        }
    }

    /// Reads on.
    pub(in crate::check) fn feed(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            if self.line.is_empty() {
                self.check(&bytes[..end])?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&bytes[..end]);
                self.check(&line)?;
                line.clear();
                self.line = line;
            }
            bytes = &bytes[end + 1..];
        }
        if self.line.len() + bytes.len() > LONGEST {
            return Err(wrong("a row is longer than 2 GiB"));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// Number of rows, once all data are read.
    pub(in crate::check) fn end(&self) -> io::Result<u64> {
        if self.has_ended && self.line.is_empty() {
            Ok(self.count)
        } else {
            Err(wrong(format!("the rows end without the line \\. after {}", counted(self.count, "row"))))
        }
    }

    fn check(&mut self, line: &[u8]) -> io::Result<()> {
        let without_cr = line.strip_suffix(b"\r");
        let line =
            if *self.has_cr.get_or_insert(without_cr.is_some()) { without_cr.unwrap_or(line) } else { line };
        if self.has_ended {
            return if line.is_empty() {
                Ok(())
            } else {
                Err(wrong("rows follow the line \\. that ends them"))
            };
        }
        if line == b"\\." {
            self.has_ended = true;
            return Ok(());
        }
        self.count += 1;
        self.problem(line).map_or(Ok(()), |problem| Err(wrong(format!("row {}: {problem}", self.count))))
    }

    fn problem(&self, line: &[u8]) -> Option<String> {
        let found = memchr::memchr_iter(b'\t', line).count() + 1;
        if let Some(columns) = self.columns.filter(|columns| *columns != found) {
            return Some(format!("it has {} instead of {columns}", counted(found as u64, "column")));
        }
        if !self.is_utf8 {
            // In some encodings, the second byte of a letter may be a backslash.
            return line.contains(&0).then(|| "a byte is NUL".to_owned());
        }
        if std::str::from_utf8(line).is_err() {
            return Some("not UTF-8".to_owned());
        }
        if let Some(byte) = line.iter().find(|byte| ESCAPED.contains(byte)) {
            return Some(format!("byte {byte:#04x}, which COPY escapes"));
        }
        let mut rest = line;
        while let Some(at) = memchr::memchr(b'\\', rest) {
            match rest.get(at + 1) {
                Some(letter) if LETTERS.contains(letter) => rest = &rest[at + 2..],
                _ => return Some("a backslash that COPY does not write".to_owned()),
            }
        }
        None
    }
}

/// Number of columns that a COPY statement names; none if it names none.
fn columns(statement: &[u8]) -> Option<usize> {
    let mut is_quoted = false;
    let (mut depth, mut commas) = (0, 0);
    for byte in statement {
        match byte {
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'(' => depth += 1,
            b')' => return Some(commas + 1),
            b',' if depth == 1 => commas += 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(statement: &str, data: &[u8]) -> io::Result<u64> {
        // In pieces, so that lines are cut.
        let mut rows = Rows::new(statement.as_bytes(), true);
        data.chunks(3).try_for_each(|piece| rows.feed(piece))?;
        rows.end()
    }

    const COPY: &str = r#"COPY public."a,(b" (id, "x"",)", c) FROM stdin;"#;

    #[test]
    fn rows_are_counted() {
        assert_eq!(read(COPY, b"1\t\\N\tx\n2\ta\\\\b\t\n\\.\n\n\n").unwrap(), 2);
        assert_eq!(read("COPY t  FROM stdin;", b"\n\n\\.\n").unwrap(), 2);
        assert_eq!(read(COPY, "1\tö\tx\n\\.\n".as_bytes()).unwrap(), 1);
        assert_eq!(read(COPY, b"1\t2\t3\r\n4\t5\t6\r\n\\.\r\n\r\n").unwrap(), 2);
    }

    #[test]
    fn rows_that_copy_does_not_write_are_damage() {
        for (data, says) in [
            (&b"1\t2\n\\.\n"[..], "row 1: it has 2 columns instead of 3"),
            (b"1\t2\t3\n1\t2\t3\t4\n\\.\n", "row 2: it has 4 columns"),
            (b"1\t2\t3\n", "without the line \\. after 1 row"),
            (b"1\t2\t3\n\\.", "without the line"),
            (b"1\t2\t3\n\\.\nx\n", "rows follow"),
            (b"1\t\xc3\t3\n\\.\n", "not UTF-8"),
            (b"1\t2\t\x0c\n\\.\n", "0x0c"),
            (b"1\t2\t3\n1\t2\t3\r\n\\.\n", "0x0d"),
            (b"1\t\\q\t3\n\\.\n", "a backslash"),
            (b"", "after 0 rows"),
        ] {
            let error = read(COPY, data).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
