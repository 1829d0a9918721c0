//! Quoting for SQL text that pgrig composes.

/// An identifier, quoted always: names that come from people never become syntax.
pub fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A schema-qualified name, both parts quoted.
pub fn qualified(schema: &str, name: &str) -> String {
    format!("{}.{}", identifier(schema), identifier(name))
}

/// A string literal. Correct with `standard_conforming_strings` on, the default since 9.1.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_doubled() {
        assert_eq!(qualified("a\"b", "Straße"), "\"a\"\"b\".\"Straße\"");
        assert_eq!(literal("it's"), "'it''s'");
    }
}
