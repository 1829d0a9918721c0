//! The functions that a statement calls, or the body of a DO or of a function, by its text.

use super::Parts;
use super::acts::body;

/// The call of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// The schema, as the server has it, if the text names one.
    pub(crate) schema: Option<String>,
    /// The name, as the server has it.
    pub(crate) name: String,
}

impl Call {
    /// All of a statement. Some may be no calls: words before parentheses.
    pub(crate) fn all_of(sql: &str) -> Vec<Self> {
        let parts = Parts::of(sql);
        if parts.begins(0, &["do"]) { Self::all_in(body(&parts).unwrap_or_default()) } else { parts.calls() }
    }

    /// All in a body.
    pub(crate) fn all_in(body: &str) -> Vec<Self> {
        Parts::of(body).calls()
    }
}

impl Parts<'_> {
    fn calls(&self) -> Vec<Call> {
        (0..self.tokens.len()).filter_map(|place| self.call(place)).collect()
    }

    /// The call that begins there.
    fn call(&self, place: usize) -> Option<Call> {
        // Statements that define functions or name them as triggers, and names of tables before their columns.
        let others =
            ["function", "procedure", "routine", "aggregate", "exists", "into", "table", "references"];
        if place > 0 {
            let is_part = self.tokens[place - 1].text == ".";
            if is_part || others.iter().any(|word| self.begins(place - 1, &[word])) {
                return None;
            }
        }
        let (_, after) = self.qualified(place)?;
        if self.tokens.get(after)?.text != "(" {
            return None;
        }
        let schema = if after >= place + 3 { self.folded(after - 3) } else { None };
        Some(Call { schema, name: self.folded(after - 1)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_that_a_statement_calls_are_found() {
        for (sql, wanted) in [
            ("SELECT migrate()", &["migrate"][..]),
            ("SELECT App.\"Migrate x\" (1), b FROM t WHERE c = d", &["app.Migrate x"]),
            ("CALL shop.app.batches(f(1))", &["app.batches", "f"]),
            ("DO $$ BEGIN PERFORM migrate(); x := s.other(1); END $$", &["migrate", "s.other"]),
            ("INSERT INTO t (a) SELECT f(b) FROM u", &["f"]),
            ("DO $$ BEGIN CREATE TRIGGER g AFTER INSERT ON t EXECUTE FUNCTION audit(); END $$", &[]),
            ("DO $$ BEGIN DROP FUNCTION IF EXISTS f(int); DROP FUNCTION g(); END $$", &[]),
            ("SELECT 'f()' FROM t", &[]),
        ] {
            let shown = |call: &Call| match &call.schema {
                Some(schema) => format!("{schema}.{}", call.name),
                None => call.name.clone(),
            };
            let found: Vec<String> = Call::all_of(sql).iter().map(shown).collect();
            assert_eq!(found, wanted, "{sql}");
        }
    }
}
