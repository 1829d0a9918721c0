//! Recognises constants in SQL text, as people write them and as EXPLAIN prints them.

use sql::{Kind, Text};

/// Whether the text is one constant: a number, a string with or without a type, true, false or NULL.
pub(crate) fn is_literal(text: &str) -> bool {
    // `(a) + (b)` is not wrapped, but without its outer parentheses it is no constant either.
    let mut text = text.trim();
    while let Some(inner) = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        text = inner.trim();
    }
    let Some(end) = constant(text) else { return is_typed(text) };
    is_casts(&text[end..])
}

/// End of the constant that the text begins with.
fn constant(text: &str) -> Option<usize> {
    number(text).or_else(|| string(text)).or_else(|| word(text))
}

fn number(text: &str) -> Option<usize> {
    let digits = text.trim_start_matches(['-', '+', ' ']);
    let sign = text.len() - digits.len();
    let end = digits
        .char_indices()
        .find(|&(at, c)| {
            let in_exponent = at > 0 && matches!(digits.as_bytes()[at - 1], b'e' | b'E');
            !(c.is_ascii_digit() || c == '.' || c == 'e' || c == 'E' || in_exponent && (c == '-' || c == '+'))
        })
        .map_or(digits.len(), |(at, _)| at);
    digits.starts_with(|c: char| c.is_ascii_digit() || c == '.').then_some(sign + end)
}

fn string(text: &str) -> Option<usize> {
    let prefix = usize::from(text.starts_with(['N', 'n']) && text[1..].starts_with('\''));
    match Text::whole(&text[prefix..]).token() {
        Ok(Some((Kind::Literal, length))) => Some(prefix + length),
        _ => None,
    }
}

fn word(text: &str) -> Option<usize> {
    let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    ["null", "true", "false"].iter().any(|word| text[..end].eq_ignore_ascii_case(word)).then_some(end)
}

/// Whether the rest of the text consists only of casts.
fn is_casts(text: &str) -> bool {
    let text = text.trim();
    let Some(casts) = text.strip_prefix("::") else { return text.is_empty() };
    casts.split("::").all(is_type)
}

fn is_type(text: &str) -> bool {
    let is_of_name =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | ' ' | '.' | '"' | '[' | ']' | '(' | ')' | ',');
    !text.trim().is_empty() && text.chars().all(is_of_name)
}

/// `date '2026-01-01'`, `interval '1 day'`.
fn is_typed(text: &str) -> bool {
    let Some(quote) = text.find('\'') else { return false };
    let (name, rest) = text.split_at(quote);
    let is_name = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ' ' | '.'));
    is_name && !name.trim().is_empty() && string(rest) == Some(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_parentheses_is_read() {
        let many = 1_000_000;
        assert!(is_literal(&format!("{}1{}", "(".repeat(many), ")".repeat(many))));
        assert!(!is_literal(&format!("{}i{}", "(".repeat(many), ")".repeat(many))));
        assert!(!is_literal("(1) + (2)"));
    }

    #[test]
    fn constants_of_people_and_of_explain() {
        for text in [
            "1",
            "-1.5e-3",
            "(-1)",
            "'x'",
            "'it''s'::text",
            "'2026-01-01 00:00:00+00'::timestamp with time zone",
            "'{1,2}'::integer[]",
            "NULL::unknown",
            "true",
            "'1.00'::numeric(8,2)",
            "'-5'::integer",
            "date '2026-01-01'",
            "E'a\\'b'",
        ] {
            assert!(is_literal(text), "{text}");
        }
    }

    #[test]
    fn what_is_computed_is_no_constant() {
        for text in [
            "i",
            "1 + 1",
            "md5('x')",
            "'a' || 'b'",
            "('a'::text || (i)::text)",
            "now()",
            "(1) + (2)",
            "true AND false",
            "-i",
            "1::text || 'x'",
            "upper('x'::text)",
            "'x' = 'y'",
        ] {
            assert!(!is_literal(text), "{text}");
        }
    }
}
