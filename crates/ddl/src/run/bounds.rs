//! Bounds of partitions as the server prints them (`pg_get_expr` of `relpartbound`), for keys of one column.

/// Bounds of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bounds {
    /// The lower bound, and the upper one, which lies outside; none for MINVALUE and MAXVALUE.
    Range([Option<String>; 2]),
    /// The values of a partition by LIST, without NULL.
    List(Vec<String>),
}

impl Bounds {
    /// None for other forms: DEFAULT, several columns, HASH.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("FOR VALUES ")?;
        if let Some(rest) = rest.strip_prefix("IN ") {
            let (values, rest) = values(rest)?;
            let all = values.into_iter().flatten().collect();
            return rest.is_empty().then_some(Self::List(all));
        }
        let (low, rest) = values(rest.strip_prefix("FROM ")?)?;
        let (high, rest) = values(rest.strip_prefix(" TO ")?)?;
        match (<[_; 1]>::try_from(low), <[_; 1]>::try_from(high)) {
            (Ok([low]), Ok([high])) if rest.is_empty() => Some(Self::Range([low, high])),
            _ => None,
        }
    }
}

/// The values in parentheses, without quotes, and the text after these; none for NULL, MINVALUE and MAXVALUE.
fn values(text: &str) -> Option<(Vec<Option<String>>, &str)> {
    let mut rest = text.strip_prefix('(')?;
    let mut values = Vec::new();
    loop {
        let (value, after) = value(rest)?;
        values.push(value);
        match after.strip_prefix(", ") {
            Some(next) => rest = next,
            None => return Some((values, after.strip_prefix(')')?)),
        }
    }
}

fn value(text: &str) -> Option<(Option<String>, &str)> {
    let Some(quoted) = text.strip_prefix('\'') else {
        let (word, after) = text.split_at(text.find([',', ')'])?);
        let is_value = !["NULL", "MINVALUE", "MAXVALUE"].contains(&word);
        return Some((is_value.then(|| word.to_owned()), after));
    };
    let (mut value, mut rest) = (String::new(), quoted);
    loop {
        let (before, after) = rest.split_once('\'')?;
        value += before;
        let Some(next) = after.strip_prefix('\'') else { return Some((Some(value), after)) };
        value.push('\'');
        rest = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(low: Option<&str>, high: Option<&str>) -> Bounds {
        Bounds::Range([low, high].map(|end| end.map(str::to_owned)))
    }

    fn list(values: &[&str]) -> Bounds {
        Bounds::List(values.iter().map(|value| (*value).to_owned()).collect())
    }

    #[test]
    fn bounds_of_one_column_are_read() {
        let dates = "FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')";
        assert_eq!(Bounds::of(dates), Some(range(Some("2024-01-01"), Some("2025-01-01"))));
        assert_eq!(Bounds::of("FOR VALUES FROM (MINVALUE) TO (10)"), Some(range(None, Some("10"))));
        assert_eq!(Bounds::of("FOR VALUES FROM ('-5') TO (MAXVALUE)"), Some(range(Some("-5"), None)));
        assert_eq!(Bounds::of("FOR VALUES IN (1, 2)"), Some(list(&["1", "2"])));
        assert_eq!(Bounds::of("FOR VALUES IN ('it''s', 'a, (b)', NULL)"), Some(list(&["it's", "a, (b)"])));
    }

    #[test]
    fn others_are_not() {
        for text in [
            "DEFAULT",
            "FOR VALUES WITH (modulus 2, remainder 0)",
            "FOR VALUES FROM (1, 2) TO (3, 4)",
            "FOR VALUES FROM ('a",
        ] {
            assert_eq!(Bounds::of(text), None, "{text}");
        }
    }
}
