//! Sequences: their values before and after a backup, between which a restored value has to lie. They belong to no transaction, so no
//! snapshot holds them.

use std::collections::HashMap;

use connect::{ConnectError, Target};
use server::Session;
use server::quote::qualified;
use tokio_postgres::Row;

use super::hidden::named;
use super::source::PATIENCE;
use crate::verified::Witness;

/// Values that WAL is ahead of a sequence: after a crash and in the copy of a server, a sequence continues after them (sequence.c:
/// `SEQ_LOG_VALS`).
const AHEAD: i128 = 32;
/// Sequences that one query reads.
const MOST: usize = 100;

/// A sequence and its value.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    oid: u32,
    name: String,
    /// The number of its file. Each statement that defines or restarts it gives it a new one.
    file: Option<u32>,
    /// Step from a value to the next, negative if it descends; not 0.
    increment: i64,
    cycles: bool,
    is_logged: bool,
    /// Whether the refresh of a materialized view may draw values from it.
    is_drawn: bool,
    value: Result<Value, Unread>,
}

/// Why a value was not read.
#[derive(Clone, Copy, Debug)]
enum Unread {
    /// The role may not read it.
    Forbidden,
    /// A standby cannot read unlogged ones.
    OnStandby,
}

/// The row of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Value {
    last: i64,
    /// Whether the last value was handed out. If not, it comes next.
    is_called: bool,
}

impl Value {
    /// The value that was handed out last, in the direction of the increment: later ones are greater.
    fn place(self, increment: i64) -> i128 {
        let (last, increment) = (i128::from(self.last), i128::from(increment));
        let handed_out = if self.is_called { last } else { last - increment };
        handed_out * increment.signum()
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.last, if self.is_called { "" } else { " (not called)" })
    }
}

impl Sequence {
    /// All sequences with their values. The session has the settings of `session.sql`.
    pub(crate) async fn read(session: &Session) -> Result<Vec<Self>, ConnectError> {
        let mut all: Vec<Self> = Vec::new();
        let mut readable: Vec<usize> = Vec::new();
        for row in session.rows(include_str!("../sql/sequences.sql"), &[]).await? {
            let (is_permitted, is_readable): (bool, bool) = (row.get("permitted"), row.get("readable"));
            if is_permitted && is_readable {
                readable.push(all.len());
            }
            let unread = if is_permitted { Unread::OnStandby } else { Unread::Forbidden };
            all.push(Self::of(&row, unread));
        }
        for part in readable.chunks(MOST) {
            let values = |place: &usize| {
                format!("SELECT '{place}'::bigint AS place, last_value, is_called FROM {}", all[*place].name)
            };
            let query = part.iter().map(values).collect::<Vec<_>>().join(" UNION ALL ");
            for row in session.rows(&query, &[]).await? {
                let place = usize::try_from(row.get::<_, i64>("place")).unwrap_or_default();
                let value = Value { last: row.get("last_value"), is_called: row.get("is_called") };
                all[place].value = Ok(value);
            }
        }
        Ok(all)
    }

    fn of(row: &Row, unread: Unread) -> Self {
        Self {
            oid: row.get("oid"),
            name: qualified(row.get("schema"), row.get("name")),
            file: row.get("file"),
            increment: row.get("increment"),
            cycles: row.get("cycles"),
            is_logged: row.get("logged"),
            is_drawn: row.get("drawn"),
            value: Err(unread),
        }
    }

    /// Whether it is still the same one, and has only handed out values or got one by `setval()` since.
    fn is_as(&self, before: &Self) -> bool {
        (&self.name, self.file, self.increment) == (&before.name, before.file, before.increment)
    }
}

/// Those of the original after a backup. Empty if one of them has just been dropped, or stays locked: no range of values is known then.
pub(super) async fn later(original: &Target) -> Result<Vec<Sequence>, ConnectError> {
    let session = Session::open(original).await?;
    session.run(include_str!("../sql/session.sql")).await?;
    session.run(PATIENCE).await?;
    let found = Sequence::read(&session).await;
    session.close().await;
    match found {
        Err(ConnectError::Query { .. }) => Ok(Vec::new()),
        found => found,
    }
}

