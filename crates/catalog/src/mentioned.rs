//! Columns and constants that stand in an expression that the server printed, whatever it computes from them.

use std::ops::Range;

use super::condition::{Token, Tokens, is_keyword, keyword, lex, uncast, unquoted};

/// The columns that stand in a printed expression.
pub(super) fn columns_in<'n>(text: &str, all: &[&'n str]) -> Vec<&'n str> {
    let tokens = lex(text).unwrap_or_default();
    all.iter().copied().filter(|name| mentions(&tokens, &[name])).collect()
}

/// Whether a printed expression has the same value in all rows: no column stands in it, nor the row as a whole (`t.*`).
pub(super) fn is_constant(text: &str, all: &[&str]) -> bool {
    !text.contains(".*") && lex(text).is_some_and(|tokens| !tokens.is_empty() && !mentions(&tokens, all))
}

/// Whether a printed expression is NULL, perhaps cast.
pub(super) fn is_null(text: &str) -> bool {
    let tokens = lex(text).unwrap_or_default();
    matches!(uncast(&tokens), [null] if keyword(null) == "NULL")
}

/// Whether nothing happens to the columns in an expression but these functions, casts to texts and bytes, and `||`.
pub(super) fn calls_only(text: &str, functions: &[&str]) -> bool {
    const TYPES: [&str; 7] = ["text", "character", "varchar", "citext", "bpchar", "bytea", "name"];
    let tokens = lex(text).unwrap_or_default();
    let is_fine = |(at, (token, _)): (usize, &(Token, Range<usize>))| match token {
        Token::Symbol(symbol) => symbol == "||",
        Token::Word { name, .. } if tokens.get(at + 1).is_some_and(|(next, _)| *next == Token::Open) => {
            functions.contains(&name.to_lowercase().as_str())
        }
        Token::Word { name, .. } if at > 0 && tokens[at - 1].0 == Token::Cast => {
            TYPES.contains(&name.as_str())
        }
        _ => true,
    };
    !tokens.is_empty() && tokens.iter().enumerate().all(is_fine)
}

/// Whether a printed expression raises an error for some values of its columns: it makes a range of two ends, or divides by them.
pub(super) fn may_fail(text: &str) -> bool {
    let tokens = lex(text).unwrap_or_default();
    tokens.windows(2).any(|pair| match (&pair[0].0, &pair[1].0) {
        (Token::Word { name, .. }, Token::Open) => name.ends_with("range"),
        (Token::Symbol(symbol), divisor) => {
            matches!(symbol.as_str(), "/" | "%") && *divisor != Token::Literal
        }
        _ => false,
    })
}

/// The functions that a printed expression calls, without their schemas; none if it cannot be read.
pub(super) fn functions_in(text: &str) -> Option<Vec<String>> {
    let tokens = lex(text)?;
    let calls = tokens.windows(2).filter(|pair| pair[1].0 == Token::Open && !is_keyword(&pair[0]));
    let name = |pair: &[(Token, Range<usize>)]| match &pair[0].0 {
        Token::Word { name, .. } => Some(name.clone()),
        _ => None,
    };
    Some(calls.filter_map(name).collect())
}

/// The strings and numbers that stand in a printed expression, each once.
pub(super) fn literals_in(text: &str) -> Vec<String> {
    let mut literals: Vec<String> = Vec::new();
    for (token, place) in lex(text).unwrap_or_default() {
        let literal = unquoted(&text[place]);
        if token == Token::Literal && !literals.contains(&literal) {
            literals.push(literal);
        }
    }
    literals
}

/// The literals that a printed expression compares a column with: by `=`, `<>`, IN, `IS DISTINCT FROM` or CASE.
pub(super) fn compared_with(text: &str, column: &str) -> Vec<String> {
    let tokens = lex(text).unwrap_or_default();
    let mut found: Vec<String> = Vec::new();
    for at in (0..tokens.len()).filter(|&at| is_column(&tokens, at, column)) {
        let opened = tokens[..at].iter().rev().take_while(|(token, _)| *token == Token::Open).count();
        let before = tokens[..at - opened].last();
        // A function's parenthesis is not one around the column alone.
        let is_call = before.is_some_and(|token| matches!(token.0, Token::Word { .. }) && !is_keyword(token));
        let places = if before.is_some_and(|token| keyword(token) == "CASE") {
            after_when(&tokens[at..])
        } else {
            right_side(&tokens[at + 1..], opened - usize::from(is_call && opened > 0))
        };
        for place in places {
            let literal = unquoted(&text[place]);
            if !found.contains(&literal) {
                found.push(literal);
            }
        }
    }
    found
}

/// Whether the token is this column. Functions and types may have a column's name.
fn is_column(tokens: Tokens, at: usize, column: &str) -> bool {
    let is_name = matches!(&tokens[at].0, Token::Word { name, .. } if name == column);
    let is_type = at > 0 && tokens[at - 1].0 == Token::Cast;
    let is_function = tokens.get(at + 1).is_some_and(|(next, _)| *next == Token::Open);
    is_name && !is_type && !is_function
}

