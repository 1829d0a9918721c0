//! The tables whose rows a statement writes, or the body of a DO or of a function, by its text: also within WITH, and in branches that do not run.

use super::Parts;
use super::acts::body;
use crate::triggers::{DELETE, INSERT, UPDATE};

/// UPDATE, DELETE, INSERT, MERGE or COPY of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
pub(crate) struct Write {
    /// The name of the table, as it stands there.
    pub(crate) table: String,
    /// Whether it only inserts rows: INSERT or COPY.
    pub(crate) is_insert: bool,
    /// Whether a query gives its rows, or conditions.
    pub(crate) has_query: bool,
    /// Whether its conditions concern no other table.
    pub(crate) is_plain: bool,
    /// Whether it is INSERT … ON CONFLICT.
    pub(crate) has_conflict: bool,
    /// Whether it is DELETE without conditions.
    pub(crate) is_whole: bool,
    /// Whether it stands in code, with branches that do not run.
    pub(crate) is_optional: bool,
    /// The columns that UPDATE sets, by their names as the server has them; none for others.
    pub(crate) sets: Option<Vec<String>>,
    /// The bits of the events of rows that it may cause (`pg_trigger.h`).
    pub(crate) events: i32,
}

impl Write {
    /// All of a statement.
    pub(crate) fn all_of(sql: &str) -> Vec<Self> {
        let parts = Parts::of(sql);
        if parts.begins(0, &["do"]) {
            Self::all_in(body(&parts).unwrap_or_default(), true)
        } else {
            parts.writes(false)
        }
    }

    /// All in a body, whose branches may not run (`is_optional`).
    pub(crate) fn all_in(body: &str, is_optional: bool) -> Vec<Self> {
        Parts::of(body).writes(is_optional)
    }
}

