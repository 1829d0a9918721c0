//! Gates of --fail-if: classes and locks that a migration must not have.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use ddl::find::{Class, LockMode};
use ddl::{Deadlock, Effects, Outcome, ProbeKind, Probed, Stall, StatementOutcome, Untimed, Wait};
use measure::human::time;

use crate::app::duration::limit;

/// A condition on a statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Gate {
    /// It has this class.
    Class(Class),
    /// It takes this lock or a stronger one, on a relation that was there, and keeps it for longer than this.
    Lock(LockMode, Option<Duration>),
    /// It lets a reader or a writer wait for longer than this.
    Stall(Duration),
}

impl FromStr for Gate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(("stall", longer)) = text.split_once('>').map(|(name, longer)| (name.trim(), longer)) {
            return limit(longer).map(Self::Stall);
        }
        match text.split_once('=').map(|(name, value)| (name.trim(), value)) {
            Some(("class", class)) => class.trim().to_ascii_lowercase().parse().map(Self::Class),
            Some(("lock", lock)) => {
                let (mode, longer) = match lock.split_once('>') {
                    Some((mode, longer)) => (mode, Some(limit(longer)?)),
                    None => (lock, None),
                };
                Ok(Self::Lock(mode.trim().parse()?, longer))
            }
            _ => Err(format!(
                "\"{text}\" is not a condition: give class=rewrite, lock=SHARE, 'lock=ACCESS EXCLUSIVE>1s' or 'stall>500ms'"
            )),
        }
    }
}

impl Gate {
    /// The way in which a statement misses this condition, as text for people; none if it passes.
    fn finding(&self, one: &StatementOutcome) -> Option<String> {
        let found = one.found.as_ref()?;
        match self {
            Self::Stall(longer) => {
                let stalls = [(&one.stall, ""), (&one.blocked, " behind an open transaction")];
                stalls.iter().find_map(|(stall, behind)| {
                    let (kind, wait) = longest(stall.as_ref()?)?;
                    let text = || {
                        format!("the {} of {} waits {}{behind}", kind.name(), wait.name, time(wait.seconds))
                    };
                    (wait.seconds > longer.as_secs_f64()).then(text)
                })
            }
            Self::Class(class) => (found.class == *class).then(|| format!("its class is {class}")),
            Self::Lock(mode, longer) => {
                let strongest = found.strongest().filter(|strongest| strongest >= mode)?;
                let held = one.held().unwrap_or_default();
                if longer.is_some_and(|longer| has_parts(found) || held <= longer.as_secs_f64()) {
                    return None;
                }
                let relations: Vec<&str> = found
                    .locks
                    .iter()
                    .filter(|lock| !lock.is_new && lock.mode == strongest)
                    .map(|lock| lock.relation.as_str())
                    .collect();
                let up_to = if found.is_alone { "up to " } else { "" };
                Some(format!("it holds {strongest} on {} for {up_to}{}", relations.join(", "), time(held)))
            }
        }
    }

    /// Why it is not known whether a statement passes, as text for people; none if it is: its locks were not all seen; it changes no row,
    /// works on a partition without generated rows, or its time zone or locale is not known, and the condition depends on that; or it blocks readers
    /// or writers and their waits were not measured, or not to its end.
    fn unmeasured(&self, one: &StatementOutcome, outcome: &Outcome) -> Option<String> {
        let found = one.found.as_ref()?;
        if let Some(why) = found.unknown_locks.as_ref().filter(|_| self.depends_on_locks(found)) {
            return Some(format!("its locks are not known: {why}"));
        }
        let unmatched =
            found.unmatched.first().filter(|_| self.depends_on_rows(one, found)).map(Untimed::Write);
        let zone = || one.zone.as_ref().filter(|_| self.depends_on_zone(found)).map(Untimed::Zone);
        let untimed = || outcome.untimed(one).filter(|_| self.depends_on_time(found));
        if let Some(untimed) = unmatched.or_else(zone).or_else(untimed) {
            return Some(format!("{}; {}", untimed.reason(), untimed.remedy()));
        }
        if let Some(locale) = one.locale.as_ref().filter(|_| self.depends_on_locale(found)) {
            return Some(format!("{}; {}", locale.reason(), locale.remedy()));
        }
        let Self::Stall(_) = self else { return None };
        let Some(stall) = &one.stall else { return not_run(one, found, outcome) };
        if let Some(failed) = &stall.failed {
            return Some(format!("it failed beside readers and writers: {failed}"));
        }
        let deadlocks =
            [Some(stall), one.blocked.as_ref()].into_iter().flatten().flat_map(|stall| &stall.deadlocks);
        if let Some(lost) = deadlocks.max_by(|one, other| one.seconds.total_cmp(&other.seconds)) {
            return Some(deadlock(lost));
        }
        found.blocks()?;
        let runs = [(Some(stall), &outcome.probed), (one.blocked.as_ref(), &outcome.probed_blocked)];
        runs.into_iter().find_map(|(stall, probed)| unprobed(stall?, probed.as_ref()?))
    }