/// Compares restored sequences with those of the original before and after the backup. Returns the number of compared values, or the
/// first difference. A base backup has no values of unlogged ones.
pub(super) fn compare(
    (before, later): (&[Sequence], &[Sequence]),
    restored: &[Sequence],
    witness: Witness,
    is_base: bool,
) -> Result<u64, String> {
    let later: HashMap<u32, &Sequence> = later.iter().map(|one| (one.oid, one)).collect();
    let restored: HashMap<&str, &Sequence> = restored.iter().map(|one| (one.name.as_str(), one)).collect();
    let mut compared = 0;
    for one in before.iter().filter(|one| one.is_logged || !is_base) {
        let later = later.get(&one.oid).filter(|later| later.is_as(one));
        if later.is_none() && witness == Witness::Changed {
            // Perhaps it was dropped or renamed before the end of the backup.
            continue;
        }
        let Some(found) = restored.get(one.name.as_str()) else {
            return Err(format!("sequence {} is missing", one.name));
        };
        let values = (one.value, later.map(|later| later.value), found.value);
        let (Ok(first), Some(Ok(last)), Ok(value)) = values else { continue };
        match one.is_between(first, last, value, is_base) {
            None => {}
            Some(true) => compared += 1,
            Some(false) => {
                let name = &one.name;
                let range = if first == last { first.to_string() } else { format!("{first} to {last}") };
                let ahead =
                    if is_base { format!(", or at most {AHEAD} values further") } else { String::new() };
                return Err(format!("sequence {name} has the value {value} instead of {range}{ahead}"));
            }
        }
    }
    Ok(compared)
}

impl Sequence {
    /// Whether a restored value lies between the first and the last one, or in a copy of the server's files at most [`AHEAD`] values
    /// further. None if these are no range: `setval()` has set an earlier value, or the sequence may have begun anew. A cycling one may
    /// have done so, and returned to its value, unless it has the value that it had before and after.
    fn is_between(&self, first: Value, last: Value, value: Value, is_base: bool) -> Option<bool> {
        let [low, high, place] = [first, last, value].map(|value| value.place(self.increment));
        if high < low || self.cycles && (low < high || place != low) {
            return None;
        }
        let ahead = if is_base { AHEAD * i128::from(self.increment).abs() } else { 0 };
        // The restore of a dump refreshes materialized views after it has set the sequences.
        let is_drawn = self.is_drawn && !is_base;
        Some(low <= place && (is_drawn || place <= high + ahead))
    }
}

