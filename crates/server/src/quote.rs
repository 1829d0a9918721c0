//! Quoting for SQL text that pgrig composes.

/// An identifier, quoted always: names that come from people never become syntax.
pub fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A schema-qualified name, both parts quoted.
pub fn qualified(schema: &str, name: &str) -> String {
    format!("{}.{}", identifier(schema), identifier(name))
}

/// An identifier for people, as they would write it in SQL: quoted only where SQL would otherwise read another name.
pub fn shown(name: &str) -> String {
    let is_plain = name.starts_with(|first: char| first == '_' || first.is_ascii_lowercase())
        && name.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '_' | '$'))
        && RESERVED.binary_search(&name).is_err();
    if is_plain { name.to_owned() } else { identifier(name) }
}

/// A schema-qualified name for people.
pub fn shown_qualified(schema: &str, name: &str) -> String {
    format!("{}.{}", shown(schema), shown(name))
}

/// A text as one word of a command line, for a shell.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=@:,+%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Words that cannot be names without quotes, in ascending order: PostgreSQL's `RESERVED_KEYWORD` and
/// `TYPE_FUNC_NAME_KEYWORD` (src/include/parser/kwlist.h).
const RESERVED: [&str; 101] = [
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "binary",
    "both",
    "case",
    "cast",
    "check",
    "collate",
    "collation",
    "column",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "false",
    "fetch",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "grant",
    "group",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "intersect",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "leading",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "natural",
    "not",
    "notnull",
    "null",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "outer",
    "overlaps",
    "placing",
    "primary",
    "references",
    "returning",
    "right",
    "select",
    "session_user",
    "similar",
    "some",
    "symmetric",
    "system_user",
    "table",
    "tablesample",
    "then",
    "to",
    "trailing",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "variadic",
    "verbose",
    "when",
    "where",
    "window",
    "with",
];

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

    #[test]
    fn names_for_people_are_quoted_where_sql_needs_it() {
        assert!(RESERVED.is_sorted());
        let names = ["orders", "order", "Orders", "my table", "a\"b", "_a$1", "1a", "größe", ""];
        let shown = names.map(shown);
        let wanted = [
            "orders",
            "\"order\"",
            "\"Orders\"",
            "\"my table\"",
            "\"a\"\"b\"",
            "_a$1",
            "\"1a\"",
            "\"größe\"",
            "\"\"",
        ];
        assert_eq!(shown, wanted);
    }
}
