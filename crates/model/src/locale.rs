//! The locale of a database: the library that orders its texts, and the name that the locale has there.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Library of a locale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LocaleProvider {
    /// The C library of the server's machine.
    Libc,
    /// ICU.
    Icu,
    /// PostgreSQL itself.
    Builtin,
}

impl LocaleProvider {
    /// The text before the name of a locale, for people: none for the C library.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Libc => "",
            Self::Icu => "icu:",
            Self::Builtin => "builtin:",
        }
    }
}

/// The locale of a database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locale {
    /// Library of the locale.
    pub provider: LocaleProvider,
    /// The C library's locale for the order of texts (LC_COLLATE).
    #[serde(default)]
    pub collate: String,
    /// The C library's locale that tells letters from other characters (LC_CTYPE); empty if it is that of the order.
    #[serde(default)]
    pub ctype: String,
    /// Name of the locale of ICU or PostgreSQL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Rules that change the order of ICU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<String>,
}

impl Locale {
    /// The name that decides on the order of texts.
    pub fn of_order(&self) -> &str {
        match self.provider {
            LocaleProvider::Libc => &self.collate,
            LocaleProvider::Icu | LocaleProvider::Builtin => self.name.as_deref().unwrap_or_default(),
        }
    }

    /// The C library's locale that tells letters from other characters, if it is not the one of the order; none for other libraries.
    pub fn of_letters(&self) -> Option<&str> {
        let is_other = !self.ctype.is_empty() && self.ctype != self.collate;
        (self.provider == LocaleProvider::Libc && is_other).then_some(self.ctype.as_str())
    }

    /// The mistake in it, with its remedy; none if there is none.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        match self.provider {
            _ if !self.of_order().is_empty() => None,
            LocaleProvider::Libc => Some("[locale] lacks \"collate\", for example collate = \"en_US.UTF-8\""),
            LocaleProvider::Icu | LocaleProvider::Builtin => Some(
                "[locale] lacks \"name\", for example name = \"en-US\" of icu, or name = \"C.UTF-8\" of builtin",
            ),
        }
    }
}

impl fmt::Display for Locale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.provider.prefix(), self.of_order())?;
        self.of_letters().map_or(Ok(()), |letters| write!(f, " (LC_CTYPE {letters})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ModelError;
    use crate::file::{FORMAT, Model};

    fn read(locale: &str) -> Result<Model, ModelError> {
        Model::read(&format!("format = {FORMAT}\n{locale}"))
    }

    fn libc(collate: &str, ctype: &str) -> Locale {
        let (collate, ctype) = (collate.to_owned(), ctype.to_owned());
        Locale { provider: LocaleProvider::Libc, collate, ctype, name: None, rules: None }
    }

    #[test]
    fn a_locale_is_written_and_read() {
        let icu = Locale {
            provider: LocaleProvider::Icu,
            name: Some("de-AT".to_owned()),
            rules: Some("&a < b".to_owned()),
            ..libc("C", "C.UTF-8")
        };
        let builtin =
            Locale { provider: LocaleProvider::Builtin, name: Some("C.UTF-8".to_owned()), ..libc("C", "C") };
        for (locale, shown) in [
            (libc("en_US.UTF-8", "en_US.UTF-8"), "en_US.UTF-8"),
            (libc("C", "de_AT.UTF-8"), "C (LC_CTYPE de_AT.UTF-8)"),
            (icu, "icu:de-AT"),
            (builtin, "builtin:C.UTF-8"),
        ] {
            assert_eq!(locale.to_string(), shown);
            let model = Model { locale: Some(locale), ..read("").unwrap() };
            assert_eq!(Model::read(&model.write()), Ok(model), "{shown}");
        }
    }

    #[test]
    fn a_model_may_lack_its_locale_or_parts_of_it() {
        assert_eq!(read("").unwrap().locale, None);
        let by_hand =
            read("locale = { provider = \"libc\", collate = \"fr_FR.UTF-8\" }").unwrap().locale.unwrap();
        assert_eq!((by_hand.to_string().as_str(), by_hand.of_letters()), ("fr_FR.UTF-8", None));
        for (wrong, says) in [
            ("provider = \"libc\"", "lacks \"collate\""),
            ("provider = \"icu\", collate = \"C\"", "lacks \"name\""),
            ("provider = \"windows\"", "windows"),
            ("provider = \"libc\", collate = \"C\", order = \"C\"", "order"),
        ] {
            let error = read(&format!("locale = {{ {wrong} }}")).unwrap_err();
            assert!(matches!(&error, ModelError::Value(text) if text.contains(says)), "{wrong}: {error}");
        }
    }
}