/// Names the sequences that the role may not read; none if it may read all.
pub(super) fn note(all: &[Sequence]) -> Option<String> {
    let names: Vec<&str> = all
        .iter()
        .filter(|one| matches!(one.value, Err(Unread::Forbidden)))
        .map(|one| one.name.as_str())
        .collect();
    if names.is_empty() {
        return None;
    }
    let shown = named(&names);
    Some(format!(
        "pgrig did not compare the values of sequences that the role may not read: {shown} (GRANT SELECT ON SEQUENCE allows it)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(name: &str, increment: i64, last: i64) -> Sequence {
        Sequence {
            oid: 1,
            name: name.to_owned(),
            file: Some(1),
            increment,
            cycles: false,
            is_logged: true,
            is_drawn: false,
            value: Ok(Value { last, is_called: true }),
        }
    }

    /// The result for a sequence that had the first value before the backup and the last one after it, and was restored with a value.
    fn compared(increment: i64, values: [i64; 3], witness: Witness, is_base: bool) -> Result<u64, String> {
        let [first, last, value] = values.map(|last| [sequence("s", increment, last)]);
        compare((&first, &last), &value, witness, is_base)
    }

    #[test]
    fn a_value_lies_between_those_before_and_after_the_backup() {
        let dump = |increment, values| compared(increment, values, Witness::SameSnapshot, false);
        for value in [100, 110, 120] {
            assert_eq!(dump(5, [100, 120, value]), Ok(1));
            assert_eq!(dump(-5, [-100, -120, -value]), Ok(1));
        }
        assert_eq!(dump(5, [100, 100, 95]).unwrap_err(), "sequence s has the value 95 instead of 100");
        assert!(dump(5, [100, 120, 125]).unwrap_err().contains("125 instead of 100 to 120"));
        assert!(dump(-5, [-100, -120, -125]).is_err() && dump(-5, [-100, -120, -95]).is_err());
        // setval() has set an earlier value, at a time that is not known.
        assert_eq!(dump(1, [100, 1, 50]), Ok(0));
    }

    #[test]
    fn wal_is_ahead_of_a_sequence() {
        let base = |increment, values| compared(increment, values, Witness::Changed, true);
        assert_eq!((base(10, [100, 120, 440]), base(-10, [-100, -120, -440])), (Ok(1), Ok(1)));
        assert!(base(10, [100, 120, 450]).unwrap_err().contains("or at most 32 values further"));
        assert!(base(10, [100, 120, 90]).is_err());
        assert_eq!(base(i64::MAX, [1, 1, i64::MAX]), Ok(1));
    }

    #[test]
    fn a_value_that_was_not_called_comes_before_the_same_that_was() {
        let of = |last, is_called| [Sequence { value: Ok(Value { last, is_called }), ..sequence("s", 1, 1) }];
        let compared = |before: &[Sequence], restored: &[Sequence]| {
            compare((before, before), restored, Witness::SameSnapshot, false)
        };
        assert_eq!(compared(&of(1, false), &of(1, false)), Ok(1));
        let why = compared(&of(1, true), &of(1, false)).unwrap_err();
        assert_eq!(why, "sequence s has the value 1 (not called) instead of 1");
    }

    #[test]
    fn a_sequence_may_change_only_if_transactions_may() {
        let (before, none): ([Sequence; 1], [Sequence; 0]) = ([sequence("s", 1, 1)], []);
        let gone = |witness| compare((&before, &none), &none, witness, true);
        assert_eq!(gone(Witness::Changed), Ok(0));
        assert_eq!(gone(Witness::Unchanged).unwrap_err(), "sequence s is missing");
        let restarted = [Sequence { file: Some(2), ..sequence("s", 1, 1) }];
        let value = [sequence("s", 1, 900)];
        assert_eq!(compare((&before, &restarted), &value, Witness::SameSnapshot, false), Ok(0));
        let drawn = [Sequence { is_drawn: true, ..sequence("s", 1, 1) }];
        assert_eq!(compare((&drawn, &drawn), &value, Witness::SameSnapshot, false), Ok(1));
        let unlogged = [Sequence { is_logged: false, ..sequence("s", 1, 1) }];
        assert_eq!(compare((&unlogged, &unlogged), &value, Witness::Unchanged, true), Ok(0));
        assert!(compare((&unlogged, &unlogged), &value, Witness::SameSnapshot, false).is_err());
        let cycling = [Sequence { cycles: true, ..sequence("s", 1, 1) }];
        let later = [Sequence { cycles: true, ..sequence("s", 1, 7) }];
        assert_eq!(compare((&cycling, &later), &value, Witness::SameSnapshot, false), Ok(0));
        // It had the same value before and after, and went round between them.
        assert_eq!(compare((&cycling, &cycling), &value, Witness::SameSnapshot, false), Ok(0));
        assert_eq!(compare((&cycling, &cycling), &value, Witness::Changed, true), Ok(0));
        assert_eq!(compare((&cycling, &cycling), &cycling, Witness::SameSnapshot, false), Ok(1));
    }

    #[test]
    fn sequences_that_the_role_may_not_read_are_named() {
        let hidden = Sequence { value: Err(Unread::Forbidden), ..sequence("a.s", 1, 1) };
        assert_eq!(note(&[sequence("s", 1, 1)]), None);
        let said = note(&[sequence("s", 1, 1), hidden.clone()]).unwrap();
        assert!(said.contains("may not read: a.s (GRANT"), "{said}");
        let said = note(&std::iter::repeat_n(hidden, 5).collect::<Vec<_>>()).unwrap();
        assert!(said.contains("a.s, a.s, a.s and 2 more (GRANT"), "{said}");
    }
}