    /// Whether a longer time of the statement could make it miss this condition.
    fn depends_on_time(&self, found: &Effects) -> bool {
        match self {
            Self::Class(_) | Self::Lock(_, None) => false,
            Self::Lock(mode, Some(_)) => found.strongest() >= Some(*mode) && !has_parts(found),
            Self::Stall(_) => found.blocks().is_some(),
        }
    }

    /// Whether another time zone, in which the statement rewrites its table or does not, could make it miss this condition on its class.
    fn depends_on_zone(&self, found: &Effects) -> bool {
        matches!(self, Self::Class(class) if [*class, found.class].contains(&Class::Rewrite))
    }

    /// Whether the statement could miss this condition if it scanned a table, because no index serves LIKE.
    fn depends_on_locale(&self, found: &Effects) -> bool {
        let scans = [Class::Scan, Class::ScanOfAnother, Class::SeveralTables];
        match self {
            Self::Class(class) => *class > found.class && scans.contains(class),
            Self::Lock(..) | Self::Stall(_) => self.depends_on_time(found),
        }
    }

    /// Whether the statement could miss this condition if it changed rows: it would have the class *rows*, unless its class is a heavier one, and
    /// lock the rows. Code (DO, CALL, a function) can then do anything.
    fn depends_on_rows(&self, one: &StatementOutcome, found: &Effects) -> bool {
        let is_code = one.statement.is_code();
        match self {
            Self::Class(class) => *class > found.class && (is_code || *class == Class::Rows),
            Self::Stall(_) => true,
            Self::Lock(..) => is_code,
        }
    }

    /// Whether more locks of the statement could make it miss this condition. Its waits tell the class *wait* from *catalog only*.
    fn depends_on_locks(&self, found: &Effects) -> bool {
        match self {
            Self::Class(class) => *class == Class::Wait && found.class == Class::CatalogOnly,
            Self::Lock(..) | Self::Stall(_) => true,
        }
    }

    /// Whether the limit of this condition does not apply to a statement, because pgrig does not know how long it holds a lock.
    fn is_unlimited(&self, one: &StatementOutcome) -> bool {
        let Self::Lock(mode, Some(longer)) = self else { return false };
        let is_meant = |found: &Effects| found.strongest() >= Some(*mode) && has_parts(found);
        one.found.as_ref().is_some_and(is_meant) && one.held() > Some(longer.as_secs_f64())
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |longer: &Duration| time(longer.as_secs_f64()).replace(' ', "");
        match self {
            Self::Class(class) => write!(f, "class={class}"),
            Self::Lock(mode, None) => write!(f, "lock={mode}"),
            Self::Lock(mode, Some(longer)) => write!(f, "lock={mode}>{}", shown(longer)),
            Self::Stall(longer) => write!(f, "stall>{}", shown(longer)),
        }
    }
}

/// The longer one of both waits, with the kind of its session.
fn longest(stall: &Stall) -> Option<(ProbeKind, &Wait)> {
    let read = stall.read.as_ref().map(|wait| (ProbeKind::Read, wait));
    let write = stall.write.as_ref().map(|wait| (ProbeKind::Write, wait));
    read.into_iter().chain(write).max_by(|(_, one), (_, other)| one.seconds.total_cmp(&other.seconds))
}

/// Why the wait of a session that lost a deadlock is not known, as text for people.
fn deadlock(lost: &Deadlock) -> String {
    format!(
        "the {} of {} failed after {} because of a deadlock with it. So its wait is not known: it lasts as long as deadlock_timeout, or until \
         the statement fails in its place",
        lost.kind.name(),
        lost.name,
        time(lost.seconds)
    )
}

/// Why a statement has no stall, as text for people; none if it makes nobody wait.
fn not_run(one: &StatementOutcome, found: &Effects, outcome: &Outcome) -> Option<String> {
    if found.blocks().is_none() && found.class != Class::Rows {
        return None;
    }
    let earlier = outcome.statements.iter().take_while(|other| other.number < one.number);
    let failed = earlier.filter_map(|other| Some((other.number, other.stall.as_ref()?.failed.as_ref()?)));
    let why = failed.last().map(|(number, failed)| format!(", where statement {number} failed: {failed}"));
    Some(format!("it did not run beside readers and writers{}", why.unwrap_or_default()))
}

/// A warning for each statement that failed beside readers and writers, unless a limit on their waits tells it.
pub(crate) fn failed(gates: &[Gate], outcome: &Outcome) -> Vec<String> {
    if gates.iter().any(|gate| matches!(gate, Gate::Stall(_))) {
        return Vec::new();
    }
    let warning = |one: &StatementOutcome| {
        let failed = one.stall.as_ref()?.failed.as_ref()?;
        Some(format!(
            "statement {} failed beside readers and writers: {failed}. So its stall is not known, and may be longer than the waits \
             before the failure",
            one.number
        ))
    };
    outcome.statements.iter().filter_map(warning).collect()
}

