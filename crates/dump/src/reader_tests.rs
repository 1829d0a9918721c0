//! Tests of the ends of pieces.

use std::io::{self, Read};

use proptest::prelude::*;
use sql::{Backslash, Syntax, Text};

use crate::cut::{self, Cut};
use crate::{DumpError, Piece, Reader, Within};

/// The kind of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Between,
    Statement,
    CopyData,
    CopyEnd,
    Meta,
}

/// All pieces, those joined that may be cut anywhere; and the error, if one ended them.
fn pieces<R: Read>(mut reader: Reader<R>) -> (Vec<(Kind, String)>, Option<String>) {
    let mut pieces = Vec::<(Kind, Vec<u8>)>::new();
    let error = loop {
        let piece = match reader.next() {
            Ok(Some(piece)) => piece,
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        };
        assert!(!piece.bytes().is_empty(), "an empty piece after {pieces:?}");
        let kind = match piece {
            Piece::Between(_) => Kind::Between,
            Piece::Statement(_) => Kind::Statement,
            Piece::CopyData(_) => Kind::CopyData,
            Piece::CopyEnd(_) => Kind::CopyEnd,
            Piece::Meta(_) => Kind::Meta,
        };
        match pieces.last_mut() {
            Some((last, bytes)) if *last == kind && matches!(kind, Kind::Between | Kind::CopyData) => {
                bytes.extend(piece.bytes());
            }
            _ => pieces.push((kind, piece.bytes().to_vec())),
        }
    };
    let text = |bytes| String::from_utf8(bytes).expect("pieces of text, whole");
    (pieces.into_iter().map(|(kind, bytes)| (kind, text(bytes))).collect(), error)
}

/// The statements of a text that has no errors.
fn statements(text: &str) -> Vec<String> {
    let (pieces, error) = pieces(Reader::new(text.as_bytes()));
    assert_eq!(error, None, "{text}");
    pieces.into_iter().filter(|(kind, _)| *kind == Kind::Statement).map(|(_, text)| text).collect()
}

/// Asserts that each of these texts is one statement, between others.
fn assert_single(texts: &[&str]) {
    for text in texts {
        let script = format!("SELECT 1;\n{text}\n-- a comment;\nSELECT 2;");
        assert_eq!(statements(&script), ["SELECT 1;", text, "SELECT 2;"], "{text}");
    }
}

fn error(text: &str) -> DumpError {
    let mut reader = Reader::new(text.as_bytes());
    loop {
        match reader.next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("no error: {text}"),
            Err(error) => return error,
        }
    }
}

/// The construct in which a text ends.
fn ends_within(text: &str) -> Within {
    match error(text) {
        DumpError::EndsWithin { within, .. } => within,
        error => panic!("{error}: {text}"),
    }
}

#[test]
fn quotes_hide_semicolons() {
    assert_single(&[
        "SELECT ';', 'it''s;', \"a;\"\"b;\", U&\"d;\\0061t\", U&'\\0061;', B'1;', x';', n';';",
        "SELECT '\\';",
        "SELECT E'\\';', e'\\\\', E'''\\';';",
        "SELECT $$;$$, $a$;$$;$b$;$a$, $é1_$;$é1_$, a$b$, $1, 1$$;$$;",
        "SELECT 'a'\n  -- it's; continued\n  'b;';",
        "SELECT E'a'\n  -- it's; continued\r\n 'b\\';';",
        "SELECT e$x, E'a' 'b;', nE';';",
        "SELECT named, u&b, u & 'c;';",
    ]);
}

#[test]
fn comments_hide_everything() {
    assert_single(&[
        "SELECT /* ; ' \" $$ /* nested; */ ; **/ 1;",
        "SELECT 1 -- ; ' \" $$ /*\n;",
        "SELECT 1 --\r;",
        "SELECT 3 - -2, 4 /2, '/*' , 5 +/* ; */ 6, 7 *-- ;\n 8;",
    ]);
    assert_eq!(statements("/* a; /* b; */ ; */ -- c;\n\n"), [""; 0]);
    assert_eq!(statements("SELECT 1 -- no line end;"), ["SELECT 1 -- no line end;"]);
}

