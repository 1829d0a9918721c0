//! Tokens and names of whole texts.

use crate::{Kind, Text, Unterminated, name};

fn tokens(sql: &str) -> Result<Vec<(Kind, &str)>, Unterminated> {
    let text = Text::whole(sql);
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some((kind, length)) = text.from(at).token()? {
        if kind != Kind::Blank {
            tokens.push((kind, &sql[at..at + length]));
        }
        at += length;
    }
    Ok(tokens)
}

#[test]
fn quotes_and_comments_hide_what_is_in_them() {
    for (sql, kind) in [
        ("'it''s; \\'", Kind::Literal),
        ("E'it\\'s;'", Kind::Literal),
        ("$$ ' $a$ ; $$", Kind::Literal),
        ("$a$ $$ ; $a$", Kind::Literal),
        ("\"a\"\";\"", Kind::QuotedName),
        ("U&\"\\0061;\"", Kind::QuotedName),
        ("/* /* ; */ ' */", Kind::Comment),
        ("-- ; '", Kind::Comment),
        ("Größe$1", Kind::Word),
        ("2024", Kind::Other),
    ] {
        assert_eq!(tokens(sql), Ok(vec![(kind, sql)]), "{sql}");
    }
}

#[test]
fn what_is_not_closed_is_named() {
    for (sql, unterminated) in [
        ("'a", Unterminated::Literal),
        ("E'a\\'", Unterminated::Literal),
        ("\"a", Unterminated::QuotedName),
        ("$a$ $$", Unterminated::DollarQuotes),
        ("/* /* */", Unterminated::Comment),
    ] {
        assert_eq!(tokens(sql), Err(unterminated), "{sql}");
    }
}

#[test]
fn names_are_folded_unless_quoted() {
    for (sql, expected) in [
        ("Orders", Some("orders")),
        ("ÄB", Some("Äb")),
        ("\"Odd \"\"one\"", Some("Odd \"one")),
        ("U&\"d\\0061t\\+000061\"", Some("data")),
        ("'a'", None),
        ("1", None),
    ] {
        let (kind, token) = tokens(sql).unwrap()[0];
        assert_eq!(name(kind, token.as_bytes()).as_deref(), expected.map(str::as_bytes), "{sql}");
    }
}
