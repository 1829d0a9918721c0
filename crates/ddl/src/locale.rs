//! The locale of a database: it decides on the order of texts, and on whether an ordinary index serves LIKE.

use std::fmt;
use std::str::FromStr;

use model::LocaleProvider as Provider;
use serde::{Serialize, Serializer};
use server::quote::literal;

use crate::outcome::StatementOutcome;
use crate::run::rehearse::words;

/// The first release with databases of ICU's locales.
const ICU: u32 = 150_000;
/// The first release with rules for the order of ICU.
const RULES: u32 = 160_000;
/// The first release with locales of its own.
const BUILTIN: u32 = 170_000;

/// A locale of a database, as CREATE DATABASE names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locale {
    provider: Provider,
    name: String,
    /// The locale of the C library that tells letters from other characters, if it is another.
    letters: Option<String>,
    /// Rules that change the order of ICU.
    rules: Option<String>,
}

impl Locale {
    fn new(provider: Provider, name: &str) -> Self {
        Self { provider, name: name.to_owned(), letters: None, rules: None }
    }

    /// Whether it orders texts by their bytes, so that each index serves LIKE.
    pub(crate) fn is_plain(&self) -> bool {
        match self.provider {
            Provider::Libc => ["C", "POSIX"].contains(&self.name.as_str()),
            Provider::Icu => false,
            Provider::Builtin => true,
        }
    }

    /// The clauses of CREATE DATABASE; none if a server of this version has no such locales.
    pub(crate) fn clauses(&self, version: u32) -> Option<String> {
        let name = literal(&self.name);
        match self.provider {
            Provider::Libc => {
                let provider = if version >= ICU { " LOCALE_PROVIDER libc" } else { "" };
                let letters = literal(self.letters.as_ref().unwrap_or(&self.name));
                Some(format!("{provider} LC_COLLATE {name} LC_CTYPE {letters}"))
            }
            Provider::Icu if version >= ICU => {
                let rules = self.rules.as_ref().filter(|_| version >= RULES);
                let rules = rules.map_or(String::new(), |rules| format!(" ICU_RULES {}", literal(rules)));
                Some(format!(" LOCALE_PROVIDER icu ICU_LOCALE {name}{rules}"))
            }
            Provider::Builtin if version >= BUILTIN => {
                Some(format!(" LOCALE_PROVIDER builtin BUILTIN_LOCALE {name}"))
            }
            Provider::Icu | Provider::Builtin => None,
        }
    }

    /// Locales that may take its place, the best first: with each, indexes serve LIKE as with this one.
    pub(crate) fn others(&self) -> Vec<Self> {
        if self.is_plain() {
            return vec![Self::new(Provider::Builtin, "C.UTF-8"), Self::new(Provider::Libc, "C")];
        }
        let of_libc = ["C.UTF-8", "C.utf8"].map(|name| Self::new(Provider::Libc, name));
        let of_icu = Self::new(Provider::Icu, &self.language());
        if self.name.starts_with("C.") {
            return of_libc.into_iter().chain([of_icu]).collect();
        }
        [of_icu].into_iter().chain(of_libc).collect()
    }

    /// Its language and country as ICU names them: `de-AT`; the root locale if the name has none.
    fn language(&self) -> String {
        let plain = self.name.split(['.', '@']).next().unwrap_or_default();
        let parts: Vec<&str> = plain.split(['_', '-']).collect();
        let is_language =
            |part: &str| matches!(part.len(), 2 | 3) && part.chars().all(|c| c.is_ascii_lowercase());
        let is_country = |part: &str| part.len() == 2 && part.chars().all(|c| c.is_ascii_uppercase());
        match parts[..] {
            [language] if is_language(language) => language.to_owned(),
            [language, country] if is_language(language) && is_country(country) => {
                format!("{language}-{country}")
            }
            _ => "und".to_owned(),
        }
    }
}

impl From<&model::Locale> for Locale {
    fn from(locale: &model::Locale) -> Self {
        Self {
            letters: locale.of_letters().map(str::to_owned),
            rules: locale.rules.clone(),
            ..Self::new(locale.provider, locale.of_order())
        }
    }
}

impl FromStr for Locale {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (provider, name) = match text.split_once(':') {
            None => (Provider::Libc, text),
            Some(("libc", name)) => (Provider::Libc, name),
            Some(("icu", name)) => (Provider::Icu, name),
            Some(("builtin", name)) => (Provider::Builtin, name),
            Some((other, _)) => {
                return Err(format!("\"{other}\" is not a provider of locales: give libc, icu or builtin"));
            }
        };
        if name.is_empty() {
            return Err("give the name of a locale, for example en_US.UTF-8 or icu:en-US".to_owned());
        }
        Ok(Self::new(provider, name))
    }
}

