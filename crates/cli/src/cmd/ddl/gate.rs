//! Gates of --fail-if: classes and locks that a migration must not have.

use std::str::FromStr;
use std::time::Duration;

use ddl::find::{Class, LockMode};
use ddl::{Outcome, StatementOutcome};
use measure::human::time;

use crate::app::duration::Length;

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
            return Ok(Self::Stall(longer.trim().parse::<Length>()?.0));
        }
        match text.split_once('=') {
            Some(("class", class)) => class.trim().parse().map(Self::Class),
            Some(("lock", lock)) => {
                let (mode, longer) = match lock.split_once('>') {
                    Some((mode, longer)) => (mode, Some(longer.trim().parse::<Length>()?.0)),
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
                    let wait =
                        stall.as_ref()?.longest().filter(|wait| wait.seconds > longer.as_secs_f64())?;
                    Some(format!("{} waits {}{behind}", wait.name, time(wait.seconds)))
                })
            }
            Self::Class(class) => (found.class == *class).then(|| format!("its class is {class}")),
            Self::Lock(mode, longer) => {
                let strongest = found.strongest().filter(|strongest| strongest >= mode)?;
                let held = one.held().unwrap_or_default();
                if longer.is_some_and(|longer| held <= longer.as_secs_f64()) {
                    return None;
                }
                let relations: Vec<&str> = found
                    .locks
                    .iter()
                    .filter(|lock| !lock.is_new && lock.mode == strongest)
                    .map(|lock| lock.relation.as_str())
                    .collect();
                Some(format!("it holds {strongest} on {} for {}", relations.join(", "), time(held)))
            }
        }
    }
}

/// A line for each statement that does not pass.
pub(crate) fn missed(gates: &[Gate], outcome: &Outcome) -> Vec<String> {
    let of_gate = |gate: &Gate| -> Vec<String> {
        let findings = outcome.statements.iter().filter_map(|one| {
            let finding = gate.finding(one)?;
            Some(format!("--fail-if: statement {} ({}): {finding}", one.number, one.statement.place()))
        });
        findings.collect()
    };
    gates.iter().flat_map(of_gate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_classes_and_locks() {
        assert_eq!("class=index build".parse(), Ok(Gate::Class(Class::IndexBuild)));
        assert_eq!("lock=share".parse(), Ok(Gate::Lock(LockMode::Share, None)));
        assert_eq!("stall > 500ms".parse(), Ok(Gate::Stall(Duration::from_millis(500))));
        let second = Some(Duration::from_secs(1));
        assert_eq!("lock=ACCESS EXCLUSIVE > 1s".parse(), Ok(Gate::Lock(LockMode::AccessExclusive, second)));
        for (wrong, remedy) in [
            ("class=heavy", "catalog only, wait, scan"),
            ("lock=", "ACCESS SHARE"),
            ("lock=SHARE>x", "90s"),
            ("stall=500ms", "give class=rewrite"),
            ("stall>x", "90s"),
        ] {
            let error = wrong.parse::<Gate>().unwrap_err();
            assert!(error.contains(remedy), "{wrong}: {error}");
        }
    }
}