#[test]
fn parentheses_hide_semicolons() {
    assert_single(&[
        "CREATE RULE r AS ON INSERT TO t DO ALSO (INSERT INTO a VALUES (1); DELETE FROM b;);",
        "SELECT ')', (1);",
        "SELECT 1);",
    ]);
}

#[test]
fn bodies_hide_semicolons() {
    assert_single(&[
        "CREATE FUNCTION public.f(a integer) RETURNS integer\n    LANGUAGE sql\n    BEGIN ATOMIC\n SELECT \
         CASE WHEN (f.a > 0) THEN CASE 1 WHEN 2 THEN 3 END ELSE 4 END AS \"end\";\n SELECT 5;\nEND;",
        "CREATE OR REPLACE PROCEDURE p() BEGIN ATOMIC END;",
        "create function begin() returns int language sql return 1;",
        "CREATE FUNCTION public.begin() RETURNS integer LANGUAGE sql AS $_$ BEGIN; $_$;",
        "CREATE FUNCTION f() RETURNS TABLE(\"begin\" int) LANGUAGE sql BEGIN /* ; */ ATOMIC SELECT (SELECT 1); END;",
        "CREATE VIEW v AS SELECT begin, atomic FROM t;",
        "BEGIN;",
    ]);
}

#[test]
fn backslashes_escape_if_standard_conforming_strings_is_off() {
    let off = "SET standard_conforming_strings = off;\n";
    let on = "set SESSION standard_conforming_strings TO 'on';\n";
    let script = format!(
        "SELECT '\\';{off}SELECT '\\';', U&'\\', b'\\';{on}SELECT '\\';{off}\\connect b\nSELECT '\\';"
    );
    let found = statements(&script);
    assert_eq!(found.len(), 7, "{found:?}");
    assert_eq!(found[2], "SELECT '\\';', U&'\\', b'\\';");
    for reset in ["RESET standard_conforming_strings;", "reset all;"] {
        let script =
            format!("SET standard_conforming_strings = f;SELECT '\\';';{reset}SELECT '\\';SELECT '';");
        assert_eq!(statements(&script).len(), 5, "{script}");
    }
    assert_eq!(found[6], "SELECT '\\';");
}

/// In these a later byte of a character can be a backslash: here the second of `\x95\x5c`.
#[test]
fn client_encodings_decide_what_a_backslash_is() {
    let statements: [&[u8]; 6] = [
        b"SELECT E'\\\\\x95\\;';",
        b"SELECT E'\\\x95\\', \x95\\;",
        b"CREATE TABLE t\x95\\ (a text DEFAULT E'\x95\\');",
        b"INSERT INTO t\x95\\ VALUES (E'\x95\\', '\x95\\');",
        b"INSERT INTO t VALUES ('\x95\\');",
        b"SELECT 2;",
    ];
    let script = statements.join(&b'\n');
    for name in ["SJIS", "Big5", "gbk", "UHC", "GB18030", "johab", "Shift_JIS"] {
        for set in [
            format!("SET client_encoding = '{name}';"),
            format!("SET NAMES '{name}';"),
            format!("\\encoding {name}\n"),
        ] {
            let script =
                [set.as_bytes(), &script, b"SET client_encoding TO UTF8;SELECT E'\xc3\xa9\\\'';"].concat();
            let mut reader = Reader::new(script.as_slice());
            let mut found = Vec::new();
            while let Some(piece) = reader.next().unwrap_or_else(|error| panic!("{name}: {error}")) {
                if let Piece::Statement(statement) = piece {
                    found.push(statement.to_vec());
                }
            }
            found.retain(|statement| !statement.starts_with(b"SET"));
            assert_eq!(found[..6], statements, "{set}");
            assert_eq!(found[6], b"SELECT E'\xc3\xa9\\\'';");
        }
    }
    // Katakana of half width are one byte, and some characters four.
    for (name, text) in [("SJIS", &b"SELECT E'\xb1\\';';"[..]), ("GB18030", b"SELECT E'\x810\x81\\';")] {
        let script = [format!("SET client_encoding = '{name}';").as_bytes(), text].concat();
        let mut reader = Reader::new(script.as_slice());
        reader.next().unwrap();
        assert_eq!(reader.next().unwrap(), Some(Piece::Statement(text)), "{name}");
    }
}

