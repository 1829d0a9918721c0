//! Values that suit the meaning of a column: e-mail addresses, names, prices.

use fake::locales::{Data, EN};
use serde::{Deserialize, Serialize};

use crate::generate::Form;
use crate::{Kind, Units};

/// The topic of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topic {
    /// E-mail addresses.
    Email,
    /// Names that users log in with.
    UserName,
    /// Given names.
    FirstName,
    /// Family names.
    LastName,
    /// Given and family name.
    FullName,
    /// Companies.
    Company,
    /// Cities.
    City,
    /// Countries.
    Country,
    /// ISO codes of countries, two letters.
    CountryCode,
    /// House number and street.
    Street,
    /// Postal codes.
    Postcode,
    /// Telephone numbers.
    Phone,
    /// Addresses of web pages.
    Url,
    /// Domain names.
    Domain,
    /// IPv4 addresses.
    Ip,
    /// ISO codes of currencies, three letters.
    Currency,
    /// Numbers of articles.
    Sku,
    /// Titles of two words or more.
    Title,
    /// Sentences.
    Sentence,
    /// Degrees from -90 to 90.
    Latitude,
    /// Degrees from -180 to 180.
    Longitude,
    /// 1.00 to 999.99.
    Price,
    /// 0 to 100.
    Percent,
    /// 18 to 90.
    Age,
    /// 1990 to 2025.
    Year,
}

/// A part of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TextPart {
    Literal(&'static str),
    /// One of these.
    Word(&'static [&'static str]),
    /// One of these that are letters only, in lower case.
    Lower(&'static [&'static str]),
    /// A number of capital letters.
    Letters(u32),
    /// A number of digits, the first one not 0.
    Digits(u32),
    /// 0 to 255.
    Byte,
    /// The row's number if values have to differ, else a number of so many digits. The text before
    /// it does not end in a digit.
    Number(u32),
    /// Words of a language.
    Sentence,
}

/// Numbers from `low` to `high`, in units of 10^-`decimals`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amounts {
    pub(crate) low: i64,
    pub(crate) high: i64,
    pub(crate) decimals: i16,
}

/// Generator of a topic's values.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Make {
    Text(&'static [TextPart]),
    Amounts(Amounts),
}

const FIRST: &[&str] = EN::NAME_FIRST_NAME;
const LAST: &[&str] = EN::NAME_LAST_NAME;
const NOUN: &[&str] = EN::COMPANY_BUZZWORD_TAIL;
/// Reserved for examples (RFC 2606): nobody gets mail by mistake.
const HOSTS: &[&str] = &["example.com", "example.net", "example.org"];

/// One row for each topic: its word in specifications, and how it is made.
const TOPICS: [(Topic, &str, Make); 25] = {
    use Make::Text;
    use TextPart::{Byte, Digits, Letters, Literal, Lower, Number, Sentence, Word};
    const fn amounts(low: i64, high: i64, decimals: i16) -> Make {
        Make::Amounts(Amounts { low, high, decimals })
    }
    [
        (
            Topic::Email,
            "email",
            Text(&[Lower(FIRST), Literal("."), Lower(LAST), Number(0), Literal("@"), Word(HOSTS)]),
        ),
        (Topic::UserName, "user-name", Text(&[Lower(FIRST), Lower(LAST), Number(2)])),
        (Topic::FirstName, "first-name", Text(&[Word(FIRST)])),
        (Topic::LastName, "last-name", Text(&[Word(LAST)])),
        (Topic::FullName, "full-name", Text(&[Word(FIRST), Literal(" "), Word(LAST)])),
        (Topic::Company, "company", Text(&[Word(LAST), Literal(" "), Word(EN::COMPANY_SUFFIX)])),
        (Topic::City, "city", Text(&[Word(LAST), Word(EN::ADDRESS_CITY_SUFFIX)])),
        (Topic::Country, "country", Text(&[Word(EN::ADDRESS_COUNTRY)])),
        (Topic::CountryCode, "country-code", Text(&[Word(EN::ADDRESS_COUNTRY_CODE)])),
        (
            Topic::Street,
            "street",
            Text(&[Digits(3), Literal(" "), Word(LAST), Literal(" "), Word(EN::ADDRESS_STREET_SUFFIX)]),
        ),
        (Topic::Postcode, "postcode", Text(&[Digits(5)])),
        (Topic::Phone, "phone", Text(&[Literal("+1-"), Digits(3), Literal("-555-"), Digits(4)])),
        (
            Topic::Url,
            "url",
            Text(&[Literal("https://www."), Word(HOSTS), Literal("/"), Lower(NOUN), Literal("/"), Number(4)]),
        ),
        (Topic::Domain, "domain", Text(&[Lower(LAST), Number(0), Literal("."), Word(HOSTS)])),
        (Topic::Ip, "ip", Text(&[Literal("10."), Byte, Literal("."), Byte, Literal("."), Byte])),
        (Topic::Currency, "currency", Text(&[Word(EN::CURRENCY_CODE)])),
        (Topic::Sku, "sku", Text(&[Letters(3), Literal("-"), Number(6)])),
        (Topic::Title, "title", Text(&[Word(EN::COMPANY_BUZZWORD_HEAD), Literal(" "), Word(NOUN)])),
        (Topic::Sentence, "sentence", Text(&[Sentence])),
        (Topic::Latitude, "latitude", amounts(-90_000_000, 90_000_000, 6)),
        (Topic::Longitude, "longitude", amounts(-180_000_000, 180_000_000, 6)),
        (Topic::Price, "price", amounts(100, 99_999, 2)),
        (Topic::Percent, "percent", amounts(0, 1_000, 1)),
        (Topic::Age, "age", amounts(18, 90, 0)),
        (Topic::Year, "year", amounts(1_990, 2_025, 0)),
    ]
};

impl Topic {
    /// The word for it in column specifications.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Whether its values can be made to differ in every row.
    pub fn can_be_unique(self) -> bool {
        match self.make() {
            Make::Text(parts) => parts.iter().any(|part| matches!(part, TextPart::Number(_))),
            Make::Amounts(_) => false,
        }
    }

    /// Least and greatest value for a type of numbers, in its units; none for texts, and types that it does not suit.
    pub fn range(self, kind: &Kind) -> Option<Units> {
        Form::new(self, kind, false)?.range()
    }

    /// All topics.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        TOPICS.iter().map(|(topic, ..)| *topic)
    }

    pub(crate) fn make(self) -> Make {
        self.row().2
    }

    fn row(self) -> &'static (Self, &'static str, Make) {
        TOPICS.iter().find(|(topic, ..)| *topic == self).expect("every topic has its row")
    }
}
