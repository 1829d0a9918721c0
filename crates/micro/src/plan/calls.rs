//! The functions that an SQL text calls.

use sql::{Kind, Text};

/// Words after which a parenthesis does not belong to a call: `INSERT INTO t (a)`, `AS g(i)`.
const NO_CALLS_AFTER: [&str; 3] = ["into", "as", "table"];
/// Names that the grammar turns into something else, which EXPLAIN prints under another name
/// (`func_expr_common_subexpr`, gram.y, and the keywords that may stand before a parenthesis).
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

/// The called functions without their schemas, each as often as it is called.
pub(crate) fn calls(sql: &str) -> Vec<String> {
    let mut calls = Vec::new();
    let (mut last, mut before_last) = (Token::Other, Token::Other);
    let mut rest = Text::whole(sql);
    // A text that ends within a token calls nothing there.
    while let Ok(Some((kind, length))) = rest.token() {
        let bytes = &rest.bytes[..length];
        rest = rest.from(length);
        let token = match kind {
            Kind::Blank | Kind::Comment => continue,
            Kind::Open => Token::Open,
            Kind::Close => Token::Close,
            _ => sql::name(kind, bytes)
                .and_then(|name| String::from_utf8(name).ok())
                .map_or(Token::Other, Token::Name),
        };
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

/// Words that make a query of a SELECT, so that it cannot be left out.
const OF_QUERIES: [&str; 9] =
    ["from", "where", "group", "having", "order", "limit", "offset", "union", "distinct"];

/// Whether an expression is `SELECT` and an expression, as in `SELECT md5(i::text)`, also within parentheses.
pub(crate) fn is_select_of_value(sql: &str) -> bool {
    let mut rest = Text::whole(sql);
    let mut depth = 0_u32;
    // Number of parentheses around the SELECT.
    let mut selected: Option<u32> = None;
    while let Ok(Some((kind, length))) = rest.token() {
        let word = String::from_utf8_lossy(&rest.bytes[..length]).to_ascii_lowercase();
        rest = rest.from(length);
        if matches!(kind, Kind::Blank | Kind::Comment) {
            continue;
        }
        let is_ended = selected.is_some_and(|at| depth < at);
        match kind {
            Kind::Close => depth = depth.saturating_sub(1),
            _ if is_ended => return false,
            Kind::Open => depth += 1,
            Kind::Word if selected.is_none() && word == "select" => selected = Some(depth),
            Kind::Word if selected == Some(depth) && OF_QUERIES.contains(&word.as_str()) => return false,
            _ if selected.is_none() => return false,
            _ => {}
        }
    }
    selected.is_some()
}

/// Number of parentheses that an expression leaves open; none if it closes one that it does not open.
pub(crate) fn open_parentheses(sql: &str) -> Option<u32> {
    let mut rest = Text::whole(sql);
    let mut depth = 0_u32;
    while let Ok(Some((kind, length))) = rest.token() {
        rest = rest.from(length);
        match kind {
            Kind::Open => depth += 1,
            Kind::Close => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    Some(depth)
}

/// Number of calls of the function in an expression or a plan as EXPLAIN prints it.
pub(crate) fn count(printed: &str, name: &str) -> usize {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_comments_is_read() {
        assert_eq!(calls(&format!("{} f(i)", "-- x\n/* y */".repeat(1_000_000))), ["f"]);
    }

    #[test]
    fn a_select_of_a_value_has_no_other_clause() {
        for sql in ["SELECT md5(i::text)", " (select extract(year from now()))", "/* x */ SELECT (SELECT i)"]
        {
            assert!(is_select_of_value(sql), "{sql}");
        }
        for sql in
            ["SELECT max(x) FROM t", "(SELECT 1) + i", "md5(i::text)", "selected", "SELECT 1 UNION SELECT 2"]
        {
            assert!(!is_select_of_value(sql), "{sql}");
        }
    }

    #[test]
    fn parentheses_are_counted_outside_of_strings() {
        for (sql, open) in [("f(i", Some(1)), ("f(')')", Some(0)), ("f(i))", None), (") + (", None)] {
            assert_eq!(open_parentheses(sql), open, "{sql}");
        }
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