impl Parts<'_> {
    fn writes(&self, is_optional: bool) -> Vec<Write> {
        let all = (0..self.tokens.len()).filter_map(|place| self.write(place));
        all.map(|write| Write { is_optional, ..write }).collect()
    }

    /// The write that begins there.
    fn write(&self, place: usize) -> Option<Write> {
        // FOR UPDATE, FOR NO KEY UPDATE, ON UPDATE, and events of triggers.
        let others = ["for", "key", "on", "or", "before", "after", "of"];
        if place > 0 && others.iter().any(|word| self.begins(place - 1, &[word])) {
            return None;
        }
        let kinds: [&[&str]; 5] =
            [&["update"], &["delete", "from"], &["insert", "into"], &["merge", "into"], &["copy"]];
        let kind = kinds.into_iter().find(|words| self.begins(place, words))?;
        let first = place + kind.len();
        // ON CONFLICT … DO UPDATE SET, and WHEN MATCHED THEN UPDATE SET.
        if self.begins(first, &["set"]) {
            return None;
        }
        let (table, after) = self.qualified(first + usize::from(self.begins(first, &["only"])))?;
        let end = self.end_of_write(after);
        let has_all = |words: &[&str]| (after..end).any(|at| self.begins(at, words));
        let has = |words: &[&str]| words.iter().any(|word| has_all(&[*word]));
        // COPY … TO writes no rows.
        if kind[0] == "copy" && !has(&["from"]) {
            return None;
        }
        let is_insert = ["insert", "copy"].contains(&kind[0]);
        let has_query = has(&["select", "table"]);
        let is_plain = !is_insert && kind[0] != "merge" && !has_query && !has(&["from", "using"]);
        let is_whole = kind[0] == "delete" && !has(&["where", "using"]);
        let has_conflict = is_insert && has_all(&["on", "conflict"]);
        let sets = if kind[0] == "update" { self.set(after) } else { None };
        let bit = |is: bool, event: i32| if is { event } else { 0 };
        let events = match kind[0] {
            "copy" => INSERT,
            "insert" => INSERT | bit(has_all(&["do", "update"]), UPDATE),
            "delete" => DELETE,
            "update" => UPDATE,
            _ => {
                bit(has(&["insert"]), INSERT) | bit(has(&["update"]), UPDATE) | bit(has(&["delete"]), DELETE)
            }
        };
        let (table, is_optional) = (table.to_owned(), false);
        Some(Write {
            table,
            is_insert,
            has_query,
            is_plain,
            has_conflict,
            is_whole,
            is_optional,
            sets,
            events,
        })
    }

    /// The place of the semicolon after a write, or of the parenthesis that closes it within WITH; else the end.
    fn end_of_write(&self, from: usize) -> usize {
        let mut depth = 0_i32;
        let mut places = from..self.tokens.len();
        let end = places.find(|place| {
            let text = self.tokens[*place].text;
            depth += i32::from(text == "(") - i32::from(text == ")");
            depth < 0 || text == ";"
        });
        end.unwrap_or(self.tokens.len())
    }

    /// The columns that UPDATE sets, after its table.
    fn set(&self, after: usize) -> Option<Vec<String>> {
        let first = self.find(after, &["set"])? + 1;
        let is_end = |place: usize| {
            let is_compared = self.begins(place - 1, &["distinct"]);
            let is_clause = ["from", "where", "returning"].iter().any(|word| self.begins(place, &[word]));
            [")", ";"].contains(&self.tokens[place].text) || (is_clause && !is_compared)
        };
        let (mut columns, mut depth, mut is_name) = (Vec::new(), 0_i32, true);
        for place in first..self.tokens.len() {
            if depth == 0 && is_end(place) {
                break;
            }
            let text = self.tokens[place].text;
            if is_name && text == "(" {
                columns.extend((place..self.closing(place)?).filter_map(|at| self.folded(at)));
            } else if is_name {
                columns.push(self.folded(place)?);
            }
            depth += i32::from(["(", "["].contains(&text)) - i32::from([")", "]"].contains(&text));
            is_name = depth == 0 && text == ",";
        }
        Some(columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each table, with the letters of what is known: insert, query, plain, conflict, whole.
    fn found(sql: &str) -> Vec<String> {
        let letter = |is: bool, letter: &str| if is { letter.to_owned() } else { String::new() };
        let shown = |write: &Write| {
            let letters = letter(write.is_insert, "i") + &letter(write.has_query, "q");
            let letters = letters + &letter(write.is_plain, "p") + &letter(write.has_conflict, "c");
            format!("{} {letters}{}", write.table, letter(write.is_whole, "w"))
        };
        Write::all_of(sql).iter().map(shown).collect()
    }

    #[test]
    fn the_columns_that_an_update_sets_are_found() {
        for (sql, wanted) in [
            ("UPDATE t SET a = 1", Some(&["a"][..])),
            (
                "UPDATE ONLY s.t AS x SET A = b + f(c, d), \"B c\" = DEFAULT FROM u WHERE e = 1",
                Some(&["a", "B c"][..]),
            ),
            (
                "UPDATE t SET (a, b) = (SELECT c, d FROM u), e[1] = 2 RETURNING g, h",
                Some(&["a", "b", "e"][..]),
            ),
            ("UPDATE t SET a = b IS DISTINCT FROM c, d = 1", Some(&["a", "d"][..])),
            ("WITH q AS (UPDATE t SET a = 1 RETURNING b) SELECT c, d FROM q", Some(&["a"][..])),
            ("DELETE FROM t WHERE a = 1", None),
            ("MERGE INTO t USING u ON a = b WHEN MATCHED THEN UPDATE SET c = 1", None),
        ] {
            let found = Write::all_of(sql);
            let wanted = wanted.map(|names| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
            assert_eq!(found[0].sets, wanted, "{sql}");
        }
    }

    #[test]
    fn each_write_causes_the_events_of_its_own_rows() {
        for (sql, wanted) in [
            ("WITH q AS (DELETE FROM a RETURNING *) INSERT INTO c SELECT * FROM q", &[DELETE, INSERT][..]),
            ("INSERT INTO a VALUES (1) ON CONFLICT (b) DO UPDATE SET b = 2", &[INSERT | UPDATE]),
            ("WITH q AS (UPDATE a SET b = 1 RETURNING *) DELETE FROM c USING q", &[UPDATE, DELETE]),
            (
                "MERGE INTO a USING b ON c WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (1)",
                &[INSERT | DELETE],
            ),
        ] {
            let found: Vec<i32> = Write::all_of(sql).iter().map(|write| write.events).collect();
            assert_eq!(found, wanted, "{sql}");
        }
    }

    #[test]
    fn the_tables_that_a_statement_writes_are_found() {
        for (sql, wanted) in [
            ("UPDATE posts SET message = 'x' WHERE rootid = '';", &["posts p"][..]),
            ("delete from only s.\"T x\" where a = 1", &["s.\"T x\" p"]),
            ("DELETE FROM t USING u WHERE t.id = u.id", &["t "]),
            ("DELETE FROM ONLY t", &["t pw"]),
            ("INSERT INTO t (a) SELECT a FROM u WHERE b", &["t iq"]),
            ("INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2", &["t ic"]),
            ("INSERT INTO t SELECT 1 ON CONFLICT DO NOTHING", &["t iqc"]),
            ("WITH q AS (DELETE FROM a WHERE b RETURNING *) INSERT INTO c SELECT * FROM q", &["a p", "c iq"]),
            (
                "WITH q AS (DELETE FROM a RETURNING (b)), r AS (SELECT 1) INSERT INTO c SELECT * FROM q WHERE d",
                &["a pw", "c iq"],
            ),
            ("WITH q AS (SELECT 1 FROM a WHERE b) DELETE FROM c", &["c pw"]),
            (
                "MERGE INTO t USING u ON a = b WHEN MATCHED THEN UPDATE SET c = 1 WHEN NOT MATCHED THEN DELETE",
                &["t "],
            ),
            ("COPY t (a, b) FROM '/t.csv' WHERE a > 0", &["t i"]),
            ("COPY t TO '/t.csv'", &[]),
            ("COPY (SELECT a FROM t) TO '/t.csv'", &[]),
            ("SELECT 1 FROM t FOR UPDATE; SELECT 1 FROM t FOR NO KEY UPDATE OF t", &[]),
            ("ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES u ON UPDATE CASCADE", &[]),
            (
                "DO $$ BEGIN IF a THEN UPDATE t SET b = 1; END IF; DELETE FROM u WHERE x IN (SELECT 1); END $$",
                &["t p", "u q"],
            ),
            ("DO 'BEGIN PERFORM 1; END'", &[]),
        ] {
            assert_eq!(found(sql), wanted, "{sql}");
        }
    }
}
