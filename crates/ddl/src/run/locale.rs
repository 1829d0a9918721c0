//! Chooses the locale of the databases of a run, and warns of statements on whose costs one that is not known has effects.

use std::collections::BTreeSet;

use connect::{ConnectError, Target};
use server::Session;
use server::quote::shown;
use tokio_postgres::Row;

use super::Observer;
use super::databases::Databases;
use super::rehearse::Tables;
use crate::error::DdlError;
use crate::locale::{UnknownLocale, finds_by_pattern};
use crate::schema::Schema;
use crate::script::Statement;

/// Indexes that a sentence names.
const NAMED: usize = 8;

/// Gives the databases the locale for which the user asks, else that of the original, or one with which indexes serve LIKE as there. Without
/// any, they have that of the server.
pub(super) async fn choose(
    databases: &mut Databases,
    schema: &Schema,
    observer: &mut dyn Observer,
) -> Result<(), DdlError> {
    let own = databases.own_locale().await?;
    let Some(wanted) = schema.asked_locale.as_ref().or(schema.locale.as_ref()) else {
        databases.doubt = own.is_plain().then_some(UnknownLocale { original: None });
        return Ok(());
    };
    if *wanted == own {
        return Ok(());
    }
    let Err(why) = databases.try_locale(wanted).await? else { return Ok(()) };
    if schema.asked_locale.is_some() {
        return Err(DdlError::Locale(wanted.to_string(), why));
    }
    let mut taken = None;
    for other in wanted.others() {
        if other == own || databases.try_locale(&other).await?.is_ok() {
            taken = Some(other);
            break;
        }
    }
    let effects = match &taken {
        Some(_) => "times of statements that sort or compare texts may differ",
        None if own.is_plain() && !wanted.is_plain() => {
            databases.doubt = Some(UnknownLocale { original: Some(wanted.to_string()) });
            "sorts of texts are faster than in the original, and LIKE uses indexes that it cannot use there"
        }
        None => "times of statements that sort or compare texts may differ, and LIKE may use other indexes",
    };
    let (origin, taken) = (&schema.origin, taken.unwrap_or(own));
    observer.warned(&format!(
        "{origin} has the locale {wanted}, which the server that measures lacks ({why}). pgrig measures with {taken}: {effects}. Install {wanted} on the \
         machine of that server, or give --scratch with a server that has it"
    ));
    Ok(())
}

/// A sentence about the locale, if that of the original is not known, and the migration builds indexes of texts or finds rows by patterns. The
/// targets are the databases before and after the migration.
pub(super) async fn warning(
    doubt: Option<&UnknownLocale>,
    (statements, tables): (&[Statement], &Tables),
    [before, after]: [&Target; 2],
) -> Result<Option<String>, ConnectError> {
    let Some(unknown) = doubt.filter(|doubt| doubt.original.is_none()) else { return Ok(None) };
    let key = |row: &Row| (row.get::<_, u32>("oid"), row.get::<_, u32>("file"));
    let old: BTreeSet<(u32, u32)> = text_indexes(before).await?.iter().map(key).collect();
    let new = text_indexes(after).await?;
    let is_built = |row: &&Row| !old.contains(&key(row)) && tables.get(row.get("owner")).is_some();
    let built: Vec<String> = new.iter().filter(is_built).map(|row| shown(row.get("name"))).collect();
    let has_patterns = statements.iter().any(|one| finds_by_pattern(&one.sql));
    Ok(sentence(&built, has_patterns, unknown))
}

async fn text_indexes(target: &Target) -> Result<Vec<Row>, ConnectError> {
    let session = Session::open(target).await?;
    let rows = session.rows(include_str!("../sql/text_indexes.sql"), &[]).await?;
    session.close().await;
    Ok(rows)
}

fn sentence(built: &[String], has_patterns: bool, unknown: &UnknownLocale) -> Option<String> {
    let more = built.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let first = built.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let work = match (built.is_empty(), has_patterns) {
        (true, false) => return None,
        (true, true) => "finds rows by patterns of texts (LIKE)".to_owned(),
        (false, false) => format!("builds indexes of texts ({first}{more})"),
        (false, true) => {
            format!("builds indexes of texts ({first}{more}), and finds rows by patterns of texts (LIKE)")
        }
    };
    Some(format!(
        "the migration {work}, and the locale of the original is not known. pgrig measures with the order of bytes (C): with most other locales, sorts of \
         texts take longer, and LIKE uses no ordinary index: {}",
        unknown.remedy()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_indexes_and_patterns() {
        let unknown = UnknownLocale { original: None };
        assert_eq!(sentence(&[], false, &unknown), None);
        let built: Vec<String> = (1..=9).map(|number| format!("i{number}")).collect();
        let of_both = sentence(&built, true, &unknown).unwrap();
        assert!(of_both.contains("(i1, i2, i3, i4, i5, i6, i7, i8 and 1 more), and finds rows"), "{of_both}");
        assert!(of_both.contains("--locale en_US.UTF-8"), "{of_both}");
        assert!(!sentence(&built[..1], false, &unknown).unwrap().contains("patterns"));
    }
}
