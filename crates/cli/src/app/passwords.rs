//! Passwords in commands that pgrig runs or shows: a child gets its password in the environment, because any user of the
//! machine can read command lines.

use std::ffi::OsString;

use connect::{ConnectError, split_password};

use crate::app::command_line::without_passwords;

/// The words of a command without the passwords of its connection strings.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) words: Vec<String>,
    /// The password that was in them, for `PGPASSWORD`.
    pub(crate) password: Option<OsString>,
}

/// The reason why a password cannot be passed on. The text has no password.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error(transparent)]
    String(#[from] ConnectError),
    #[error("its connection strings have different passwords: put them into ~/.pgpass")]
    Several,
    #[error(
        "a connection string has a service and a password: put the password into ~/.pgpass or the service file"
    )]
    Service,
}

impl Words {
    /// Takes the passwords out of the values of -d, `dbnames`, and of all URIs. Words behind `--` are the user's own
    /// command, which stays as it is.
    pub(crate) fn new(words: &[String], dbnames: &[&str]) -> Result<Self, Refused> {
        let mut kept = Self { words: Vec::new(), password: None };
        let own = words.iter().position(|word| word == "--").unwrap_or(words.len());
        let mut before = "";
        for word in &words[..own] {
            let named = word.strip_prefix("--dbname=");
            let named = named.or_else(|| ["-d", "--dbname"].contains(&before).then_some(word));
            let named: Vec<&str> = named.map_or_else(|| dbnames.to_vec(), |named| vec![named]);
            kept.take(word, &named)?;
            before = word;
        }
        kept.words.extend_from_slice(&words[own..]);
        Ok(kept)
    }

    /// Takes the password out of one word, if it ends with one of the connection strings `dbnames` or is a URI.
    fn take(&mut self, word: &str, dbnames: &[&str]) -> Result<(), Refused> {
        let uri = ["postgresql://", "postgres://"].iter().filter_map(|scheme| word.find(scheme)).min();
        let uri = uri.map(|at| &word[at..]).filter(|uri| is_value(word, uri));
        let value = dbnames.iter().copied().find(|value| is_value(word, value)).or(uri);
        let Some((told, password)) = value.map(split_password).transpose()?.flatten() else {
            self.words.push(word.to_owned());
            return Ok(());
        };
        if told.contains("service='") || std::env::var_os("PGSERVICE").is_some_and(|name| !name.is_empty()) {
            return Err(Refused::Service);
        }
        let password = OsString::from(password);
        if self.password.as_ref().is_some_and(|known| *known != password) {
            return Err(Refused::Several);
        }
        self.password = Some(password);
        let option = &word[..word.len() - value.map_or(0, str::len)];
        self.words.push(format!("{option}{told}"));
        Ok(())
    }
}

/// Whether `value` is the whole word, or the rest of it after an option: `-d…`, `-Sd…`, `--dbname=…`.
fn is_value(word: &str, value: &str) -> bool {
    word.strip_suffix(value).is_some_and(|option| {
        option.is_empty() || option.starts_with("--") && option.ends_with('=') || is_short(option)
    })
}

fn is_short(option: &str) -> bool {
    option
        .strip_prefix('-')
        .is_some_and(|letters| letters.bytes().all(|letter| letter.is_ascii_alphanumeric()))
}

/// The command as the user wrote it, for people: with `***` for each password. `words` are the words of the command, and
/// `kept` those without passwords.
pub(crate) fn shown(command: &str, words: &[String], kept: &[String]) -> String {
    let hidden: Vec<String> = words
        .iter()
        .zip(kept)
        .map(|(word, kept)| {
            let hidden = without_passwords(word);
            // A password that only the parser of connection strings finds: pass%77ord=…
            if hidden == *word { kept.clone() } else { hidden }
        })
        .collect();
    if hidden == words {
        return command.to_owned();
    }
    shlex::try_join(hidden.iter().map(String::as_str)).unwrap_or_else(|_| without_passwords(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str, dbname: &str) -> (String, Option<String>, String) {
        let words = shlex::split(text).unwrap();
        let kept = Words::new(&words, &[dbname]).unwrap();
        let password = kept.password.map(|password| password.into_string().unwrap());
        (kept.words.join("|"), password, shown(text, &words, &kept.words))
    }

    #[test]
    fn a_password_goes_from_the_command_line_to_the_environment() {
        let uri = "postgresql://r:hunter%32pw@/db?host=/tmp";
        let told = "user='r' dbname='db' host='/tmp'";
        for option in ["-d", "-Sd", "--dbname="] {
            let blank = if option == "-d" { " " } else { "" };
            let (words, password, shown) = split(&format!("pgrig tps {option}{blank}'{uri}' -T 1"), uri);
            let between = if blank.is_empty() { "" } else { "|" };
            assert_eq!(words, format!("pgrig|tps|{option}{between}{told}|-T|1"));
            assert_eq!(password.as_deref(), Some("hunter2pw"));
            assert!(shown.contains("r:***@") && !shown.contains("hunter"), "{shown}");
        }
        let keywords = "host=/tmp user=r password=hunter2pw dbname=db";
        let (words, password, shown) = split(&format!("pgrig tps -d '{keywords}'"), keywords);
        assert_eq!(words, "pgrig|tps|-d|host='/tmp' user='r' dbname='db'");
        assert_eq!(password.as_deref(), Some("hunter2pw"));
        assert_eq!(shown, "pgrig tps -d 'host=/tmp user=r password=*** dbname=db'");
        let hidden = "postgresql:///db?pass%77ord=hunter2pw";
        let (_, password, shown) = split(&format!("pgrig tps -d {hidden}"), hidden);
        assert!(password.is_some() && !shown.contains("hunter2pw"), "{shown}");
        let (words, password, shown) = split(
            "pgrig ddl -d 'dbname=a password=hunter2pw' --scratch postgres://r:hunter2pw@h/d a.sql",
            "db",
        );
        assert_eq!(words, "pgrig|ddl|-d|dbname='a'|--scratch|user='r' host='h' dbname='d'|a.sql");
        assert!(password.is_some() && !shown.contains("hunter2pw"), "{shown}");
    }

    #[test]
    fn all_else_stays_as_it_was_written() {
        for text in ["pgrig tps  -d 'host=h dbname=db' -f \"a b.sql\"", "pgrig micro 'a = 1' -d db"] {
            let (words, password, shown) = split(text, "host=h dbname=db");
            assert_eq!((words, password), (shlex::split(text).unwrap().join("|"), None));
            assert_eq!(shown, text);
        }
        let words = ["-dhost=a password=x", "-dhost=b password=x"].map(str::to_owned);
        let kept = Words::new(&words, &["host=a password=x", "host=b password=x"]).unwrap();
        assert_eq!(kept.words, ["-dhost='a'", "-dhost='b'"]);
        let different = ["-d", "postgres://a:x@h/d", "--scratch", "postgres://a:y@h/d"].map(str::to_owned);
        assert!(matches!(Words::new(&different, &[&different[1]]), Err(Refused::Several)));
        let service = ["-d", "service=s password=x"].map(str::to_owned);
        assert!(matches!(Words::new(&service, &[&service[1]]), Err(Refused::Service)));
    }
}