#[test]
fn copy_data_are_data() {
    let data = "1\tCREATE TABLE a ();\n\\.x\n\\\\.\n \\.\n'\n\\N\t$$\n\\.\\.\n/*\n";
    let script = format!(
        "COPY public.t (a, b) FROM stdin;\n{data}\\.\n\n\nSELECT 1;\ncopy \"from\" from STDIN;\n\\.\n"
    );
    let (found, error) = pieces(Reader::new(script.as_bytes()));
    assert_eq!(error, None);
    assert_eq!(
        found,
        [
            (Kind::Statement, "COPY public.t (a, b) FROM stdin;\n".to_owned()),
            (Kind::CopyData, data.to_owned()),
            (Kind::CopyEnd, "\\.\n".to_owned()),
            (Kind::Between, "\n\n".to_owned()),
            (Kind::Statement, "SELECT 1;".to_owned()),
            (Kind::Between, "\n".to_owned()),
            (Kind::Statement, "copy \"from\" from STDIN;\n".to_owned()),
            (Kind::CopyEnd, "\\.\n".to_owned()),
        ]
    );
}

#[test]
fn copy_that_reads_elsewhere_has_no_data() {
    assert_single(&[
        "COPY t FROM '/tmp/stdin';",
        "COPY t TO stdout;",
        "COPY (SELECT 1 FROM stdin) TO STDOUT;",
        "COPY \"stdin\" TO stdout;",
        "CREATE TABLE copy (\"from\" stdin);",
    ]);
}

#[test]
fn windows_line_ends() {
    let script = "COPY t FROM stdin;\r\n1\r\n\\.\r\n\\restrict a\r\nSELECT 1;\r\n";
    let (found, error) = pieces(Reader::new(script.as_bytes()));
    assert_eq!(error, None);
    assert_eq!(found[1], (Kind::CopyData, "1\r\n".to_owned()));
    assert_eq!(found[2], (Kind::CopyEnd, "\\.\r\n".to_owned()));
    assert_eq!(found[3], (Kind::Meta, "\\restrict a\r\n".to_owned()));
}

#[test]
fn the_last_line_end_may_be_missing() {
    assert_eq!(statements("SELECT 1"), ["SELECT 1"]);
    let (found, error) = pieces(Reader::new(&b"COPY t FROM stdin;\n1\n\\."[..]));
    assert_eq!(error, None);
    assert_eq!(found[2], (Kind::CopyEnd, "\\.".to_owned()));
    let (found, error) = pieces(Reader::new(&b"\\unrestrict a"[..]));
    assert_eq!((found, error), (vec![(Kind::Meta, "\\unrestrict a".to_owned())], None));
}

#[test]
fn a_byte_order_mark_comes_before_everything() {
    let (found, error) = pieces(Reader::new(&b"\xef\xbb\xbfSELECT 1;"[..]));
    assert_eq!(error, None);
    assert_eq!(found, [(Kind::Between, "\u{feff}".to_owned()), (Kind::Statement, "SELECT 1;".to_owned())]);
}

#[test]
fn what_is_cut_off_is_told() {
    assert_eq!(ends_within("SELECT 'a;"), Within::Literal);
    assert_eq!(ends_within("SELECT E'a\\';"), Within::Literal);
    assert_eq!(ends_within("SELECT \"a;"), Within::QuotedName);
    assert_eq!(ends_within("SELECT $a$;$$;"), Within::DollarQuotes);
    assert_eq!(ends_within("SELECT (1;"), Within::Parentheses);
    assert_eq!(ends_within("/* /* */;"), Within::Comment);
    assert_eq!(ends_within("CREATE FUNCTION f() BEGIN ATOMIC SELECT 1;"), Within::Body);
    assert_eq!(ends_within("COPY t FROM stdin;\n1\n"), Within::CopyData);
    assert_eq!(ends_within("COPY t FROM stdin;\n1\n2"), Within::CopyData);
    assert_eq!(ends_within("COPY t FROM stdin;"), Within::CopyData);
    let told = error("SELECT 1;\n\nSELECT '\n\n").to_string();
    assert!(told.contains("a string, which began at or after line 3"), "{told}");
    let told = error("SELECT 1;\nCOPY t FROM stdin;\n1\n2\n").to_string();
    assert!(told.contains("COPY data, which began at or after line 2"), "{told}");
}

