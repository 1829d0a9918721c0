//! The tables that code copies into new files (CLUSTER, ALTER TABLE … SET TABLESPACE), by its text: also in branches that do not run.

use super::Parts;
use super::acts::body;

/// Words after SET in ALTER TABLE with which the server copies the table.
const COPYING: [&str; 4] = ["tablespace", "logged", "unlogged", "access"];

impl Parts<'_> {
    /// Those of the body of a DO; none for other statements.
    pub(crate) fn copied_by(sql: &str) -> Vec<String> {
        let parts = Parts::of(sql);
        if parts.begins(0, &["do"]) { Parts::copied_in(body(&parts).unwrap_or_default()) } else { Vec::new() }
    }

    /// Those of a body.
    pub(crate) fn copied_in(body: &str) -> Vec<String> {
        let parts = Parts::of(body);
        (0..parts.tokens.len()).filter_map(|place| parts.copied(place)).collect()
    }

    /// The table of the statement that begins there.
    fn copied(&self, place: usize) -> Option<String> {
        if self.begins(place, &["cluster"]) {
            let mut at = place + 1 + usize::from(self.begins(place + 1, &["verbose"]));
            if self.tokens.get(at)?.text == "(" {
                at = self.closing(at)? + 1;
            }
            // CLUSTER ON of ALTER TABLE copies nothing.
            let is_clause = self.begins(at, &["on"]);
            return self.qualified(at).filter(|_| !is_clause).map(|(table, _)| table.to_owned());
        }
        if !self.begins(place, &["alter", "table"]) {
            return None;
        }
        let mut at = place + 2;
        at += 2 * usize::from(self.begins(at, &["if", "exists"]));
        at += usize::from(self.begins(at, &["only"]));
        let (table, after) = self.qualified(at)?;
        let mut rest = (after..self.tokens.len()).take_while(|at| self.tokens[*at].text != ";");
        let is_copied = rest.any(|at| COPYING.iter().any(|word| self.begins(at, &["set", *word])));
        is_copied.then(|| table.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_that_code_copies_are_found() {
        for (body, wanted) in [
            (
                "BEGIN CLUSTER s.t USING i; CLUSTER (VERBOSE) u; CLUSTER VERBOSE v; END",
                &["s.t", "u", "v"][..],
            ),
            ("BEGIN ALTER TABLE IF EXISTS ONLY t ADD a int, SET TABLESPACE fast; END", &["t"]),
            ("BEGIN ALTER TABLE t CLUSTER ON i; ALTER TABLE u SET (fillfactor = 50); END", &[]),
            ("BEGIN ALTER TABLE t ADD a int; ALTER TABLE u SET UNLOGGED; END", &["u"]),
        ] {
            assert_eq!(Parts::copied_in(body), wanted, "{body}");
            assert_eq!(Parts::copied_by(&format!("DO $$ {body} $$")), wanted, "{body}");
        }
        assert!(Parts::copied_by("CLUSTER t USING i").is_empty());
    }
}
