//! Columns whose values ALTER TABLE … TYPE computes with an expression.

use super::Parts;

/// Words and signs of timestamp and timestamptz, and of a cast to them.
const OF_TYPE: [&str; 10] =
    ["as", "timestamp", "timestamptz", "with", "without", "time", "zone", "pg_catalog", ".", ":"];

impl Parts<'_> {
    /// The columns to which ALTER TABLE gives another type with a USING that is more than the column, or a cast of it to timestamp or
    /// timestamptz. Names as the server has them.
    pub(crate) fn computed_columns(&self) -> Vec<String> {
        self.actions(0).into_iter().filter_map(|(from, to)| self.computed(from, to)).collect()
    }

    /// The column of the action that is there, if it is such a one.
    fn computed(&self, from: usize, to: usize) -> Option<String> {
        if !self.begins(from, &["alter"]) {
            return None;
        }
        let at = from + 1 + usize::from(self.begins(from + 1, &["column"]));
        let column = self.folded(at)?;
        if !self.sets_type(at + 1) {
            return None;
        }
        let mut places = self.outer(at + 2).take_while(|place| *place < to);
        let using = places.find(|place| self.begins(*place, &["using"]))?;
        (!self.is_cast_of(&column, using + 1, to)).then_some(column)
    }

    /// Whether an expression is the column, or a cast of it.
    fn is_cast_of(&self, column: &str, from: usize, to: usize) -> bool {
        let is_text = |place: usize, text: &str| self.tokens[place].text == text;
        let places: Vec<usize> =
            (from..to).filter(|place| !is_text(*place, "(") && !is_text(*place, ")")).collect();
        let mut at = usize::from(places.first().is_some_and(|place| self.begins(*place, &["cast"])));
        while places.get(at + 1).is_some_and(|place| is_text(*place, ".")) {
            at += 2;
        }
        let is_column = |place: &usize| self.folded(*place).is_some_and(|name| name == column);
        places.get(at).is_some_and(is_column) && places[at + 1..].iter().all(|place| self.is_of_type(*place))
    }

    fn is_of_type(&self, place: usize) -> bool {
        let text = self.tokens[place].text;
        OF_TYPE.iter().any(|known| known.eq_ignore_ascii_case(text)) || text.parse::<u32>().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cast_of_the_column_computes_nothing() {
        for (action, wanted) in [
            ("at TYPE timestamp USING at AT TIME ZONE 'UTC'", &["at"][..]),
            ("COLUMN \"At\" SET DATA TYPE timestamptz USING timezone('UTC', \"At\")", &["At"]),
            ("at TYPE timestamp USING at::timestamptz AT TIME ZONE zone", &["at"]),
            ("at TYPE timestamp USING other::timestamp", &["at"]),
            ("at TYPE timestamp USING now()", &["at"]),
            ("at TYPE timestamptz", &[]),
            ("at TYPE timestamptz USING at", &[]),
            ("AT TYPE timestamptz USING (t.at::timestamp with time zone)", &[]),
            ("at TYPE timestamptz USING CAST(at AS pg_catalog.timestamptz)", &[]),
            ("at TYPE timestamptz(3) USING at::timestamptz(3), ALTER n TYPE int USING n + 1", &["n"]),
            ("at SET DEFAULT now()", &[]),
        ] {
            let sql = format!("ALTER TABLE s.t ALTER {action};");
            assert_eq!(Parts::of(&sql).computed_columns(), wanted, "{sql}");
        }
        assert_eq!(Parts::of("SELECT 1").computed_columns(), [""; 0]);
    }
}
