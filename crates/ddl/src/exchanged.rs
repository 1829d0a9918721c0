//! COPY between the server and its client.

use crate::outside::words;

/// The client in COPY. The server takes each for the other (gram.y: `copy_file_name`).
pub(crate) const CLIENT: [&str; 2] = ["stdin", "stdout"];

/// Direction of a COPY, `to` or `from`, and the word after it; none for other statements.
pub(crate) fn copied<'a>(words: &[&'a str]) -> Option<(&'a str, &'a str)> {
    if words.first() != Some(&"copy") {
        return None;
    }
    let mut depth = 0_usize;
    let is_way = |word: &&str| {
        match *word {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && ["from", "to"].contains(word)
    };
    let at = words.iter().position(is_way)?;
    Some((words[at], *words.get(at + 1)?))
}

/// Rows that a statement exchanges with its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exchanged {
    /// It sends them.
    Sent,
    /// It waits for them.
    Awaited,
}

impl Exchanged {
    /// None for statements other than COPY TO STDOUT and COPY FROM STDIN.
    pub(crate) fn of(sql: &str) -> Option<Self> {
        let words = words(sql);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match copied(&words)? {
            ("to", place) if CLIENT.contains(&place) => Some(Self::Sent),
            ("from", place) if CLIENT.contains(&place) => Some(Self::Awaited),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_between_server_and_client_are_known() {
        for (sql, exchanged) in [
            ("COPY (SELECT * FROM t) TO STDOUT", Some(Exchanged::Sent)),
            ("copy t (a, b) to stdout WITH (FORMAT csv);", Some(Exchanged::Sent)),
            ("COPY t TO /* */ stdin", Some(Exchanged::Sent)),
            ("COPY t FROM stdout", Some(Exchanged::Awaited)),
            ("COPY t FROM STDIN", Some(Exchanged::Awaited)),
            ("COPY t TO 'stdout'", None),
            ("COPY t FROM '/tmp/t.csv'", None),
            ("COPY (SELECT a FROM stdin) TO PROGRAM 'gzip'", None),
            ("SELECT a FROM stdout", None),
            ("", None),
        ] {
            assert_eq!(Exchanged::of(sql), exchanged, "{sql}");
        }
    }
}