#[test]
fn what_pg_dump_never_writes_is_refused() {
    assert!(matches!(error("SELECT 1;\nSELECT 2\n\\gset\n"), DumpError::MetaWithinStatement { line: 3 }));
    for copy in ["\\copy t from stdin", "\\copy t (a) FROM pstdin with csv"] {
        let told = error(&format!("SELECT 1;\n{copy}\nCREATE TABLE t ();\n")).to_string();
        assert!(told.contains("line 2: \\copy"), "{told}");
    }
    assert!(matches!(error("\n\nCOPY t FROM stdin; SELECT 2;\n\\.\n"), DumpError::AfterCopy { line: 3 }));
}

#[test]
fn lines_are_counted() {
    let script = "-- one\nSELECT 2;\nCOPY t FROM stdin;\n4\n5\n\\.\n\nSELECT\n8;SELECT 9;";
    let mut reader = Reader::new(script.as_bytes());
    let mut lines = Vec::new();
    while let Some(piece) = reader.next().unwrap() {
        if matches!(piece, Piece::Statement(_)) {
            lines.push(reader.line());
        }
    }
    assert_eq!(lines, [2, 3, 8, 9]);
}

#[test]
fn lines_are_counted_in_what_is_no_piece() {
    let script = "SELECT 1;\nINSERT INTO t VALUES ('\n');\nINSERT INTO t\nVALUES (1);\nSELECT '6\n";
    let mut reader = Reader::new(script.as_bytes());
    assert_eq!(reader.rows(), b"", "before anything is read");
    assert_eq!(reader.next().unwrap(), Some(Piece::Statement(b"SELECT 1;")));
    assert_eq!(reader.uncut(1).unwrap(), b"\n");
    assert_eq!(reader.rows(), b"INSERT INTO t VALUES ('\n');\nINSERT INTO t\nVALUES (1);");
    assert_eq!(reader.next().unwrap(), Some(Piece::Between(b"\n")));
    let told = reader.next().unwrap_err().to_string();
    assert!(told.contains("line 6"), "{told}");
}

/// Gives its text in parts of these lengths, again and again, and fails now and then as an interrupted read does.
struct Trickle<'a> {
    text: &'a [u8],
    lengths: Vec<usize>,
    reads: usize,
}

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        let length = self.lengths[self.reads % self.lengths.len()];
        if length == 0 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let length = length.min(self.text.len()).min(buffer.len());
        let (now, later) = self.text.split_at(length);
        buffer[..length].copy_from_slice(now);
        self.text = later;
        Ok(length)
    }
}

/// Parts of dumps, with characters that make them hard to cut.
const FRAGMENTS: &[&str] = &[
    "SELECT 1;",
    ";",
    "\n",
    "\r\n",
    " ",
    "--",
    "-- c;\n",
    "-",
    "/",
    "*",
    "/*",
    "*/",
    "'",
    "''",
    "\"",
    "$",
    "$$",
    "$a$",
    "a$",
    "E",
    "E'",
    "U&",
    "U&\"",
    "u&'",
    "\\",
    "\\.",
    "\\.\n",
    "\n\\.\r\n",
    "\n\\.\n",
    "\\.x\n",
    "(",
    ")",
    "CREATE ",
    "FUNCTION ",
    "OR REPLACE ",
    "BEGIN ",
    "ATOMIC ",
    "CASE ",
    "END",
    "COPY t FROM stdin;\n",
    "COPY t ",
    "FROM ",
    "stdin",
    "SET standard_conforming_strings = off;",
    "\\connect b\n",
    "1\t2\n",
    "é",
    "x'",
    "\u{feff}",
    "12",
];