/// The literals that a column before these tokens is compared with. `opened` parentheses begin before the column.
fn right_side(tokens: Tokens, mut opened: usize) -> Vec<Range<usize>> {
    // The ends of parentheses and casts around the column.
    let is_around = |token: &&(Token, Range<usize>)| match token.0 {
        Token::Close if opened > 0 => {
            opened -= 1;
            true
        }
        Token::Cast => true,
        Token::Word { .. } => !is_keyword(token),
        _ => false,
    };
    let tokens = &tokens[tokens.iter().take_while(is_around).count()..];
    let side = match tokens {
        [(Token::Symbol(symbol), _), side @ ..] if matches!(symbol.as_str(), "=" | "<>") => side,
        [is, distinct, from, side @ ..]
            if [is, distinct, from].map(keyword) == ["IS", "DISTINCT", "FROM"] =>
        {
            side
        }
        [is, not, distinct, from, side @ ..]
            if [is, not, distinct, from].map(keyword) == ["IS", "NOT", "DISTINCT", "FROM"] =>
        {
            side
        }
        _ => return Vec::new(),
    };
    let mut depth = 0_i32;
    let is_side = |token: &&(Token, Range<usize>)| {
        match token.0 {
            Token::Open => depth += 1,
            Token::Close => depth -= 1,
            Token::Symbol(_) if depth == 0 => return false,
            _ => {}
        }
        depth >= 0 && (depth > 0 || !matches!(keyword(token), "AND" | "OR"))
    };
    let side = side.iter().take_while(is_side);
    side.filter(|(token, _)| *token == Token::Literal).map(|(_, place)| place.clone()).collect()
}

/// The literals that stand after WHEN.
fn after_when(tokens: Tokens) -> Vec<Range<usize>> {
    let when = (0..tokens.len()).filter(|&at| keyword(&tokens[at]) == "WHEN");
    let next = when.filter_map(|at| tokens[at + 1..].iter().find(|(token, _)| *token != Token::Open));
    next.filter(|(token, _)| *token == Token::Literal).map(|(_, place)| place.clone()).collect()
}

/// Whether one of these columns stands in it. Functions and types may have a column's name.
pub(super) fn mentions(tokens: Tokens, columns: &[&str]) -> bool {
    (0..tokens.len()).any(|at| columns.iter().any(|column| is_column(tokens, at, column)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_keep_values_apart_are_told_from_others() {
        let calls_only = |text| calls_only(text, &["lower", "md5", "coalesce"]);
        assert!(calls_only("lower((email)::text)"));
        assert!(calls_only("md5(COALESCE(a, ''::text))"));
        assert!(calls_only("('X'::text || (id)::text)"));
        for text in ["(a % 10)", "date_trunc('day'::text, b)", "((b)::date)", "('X'::text || (id / 2))", ""] {
            assert!(!calls_only(text), "{text}");
        }
    }

    #[test]
    fn constants_name_no_column() {
        let all = ["a", "id"];
        for text in ["true", "(1)", "'a'::text", "(1 + 2)", "lower('A'::text)", "NULL::integer"] {
            assert!(is_constant(text, &all), "{text}");
        }
        for text in ["a", "(id = 1)", "lower(a)", "(site.* IS NOT NULL)", "'unterminated", ""] {
            assert!(!is_constant(text, &all), "{text}");
        }
        assert!(is_null("(NULL::integer)") && is_null("NULL") && !is_null("COALESCE(NULL::integer, 1)"));
    }

    #[test]
    fn functions_have_no_schema() {
        let text = "((app.is_fine(a, b) AND (num_nonnulls(a, b) = 1)) OR (COALESCE(c, lower('f(x)'::text)) = 'x'::text))";
        assert_eq!(functions_in(text).unwrap(), ["is_fine", "num_nonnulls", "lower"]);
        assert_eq!(functions_in("'unterminated"), None);
    }

    #[test]
    fn literals_are_read_once_each() {
        let text =
            "((a = 'it''s'::text) OR (a ~ E'^\\\\d'::text) OR (b > 5) OR (b < 5) OR (b = '-1'::integer))";
        assert_eq!(literals_in(text), ["it's", "^\\d", "5", "-1"]);
    }

    #[test]
    fn literals_that_a_column_is_compared_with() {
        for (text, literals) in [
            ("((kind = 'x'::text) = (x_id IS NOT NULL))", vec!["x"]),
            (
                "(((kind)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[])) OR (n = 3))",
                vec!["a", "b"],
            ),
            ("(((kind)::text <> 'it''s'::text) AND (other = 'y'::text))", vec!["it's"]),
            ("((kind IS DISTINCT FROM 'x'::text) = (x_id IS NULL))", vec!["x"]),
            (
                "CASE kind WHEN 'x'::text THEN (a = 1) WHEN ('y'::text) THEN (b > 2) ELSE false END",
                vec!["x", "y"],
            ),
            ("(length(kind) = 5)", vec![]),
            ("((other = 'x'::text) AND (kind > 'y'::text))", vec![]),
        ] {
            assert_eq!(compared_with(text, "kind"), literals, "{text}");
        }
    }
}
