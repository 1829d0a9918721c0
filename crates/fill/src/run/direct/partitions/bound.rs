//! Bounds of partitions, as `pg_get_expr` writes them. Their values stay SQL: the server reads those.

/// A partition's bound; values are SQL literals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// Rows that no other partition takes.
    Default,
    Hash {
        modulus: u32,
        remainder: u32,
    },
    /// The values of a list; none stands for NULL.
    List(Vec<Option<String>>),
    Range {
        from: Vec<Edge<String>>,
        to: Vec<Edge<String>>,
    },
}

/// A value of a bound. The order of variants is that of values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Edge<T> {
    /// MINVALUE.
    Least,
    Value(T),
    /// MAXVALUE.
    Greatest,
}

impl Bound {
    /// None if pgrig does not know this form of a bound.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text == "DEFAULT" {
            return Some(Self::Default);
        }
        let values = text.strip_prefix("FOR VALUES ")?;
        if let Some(rest) = values.strip_prefix("WITH ") {
            let (items, "") = list(rest)? else { return None };
            let [modulus, remainder] = &items[..] else { return None };
            let number = |item: &str, name: &str| item.strip_prefix(name)?.trim().parse().ok();
            return Some(Self::Hash {
                modulus: number(modulus, "modulus ").filter(|modulus| *modulus > 0)?,
                remainder: number(remainder, "remainder ")?,
            });
        }
        if let Some(rest) = values.strip_prefix("IN ") {
            let (items, "") = list(rest)? else { return None };
            return Some(Self::List(
                items.into_iter().map(|item| (item != "NULL").then_some(item)).collect(),
            ));
        }
        let (from, rest) = list(values.strip_prefix("FROM ")?)?;
        let (to, "") = list(rest.strip_prefix(" TO ")?)? else { return None };
        let edge = |item: String| match &*item {
            "MINVALUE" => Edge::Least,
            "MAXVALUE" => Edge::Greatest,
            _ => Edge::Value(item),
        };
        let edges = |items: Vec<String>| items.into_iter().map(edge).collect();
        Some(Self::Range { from: edges(from), to: edges(to) })
    }

    /// The SQL literals of a column of the key, in order.
    pub(super) fn literals(&self, column: usize) -> Vec<&str> {
        match self {
            Self::Default | Self::Hash { .. } => Vec::new(),
            Self::List(values) => values.iter().flatten().map(String::as_str).collect(),
            Self::Range { from, to } => [from, to]
                .into_iter()
                .filter_map(|edges| match edges.get(column)? {
                    Edge::Value(literal) => Some(literal.as_str()),
                    Edge::Least | Edge::Greatest => None,
                })
                .collect(),
        }
    }
}

/// The items of a list in parentheses, and the text after it.
fn list(text: &str) -> Option<(Vec<String>, &str)> {
    let inner = text.strip_prefix('(')?;
    let (mut items, mut start) = (Vec::new(), 0);
    let mut is_quoted = false;
    for (at, char) in inner.char_indices() {
        match char {
            // A quote within a literal is doubled: it ends and begins again.
            '\'' => is_quoted = !is_quoted,
            ',' | ')' if !is_quoted => {
                items.push(inner[start..at].trim().to_owned());
                start = at + 1;
                if char == ')' {
                    return Some((items, &inner[start..]));
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_as_the_server_writes_them() {
        assert_eq!(Bound::parse("DEFAULT"), Some(Bound::Default));
        let hash = Bound::Hash { modulus: 4, remainder: 3 };
        assert_eq!(Bound::parse("FOR VALUES WITH (modulus 4, remainder 3)"), Some(hash));
        let list = Bound::parse("FOR VALUES IN ('it''s, (so)', NULL, '-5', true)").unwrap();
        assert_eq!(list.literals(0), ["'it''s, (so)'", "'-5'", "true"]);
        assert!(matches!(&list, Bound::List(values) if values[1].is_none()));
        let range = Bound::parse("FOR VALUES FROM ('2024-01-01', MINVALUE) TO ('2024-02-01', 7)").unwrap();
        assert_eq!(range.literals(0), ["'2024-01-01'", "'2024-02-01'"]);
        assert_eq!(range.literals(1), ["7"]);
        for wrong in
            ["FOR VALUES IN (1", "FOR VALUES WITH (modulus 0, remainder 0)", "FOR VALUES FROM (1)", ""]
        {
            assert_eq!(Bound::parse(wrong), None, "{wrong}");
        }
    }
}
