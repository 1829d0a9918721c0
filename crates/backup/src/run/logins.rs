//! Event triggers at login, from PostgreSQL 17 on. They would run for each session of pgrig and of the client programs, and could write
//! rows: into the original, to which pgrig writes nothing, and into a restored database, which would then differ.

use connect::{ConnectError, Target};
use server::Session;
use server::quote::shown;

use super::hidden::named;

/// The first version with such triggers, and with the setting.
const FIRST: u16 = 17;
/// Switches all event triggers off. Only a superuser may set it.
const SETTING: (&str, &str) = ("event_triggers", "off");

/// The setting for a server of this version, if it has the setting.
pub(super) fn setting(major: u16) -> Option<(&'static str, &'static str)> {
    (major >= FIRST).then_some(SETTING)
}

/// The target of a superuser, whose sessions run no event triggers.
pub(super) fn without_event_triggers(target: Target, major: u16) -> Target {
    match setting(major) {
        None => target,
        Some((name, value)) => target.with_setting(name, value),
    }
}

/// The original, whose sessions run no event triggers at login; and a note, if they run these all the same.
///
/// # Errors
/// If the server cannot be asked.
pub(super) async fn avoided(
    session: &Session,
    target: Target,
    major: u16,
) -> Result<(Target, Option<String>), ConnectError> {
    if major < FIRST {
        return Ok((target, None));
    }
    let row = session.row(include_str!("../sql/login_triggers.sql"), &[]).await?;
    let triggers: Vec<String> = row.get("triggers");
    if triggers.is_empty() {
        return Ok((target, None));
    }
    let role = shown(row.get("role"));
    if !row.get::<_, bool>("is_superuser") {
        let why = format!("role {role} is no superuser");
        return Ok((target, Some(note(&triggers, &role, &why))));
    }
    let avoiding = without_event_triggers(target.clone(), major);
    // A pooler may refuse the setting.
    match Session::open(&avoiding).await {
        Ok(opened) => {
            opened.close().await;
            Ok((avoiding, None))
        }
        Err(error) => Ok((target, Some(note(&triggers, &role, &error.to_string())))),
    }
}

fn note(triggers: &[String], role: &str, why: &str) -> String {
    let triggers: Vec<String> = triggers.iter().map(|name| shown(name)).collect();
    format!(
        "event triggers at login ran for each session of pgrig and of the client programs ({}), because pgrig could not switch them off: {why}. If \
         they write, pgrig does not compare the rows of base backups. To prevent that, have a superuser run ALTER ROLE {role} SET event_triggers = off",
        named(&triggers)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_versions_with_the_setting_get_it() {
        let target =
            |major| without_event_triggers(Target::embedded("/nonexistent", 5432, "postgres", "shop"), major);
        let options = |major| {
            let variables = target(major).client_variables();
            variables.into_iter().find(|(name, _)| *name == "PGOPTIONS").map(|(_, value)| value)
        };
        assert_eq!(options(16), None);
        assert_eq!(options(17).as_deref(), Some("-c event_triggers=off"));
    }

    #[test]
    fn the_note_has_the_remedy() {
        let said = note(&["noted".to_owned(), "Noted too".to_owned()], "app", "role app is no superuser");
        testkit::assert_says(&said, &["(noted, \"Noted too\")", "ALTER ROLE app SET event_triggers = off"]);
    }
}