/// A statement whose words mean nothing, token by token: its length, or none if it does not end.
fn end_of_rows(text: Text<'_>) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_u32);
    while let Ok(Some((kind, length))) = text.from(at).token() {
        at += length;
        match kind {
            sql::Kind::Open => depth += 1,
            sql::Kind::Close => depth = depth.saturating_sub(1),
            sql::Kind::Semicolon if depth == 0 => return Some(at),
            sql::Kind::Backslash => return None,
            _ => {}
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    /// Words mean nothing to rows: with and without them a statement ends at the same place.
    #[test]
    fn rows_as_insert_end_where_their_tokens_do(
        rest in "[eEuUxa1$&'\"()/*; \n.,-]{0,24}",
        is_all in any::<bool>(),
        escapes in any::<bool>(),
    ) {
        let text = format!("INSERT {rest};\n");
        let backslash = if escapes { Backslash::Escapes } else { Backslash::Plain };
        let text = Text { bytes: text.as_bytes(), is_all, syntax: Syntax { backslash, ..Syntax::default() } };
        let found = match cut::sql(text) {
            Ok(Some(Cut::Statement { length, .. })) if text.bytes[..length].ends_with(b";") => Some(length),
            _ => None,
        };
        let reference = end_of_rows(text);
        prop_assert_eq!(found, reference);
    }
}

/// Parts of rows, and text that may come between and after them.
const ROWS: &[&str] = &[
    "INSERT INTO t VALUES (1, 'a''b;', NULL);",
    "INSERT INTO t VALUES (1, 'a''b;', NULL);\n",
    "INSERT INTO ",
    "INSERT INTO",
    "insert into t VALUES (2);",
    "(3, E'\\'",
    "'",
    ");",
    "\n",
    " ",
    "-- c;\n",
    "\\",
    "$$",
    "SELECT 1;",
    "COPY t FROM stdin;\n",
];

/// Length of the statements INSERT at the beginning, cut one by one.
fn rows_one_by_one(text: Text<'_>) -> usize {
    let (mut at, mut rows) = (0, 0);
    loop {
        let rest = text.from(at);
        match cut::sql(rest) {
            Ok(Some(Cut::Between(length))) if rest.bytes[..length].iter().all(u8::is_ascii_whitespace) => {
                at += length;
            }
            Ok(Some(Cut::Statement { length, .. })) if rest.bytes.starts_with(b"INSERT INTO ") => {
                at += length;
                rows = at;
            }
            _ => return rows,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Rows are passed over up to where cutting them one by one comes.
    #[test]
    fn rows_end_where_they_do_one_by_one(
        parts in prop::collection::vec(prop::sample::select(ROWS), 0..12),
        is_all in any::<bool>(),
    ) {
        let text = format!("INSERT INTO t VALUES (0);{}", parts.concat());
        let text = Text { bytes: text.as_bytes(), is_all, syntax: Syntax::default() };
        prop_assert_eq!(cut::rows(text), rows_one_by_one(text));
    }

    /// Nothing is lost, and how the bytes arrive changes nothing.
    #[test]
    fn pieces_do_not_depend_on_how_the_bytes_arrive(
        parts in prop::collection::vec(prop::sample::select(FRAGMENTS), 0..40),
        lengths in prop::collection::vec(0_usize..9, 1..5),
        buffer in 1_usize..64,
    ) {
        let text = parts.concat();
        let mut lengths = lengths;
        lengths.push(1);
        let whole = pieces(Reader::new(text.as_bytes()));
        let trickle = Trickle { text: text.as_bytes(), lengths, reads: 0 };
        let trickled = pieces(Reader::with_buffer(trickle, buffer));
        let told = |error: &Option<String>| error.as_ref().map(|error| error.split(" line").next().unwrap().to_owned());
        prop_assert_eq!(&whole.0, &trickled.0);
        prop_assert_eq!(told(&whole.1), told(&trickled.1));
        let joined = whole.0.iter().map(|(_, text)| text.as_str()).collect::<String>();
        if whole.1.is_none() {
            prop_assert_eq!(joined, text);
        } else {
            prop_assert!(text.starts_with(&joined));
        }
    }
}
