use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A major version that pgrig can fetch: 13 to 18, each pinned to one exact version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Major(u8);

/// Each major version with its exact version. The exact versions change only with a release of
/// pgrig, so that runs of one pgrig are comparable.
const PINNED: [(u8, &str); 6] =
    [(13, "13.23.0"), (14, "14.24.0"), (15, "15.19.0"), (16, "16.15.0"), (17, "17.11.0"), (18, "18.6.0")];

impl Major {
    /// The oldest one, and the oldest server that pgrig works with.
    pub const OLDEST: Self = Self(PINNED[0].0);
    /// The newest one, which is the default.
    pub const NEWEST: Self = Self(PINNED[PINNED.len() - 1].0);

    /// All of them, oldest first.
    pub fn all() -> impl Iterator<Item = Self> {
        PINNED.iter().map(|(major, _)| Self(*major))
    }

    /// 13 to 18.
    pub const fn number(self) -> u16 {
        self.0 as u16
    }

    /// The exact version as its archive names it: `18.6.0`.
    pub fn pinned(self) -> &'static str {
        PINNED[usize::from(self.0 - PINNED[0].0)].1
    }

    /// The one with this number, if pgrig can fetch it.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::all().find(|major| major.number() == number)
    }
}

impl Default for Major {
    fn default() -> Self {
        Self::NEWEST
    }
}

impl FromStr for Major {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let number = text.parse().ok();
        number.and_then(Self::from_number).ok_or_else(|| Error::UnknownMajor(text.to_owned()))
    }
}

impl fmt::Display for Major {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The exact version of an installation, as PostgreSQL writes it: `18.6`, `19beta1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version {
    major: u16,
    text: String,
}

impl Version {
    /// 18 of 18.6.
    pub fn major(&self) -> u16 {
        self.major
    }

    /// As PostgreSQL writes it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Parses the output of `postgres --version`: `postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)`.
    pub(crate) fn from_output(output: &str) -> Option<Self> {
        output
            .split_whitespace()
            .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
            .and_then(Self::parse)
    }

    /// The version of a pinned archive, whose third number is not part of PostgreSQL's version.
    pub(crate) fn of_pinned(major: Major) -> Self {
        let text = major.pinned();
        Self { major: major.number(), text: text.strip_suffix(".0").unwrap_or(text).to_owned() }
    }

    /// A sortable form: 15.9 is older than 15.13.
    pub(crate) fn key(&self) -> (u16, u16) {
        let minor = self.text.split('.').nth(1).and_then(|m| m.parse().ok());
        (self.major, minor.unwrap_or(0))
    }

    fn parse(text: &str) -> Option<Self> {
        let digits = text.find(|c: char| !c.is_ascii_digit());
        let major = text[..digits.unwrap_or(text.len())].parse().ok()?;
        Some(Self { major, text: text.to_owned() })
    }
}

impl TryFrom<String> for Version {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        Self::parse(&text).ok_or(format!("{text:?} is not a PostgreSQL version"))
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.text
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_major_is_pinned_to_itself() {
        for major in Major::all() {
            assert!(major.pinned().starts_with(&format!("{major}.")));
            assert_eq!(major.to_string().parse::<Major>().unwrap(), major);
            assert_eq!(Version::of_pinned(major).major(), major.number());
        }
        assert_eq!(Version::of_pinned(Major::NEWEST).as_str(), "18.6");
    }

    #[test]
    fn others_are_refused_with_the_choice() {
        for text in ["12", "19", "18.6", "", "x", "-13", "274"] {
            let message = text.parse::<Major>().unwrap_err().to_string();
            assert!(message.contains("13 to 18"), "{message}");
        }
    }

    #[test]
    fn output_of_postgres_is_understood() {
        let debian = Version::from_output("postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)\n");
        assert_eq!(debian.unwrap().key(), (15, 13));
        let beta = Version::from_output("postgres (PostgreSQL) 19beta1").unwrap();
        assert_eq!((beta.major(), beta.as_str()), (19, "19beta1"));
        assert_eq!(Version::from_output("postgres"), None);
    }
}