impl fmt::Display for Locale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.provider.prefix(), self.name)
    }
}

impl Serialize for Locale {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The order of texts by their bytes, where that of the original is another or not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnknownLocale {
    /// The locale of the original, which the server that measures lacks; none if it is not known.
    pub(crate) original: Option<String>,
}

impl UnknownLocale {
    /// Why the class and the time of a statement with LIKE are not measured: a phrase for people.
    pub fn reason(&self) -> String {
        let of_original = match &self.original {
            Some(original) => format!("the server that measures lacks the locale {original} of the original"),
            None => "that of the original is not known".to_owned(),
        };
        format!("the locale of the database decides whether LIKE uses an index, and {of_original}")
    }

    /// Advice: a phrase for people.
    pub fn remedy(&self) -> String {
        match &self.original {
            Some(original) => {
                format!("install {original} on the machine of that server, or give --locale with one that it has")
            }
            None => "give the locale of your database with --locale, for example --locale en_US.UTF-8 (\\l of psql shows it)".to_owned(),
        }
    }

    /// Notes it at the statements that compare texts with LIKE and scan no table.
    pub(crate) fn note(&self, statements: &mut [StatementOutcome]) {
        for one in statements {
            let works = one.found.iter().flat_map(|found| &found.works);
            let mut reads = works.filter_map(|work| work.proof.read);
            let is_scan = reads.any(|read| read.scans > 0);
            if !one.tables.is_empty() && !is_scan && finds_by_pattern(&one.statement.sql) {
                one.locale = Some(self.clone());
            }
        }
    }
}

/// Whether a statement, or the code of a DO, finds rows by the pattern of a text.
pub(crate) fn finds_by_pattern(sql: &str) -> bool {
    let verbs = ["select", "update", "delete", "insert", "merge", "with", "do", "call", "refresh", "values"];
    let words = words(sql);
    let first = sql.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    let is_pattern =
        ["like", "similar", "starts_with", "regexp_like"].iter().any(|word| words.contains(*word));
    verbs.contains(&first.to_ascii_lowercase().as_str())
        && (is_pattern || sql.contains('~') || sql.contains("^@"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locale(text: &str) -> Locale {
        text.parse().unwrap()
    }

    #[test]
    fn a_locale_is_written_as_a_server_of_the_version_has_it() {
        for (text, version, wanted) in [
            ("en_US.UTF-8", 140_000, Some(" LC_COLLATE 'en_US.UTF-8' LC_CTYPE 'en_US.UTF-8'")),
            ("libc:C", 150_000, Some(" LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C'")),
            ("icu:de-AT", 150_000, Some(" LOCALE_PROVIDER icu ICU_LOCALE 'de-AT'")),
            ("icu:de-AT", 140_000, None),
            ("builtin:C.UTF-8", 170_000, Some(" LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8'")),
            ("builtin:C.UTF-8", 160_000, None),
        ] {
            assert_eq!(locale(text).clauses(version).as_deref(), wanted, "{text} {version}");
        }
        assert_eq!(locale("libc:C").to_string(), "C");
        assert_eq!(locale("icu:de-AT").to_string(), "icu:de-AT");
        for wrong in ["", "icu:", "glibc:de_AT"] {
            assert!(wrong.parse::<Locale>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn another_locale_serves_like_with_the_same_indexes() {
        for (text, first) in [
            ("en_US.UTF-8", "icu:en-US"),
            ("de_AT@euro", "icu:de-AT"),
            ("fr", "icu:fr"),
            ("icu:sv-SE", "icu:sv-SE"),
            ("English_United States.1252", "icu:und"),
            ("C.UTF-8", "C.UTF-8"),
            ("POSIX", "builtin:C.UTF-8"),
            ("builtin:PG_UNICODE_FAST", "builtin:C.UTF-8"),
        ] {
            let others = locale(text).others();
            assert_eq!(others[0].to_string(), first, "{text}");
            assert!(others.iter().all(|other| other.is_plain() == locale(text).is_plain()), "{text}");
        }
    }

    #[test]
    fn statements_that_find_rows_by_a_pattern_are_known() {
        for (sql, wanted) in [
            ("UPDATE t SET a = 1 WHERE b LIKE 'x%'", true),
            ("select from t where b ~ '^x'", true),
            ("DO $$ BEGIN DELETE FROM t WHERE b ILIKE 'x%'; DELETE FROM t WHERE b LIKE 'x'; END $$", true),
            ("SELECT FROM t WHERE starts_with(b, 'x')", true),
            ("UPDATE t SET b = 'x'", false),
            ("CREATE VIEW v AS SELECT FROM t WHERE b LIKE 'x%'", false),
        ] {
            assert_eq!(finds_by_pattern(sql), wanted, "{sql}");
        }
    }
}
