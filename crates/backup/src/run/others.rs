//! The other databases of a restored server: a base backup contains all of them. pgrig reads them, and compares them with nothing, so that
//! the original has no load.

use connect::{ConnectError, Target};
use server::Session;
use server::quote::shown;

use super::Run;
use super::step::Trouble;
use crate::check::restore::Restored;
use crate::check::restore::read::read_beside;
use crate::error::{BackupError, extensions, them};
use crate::verified::Verified;
use crate::way::Way;

/// Damages that the reason of a failure names.
const NAMED: usize = 3;
/// The errors of a connection to a database whose locale this machine does not have (PostgreSQL's `postinit.c` and `pg_locale.c`).
const NO_LOCALE: [&str; 2] =
    ["database locale is incompatible with operating system", "ICU is not supported in this build"];

/// The ways of which the other databases were read.
#[derive(Default)]
pub(super) struct Others {
    ways: Vec<Way>,
    /// Databases that were not read, with the reason.
    pub(super) notes: Vec<String>,
}

impl Others {
    /// Whether it is the first trial of the way.
    fn is_new(&mut self, way: &Way) -> bool {
        let is_new = !self.ways.contains(way);
        if is_new {
            self.ways.push(way.clone());
        }
        is_new
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

impl Run<'_> {
    /// In the first trial of a way, reads the other databases of the restored server, and adds their names to the verified parts.
    ///
    /// # Errors
    /// If one of them is damaged.
    pub(super) async fn with_others(
        &self,
        way: &Way,
        target: &Target,
        verified: Verified,
    ) -> Result<Verified, Trouble> {
        if !self.others.borrow_mut().is_new(way) {
            return Ok(verified);
        }
        let lost = |error: ConnectError| {
            Trouble::Way(format!("the databases of the restored server cannot be read: {error}"))
        };
        let (is_superuser, databases) = databases(target).await.map_err(lost)?;
        if !is_superuser {
            let role = shown(target.user());
            let note = format!(
                "the other databases were not read in the restored server, because role {role} is no superuser there"
            );
            self.others.borrow_mut().note(note);
            return Ok(verified);
        }
        let (mut found, mut other_databases) = (Restored::default(), Vec::new());
        for name in databases {
            if self.is_stopped() {
                return Err(BackupError::Interrupted.into());
            }
            match read(&target.clone().with_database(&name), &name, &mut found).await {
                Ok(()) => other_databases.push(name),
                Err(why) => self.others.borrow_mut().note(why),
            }
        }
        damage(&found).map_or(Ok(Verified { other_databases, ..verified }), |why| Err(Trouble::Way(why)))
    }
}

/// Whether the role is a superuser, and the names of the other databases that allow connections.
async fn databases(target: &Target) -> Result<(bool, Vec<String>), ConnectError> {
    let session = Session::open(target).await?;
    let row = session.row(include_str!("../sql/others.sql"), &[]).await?;
    session.close().await;
    Ok((row.get("is_superuser"), row.get("databases")))
}

/// Reads a database, and keeps its damage. An error is the reason why it was not read, or not all of it.
async fn read(target: &Target, name: &str, found: &mut Restored) -> Result<(), String> {
    let session = match Session::open(target).await {
        Ok(session) => session,
        Err(error) if lacks_locale(&error.to_string()) => {
            return Err(format!(
                "database {name} was not read in the restored server, because this machine does not have its locale: install the locale"
            ));
        }
        Err(error) => {
            found.fail(format!("database {name} cannot be opened: {error}"));
            return Ok(());
        }
    };
    let unread = read_by(&session, name, found).await;
    session.close().await;
    match unread {
        Ok(None) => Ok(()),
        Ok(Some(why)) => Err(why),
        Err(error) => {
            found.fail(format!("database {name}: {error}"));
            Ok(())
        }
    }
}

async fn read_by(
    session: &Session,
    name: &str,
    found: &mut Restored,
) -> Result<Option<String>, ConnectError> {
    let missing = session.rows(include_str!("../sql/missing_extensions.sql"), &[]).await?;
    let missing: Vec<String> = missing.iter().map(|row| row.get("name")).collect();
    if missing.is_empty() {
        return read_beside(session, name, found).await;
    }
    Ok(Some(format!(
        "database {name} was not read in the restored server, which does not have the {}: give --bin DIR, the directory of the programs of a \
         PostgreSQL that has {}",
        extensions(&missing),
        them(&missing)
    )))
}

/// Whether this is the error of a database whose locale the machine does not have.
fn lacks_locale(error: &str) -> bool {
    NO_LOCALE.iter().any(|known| error.contains(known))
}

/// The reason of a failure; none without damage.
fn damage(found: &Restored) -> Option<String> {
    let named = &found.failures[..found.failures.len().min(NAMED)];
    let more = found.count() - named.len() as u64;
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    (!named.is_empty()).then(|| {
        format!(
            "another database of the restored server is damaged, or cannot be read: {}{more}",
            named.join("; ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_damages_are_named_and_the_others_counted() {
        let mut found = Restored::default();
        assert_eq!(damage(&found), None);
        for number in 1..=5 {
            found.fail(format!("database a: table t{number} cannot be read"));
        }
        let why = damage(&found).unwrap();
        assert!(
            why.contains("database a: table t1 cannot be read; ")
                && why.ends_with("t3 cannot be read; and 2 more"),
            "{why}"
        );
    }

    #[test]
    fn the_other_databases_are_read_in_the_first_trial_of_each_way() {
        let mut others = Others::default();
        let [base, tar]: [Way; 2] = ["base", "base-tar"].map(|way| way.parse().unwrap());
        assert_eq!([&base, &tar, &base].map(|way| others.is_new(way)), [true, true, false]);
    }
}
