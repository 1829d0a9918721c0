//! Settings that end a session which pauses in a transaction: pgrig pauses there, to read locks and counters.

use crate::script::Statement;
use crate::setting::{self, Setting};

/// These settings. `transaction_timeout` (from PostgreSQL 17 on) counts pgrig's pauses, too.
const SETTINGS: [&str; 3] =
    ["idle_in_transaction_session_timeout", "idle_session_timeout", "transaction_timeout"];

/// The setting of a statement that limits the pauses of its session; none for other statements. The value 0 is no limit. RESET sets the server's
/// default, which may be one.
pub(crate) fn limited(statement: &Statement) -> Option<&'static str> {
    let set = Setting::of(&statement.sql)?;
    if set.value.as_deref().is_some_and(is_zero) {
        return None;
    }
    SETTINGS.into_iter().find(|setting| *setting == set.name)
}

/// Whether a value, with or without a unit, is 0.
fn is_zero(value: &str) -> bool {
    let text = setting::text(value);
    let digits: String = text.trim().chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    digits.parse::<f64>().is_ok_and(|number| number <= 0.0)
}

/// The warning about a statement that pgrig leaves out. `place` is its file and line.
pub(crate) fn warning(place: &str, setting: &str) -> String {
    format!(
        "{place}: pgrig leaves out this statement on {setting}: pgrig pauses in transactions to read locks, and the server would end the session"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    #[test]
    fn limits_of_pauses_are_found() {
        for (sql, wanted) in [
            ("SET idle_in_transaction_session_timeout = '5ms'", Some(SETTINGS[0])),
            ("set /* short */ local \"idle_in_transaction_session_timeout\" to 5;", Some(SETTINGS[0])),
            ("SET SESSION idle_session_timeout='1min'", Some(SETTINGS[1])),
            ("SET transaction_timeout TO DEFAULT", Some(SETTINGS[2])),
            ("RESET transaction_timeout;", Some(SETTINGS[2])),
            ("SET idle_in_transaction_session_timeout = 0;", None),
            ("SET transaction_timeout TO '0ms'", None),
            ("SHOW transaction_timeout", None),
            ("SET lock_timeout = '2s'", None),
            ("SELECT 'SET transaction_timeout = 5'", None),
            ("SELECT set_config('idle_in_transaction_session_timeout', '5s', true);", Some(SETTINGS[0])),
            ("select pg_catalog.set_config('Idle_Session_Timeout', '1min', false)", Some(SETTINGS[1])),
            ("SELECT set_config('transaction_timeout', NULL, false)", Some(SETTINGS[2])),
            ("SELECT set_config('transaction_timeout', '0', false)", None),
            ("SELECT set_config('lock_timeout', '2s', false)", None),
            ("SELECT set_config(name, '5s', false) FROM pg_settings", None),
        ] {
            let script = Script::read(sql, None).unwrap();
            assert_eq!(limited(&script.statements[0]), wanted, "{sql}");
        }
    }
}
