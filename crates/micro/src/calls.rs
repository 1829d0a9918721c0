//! Which functions an SQL text calls.

use std::iter::Peekable;
use std::str::Chars;

/// Words before a parenthesis that is no call's: `INSERT INTO t (a)`, `AS g(i)`.
const NO_CALLS_AFTER: [&str; 3] = ["into", "as", "table"];
/// What the grammar makes something else of, by whatever name EXPLAIN then prints it (`func_expr_common_subexpr`,
/// gram.y, and the keywords that may stand before a parenthesis).
const SYNTAX: [&str; 24] = [
    "extract",
    "overlay",
    "position",
    "substring",
    "trim",
    "normalize",
    "coalesce",
    "nullif",
    "greatest",
    "least",
    "cast",
    "treat",
    "row",
    "array",
    "exists",
    "any",
    "all",
    "some",
    "in",
    "values",
    "timezone",
    "xmlexists",
    "like",
    "similar",
];

/// The functions called, as often as they are, without their schemas.
pub(super) fn calls(sql: &str) -> Vec<String> {
    let mut calls = Vec::new();
    let (mut last, mut before_last) = (Token::Other, Token::Other);
    let mut rest = sql.chars().peekable();
    while let Some(token) = next(&mut rest) {
        if token == Token::Open
            && let Token::Name(name) = &last
            && !is_excluded(name, &before_last)
        {
            calls.push(name.clone());
        }
        before_last = std::mem::replace(&mut last, token);
    }
    calls
}

fn is_excluded(name: &str, before: &Token) -> bool {
    let follows = match before {
        Token::Name(word) => NO_CALLS_AFTER.contains(&word.as_str()),
        // An alias: `generate_series(1, 5) g(i)`.
        Token::Close => true,
        _ => false,
    };
    follows || SYNTAX.contains(&name)
}

/// How often the function is called in an expression or a plan as EXPLAIN prints it.
pub(super) fn count(printed: &str, name: &str) -> usize {
    calls(printed).iter().filter(|call| call.as_str() == name).count()
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// An identifier or keyword; lower case unless it was quoted.
    Name(String),
    Open,
    Close,
    Other,
}

fn next(rest: &mut Peekable<Chars<'_>>) -> Option<Token> {
    let c = after_comments(rest)?;
    Some(match c {
        '(' => Token::Open,
        ')' => Token::Close,
        '"' => Token::Name(until(rest, '"')),
        '\'' => {
            until(rest, '\'');
            Token::Other
        }
        '$' => dollar(rest),
        c if c.is_alphabetic() || c == '_' => {
            let mut name = c.to_lowercase().to_string();
            while let Some(c) = rest.next_if(|c| c.is_alphanumeric() || matches!(c, '_' | '$')) {
                name.extend(c.to_lowercase());
            }
            if name == "e" && rest.next_if_eq(&'\'').is_some() {
                escaped(rest);
                return Some(Token::Other);
            }
            Token::Name(name)
        }
        _ => Token::Other,
    })
}

/// The first character that is neither blank nor part of a comment.
fn after_comments(rest: &mut Peekable<Chars<'_>>) -> Option<char> {
    loop {
        match rest.next()? {
            c if c.is_whitespace() => {}
            '-' if rest.next_if_eq(&'-').is_some() => while rest.next_if(|c| *c != '\n').is_some() {},
            '/' if rest.next_if_eq(&'*').is_some() => comment(rest),
            c => return Some(c),
        }
    }
}

/// What is quoted, the quote doubled for one in it.
fn until(rest: &mut Peekable<Chars<'_>>, quote: char) -> String {
    let mut text = String::new();
    while let Some(c) = rest.next() {
        if c == quote && rest.next_if_eq(&quote).is_none() {
            break;
        }
        text.push(c);
    }
    text
}

/// `E'…'`.
fn escaped(rest: &mut Peekable<Chars<'_>>) {
    while let Some(c) = rest.next() {
        match c {
            '\\' => {
                rest.next();
            }
            '\'' if rest.next_if_eq(&'\'').is_none() => return,
            _ => {}
        }
    }
}

/// `/* … */`, which nests.
fn comment(rest: &mut Peekable<Chars<'_>>) {
    let mut depth = 1;
    while depth > 0 {
        match rest.next() {
            Some('*') if rest.next_if_eq(&'/').is_some() => depth -= 1,
            Some('/') if rest.next_if_eq(&'*').is_some() => depth += 1,
            Some(_) => {}
            None => return,
        }
    }
}

/// `$tag$…$tag$`, or `$1`.
fn dollar(rest: &mut Peekable<Chars<'_>>) -> Token {
    let mut tag = String::from("$");
    while let Some(c) = rest.next_if(|c| c.is_alphanumeric() || *c == '_') {
        tag.push(c);
    }
    if rest.next_if_eq(&'$').is_some() {
        tag.push('$');
        let mut text = String::new();
        for c in rest.by_ref() {
            text.push(c);
            if text.ends_with(&tag) {
                break;
            }
        }
    }
    Token::Other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_comments_is_read() {
        assert_eq!(calls(&format!("{} f(i)", "-- x\n/* y */".repeat(1_000_000))), ["f"]);
    }

    #[test]
    fn calls_are_found_where_they_are() {
        for (sql, expected) in [
            ("md5(i::text)", vec!["md5"]),
            ("MD5 (md5('f(x)'))", vec!["md5", "md5"]),
            ("pg_catalog.\"left\"('x', 1)", vec!["left"]),
            ("/* f( */ -- g(\n h(i)", vec!["h"]),
            ("$a$ f(x) $a$ || E'it\\'s f(' || upper('x')", vec!["upper"]),
            ("extract(year from now())", vec!["now"]),
            ("coalesce(i, nullif(i, abs(i)))", vec!["abs"]),
            ("INSERT INTO t (a) SELECT f(i) FROM generate_series(1, 5) g(i)", vec!["f", "generate_series"]),
            ("SELECT count(*) FROM generate_series(1,2) AS g(i)", vec!["count", "generate_series"]),
            ("i IN (1, 2)", vec![]),
            ("i + 1", vec![]),
        ] {
            assert_eq!(calls(sql), expected, "{sql}");
        }
    }
}