/// The tables that no reader or writer used until a statement's locks ended, each with the reason, as text for people; none if there are
/// none.
fn unprobed(stall: &Stall, probed: &Probed) -> Option<String> {
    let with_reason = |table: &String| {
        let of_table = format!("{table}: ");
        let reason = probed.unprobed.iter().find_map(|reason| reason.split_once(&of_table));
        let stopped = probed.stopped.iter().find(|stopped| stopped.name == *table);
        match (reason, stopped) {
            (Some((_, reason)), _) => format!("{table} ({reason})"),
            (None, Some(stopped)) => {
                format!("{table} (the {} failed: {})", stopped.kind.name(), stopped.message)
            }
            (None, None) => table.clone(),
        }
    };
    let tables: Vec<String> = stall.unprobed.iter().map(with_reason).collect();
    (!tables.is_empty()).then(|| format!("no reader or writer used {}", tables.join(", ")))
}

/// Whether a statement has several transactions of its own, and waits between them: it holds each lock in some of them only.
fn has_parts(found: &Effects) -> bool {
    found.is_alone && found.waits > 0
}

/// A line for each statement that does not pass. One that blocks readers or writers does not pass a limit of their waits that was not
/// measured, and one whose locks are not known passes no limit of locks.
pub(crate) fn missed(gates: &[Gate], outcome: &Outcome) -> Vec<String> {
    lines(gates, outcome, |gate, one| {
        let unchecked = || {
            let why = gate.unmeasured(one, outcome)?;
            Some(format!("{gate} counts as true, because pgrig could not check it: {why}"))
        };
        // Several conditions may have the same finding.
        gate.finding(one).map(|finding| format!("{finding} ({gate})")).or_else(unchecked)
    })
}

/// A line for each statement that passes a limit because it does not apply.
pub(crate) fn unlimited(gates: &[Gate], outcome: &Outcome) -> Vec<String> {
    lines(gates, outcome, |gate, one| {
        let text = || {
            format!(
                "{gate} does not apply: the statement runs several transactions, and pgrig does not know how long it \
                 holds each lock"
            )
        };
        gate.is_unlimited(one).then(text)
    })
}

fn lines(
    gates: &[Gate],
    outcome: &Outcome,
    finding: impl Fn(&Gate, &StatementOutcome) -> Option<String>,
) -> Vec<String> {
    let all = gates.iter().flat_map(|gate| outcome.statements.iter().map(move |one| (gate, one)));
    all.filter_map(|(gate, one)| {
        let finding = finding(gate, one)?;
        Some(format!("--fail-if: statement {} ({}): {finding}", one.number, one.statement.place()))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_wait_has_the_kind_of_its_session() {
        let wait = |seconds: f64| Some(Wait { seconds, lock: 0.0, name: "t".to_owned(), is_failed: false });
        let stall = |read: Option<Wait>, write: Option<Wait>| Stall {
            read,
            write,
            unprobed: Vec::new(),
            counts_for: None,
            deadlocks: Vec::new(),
            seconds: 1.0,
            failed: None,
        };
        let kind = |stall: &Stall| longest(stall).map(|(kind, _)| kind);
        assert_eq!(kind(&stall(wait(1.0), wait(2.0))), Some(ProbeKind::Write));
        assert_eq!(kind(&stall(wait(3.0), wait(2.0))), Some(ProbeKind::Read));
        assert_eq!(kind(&stall(None, wait(2.0))), Some(ProbeKind::Write));
        assert_eq!(kind(&stall(None, None)), None);
    }

    #[test]
    fn conditions_are_classes_and_locks() {
        assert_eq!("class=index build".parse(), Ok(Gate::Class(Class::IndexBuild)));
        assert_eq!("lock=share".parse(), Ok(Gate::Lock(LockMode::Share, None)));
        assert_eq!("class = Index Build".parse(), Ok(Gate::Class(Class::IndexBuild)));
        assert_eq!("lock = SHARE".parse(), Ok(Gate::Lock(LockMode::Share, None)));
        assert_eq!("stall > 500ms".parse(), Ok(Gate::Stall(Duration::from_millis(500))));
        let second = Some(Duration::from_secs(1));
        assert_eq!("lock=ACCESS EXCLUSIVE > 1s".parse(), Ok(Gate::Lock(LockMode::AccessExclusive, second)));
        for text in ["class=index build", "lock=ACCESS EXCLUSIVE", "lock=SHARE>1.50s", "stall>500ms"] {
            assert_eq!(text.parse::<Gate>().unwrap().to_string(), text);
        }
        for (wrong, remedy) in [
            ("class=heavy", "catalog only, wait, scan"),
            ("lock=", "ACCESS SHARE"),
            ("lock=SHARE>x", "90s"),
            ("stall=500ms", "give class=rewrite"),
            ("stall>x", "90s"),
            ("stall>500", "give one like 500ms"),
            ("lock=SHARE>500", "give one like 500ms"),
        ] {
            let error = wrong.parse::<Gate>().unwrap_err();
            assert!(error.contains(remedy), "{wrong}: {error}");
        }
    }
}
