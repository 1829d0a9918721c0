//! Chooses values by the name of a column: e-mail addresses for a column `email`.

use rowgen::{Kind, Topic, Turn, Values};

use super::allowed::{Allowed, Set};

/// A rule: columns of these names get values of this topic, if it suits their type and length. The first rule wins.
struct Rule {
    /// Words in the table's name, one of which must occur; none: any table.
    tables: &'static [&'static str],
    /// The column's name, or its last words.
    names: &'static [&'static str],
    topic: Topic,
}

const fn rule(names: &'static [&'static str], topic: Topic) -> Rule {
    Rule { tables: &[], names, topic }
}

const PEOPLE: &[&str] = &[
    "customer",
    "client",
    "user",
    "person",
    "people",
    "employee",
    "staff",
    "author",
    "contact",
    "member",
    "student",
    "teacher",
    "patient",
    "actor",
    "artist",
    "player",
    "owner",
    "guest",
    "account",
    "driver",
    "doctor",
    "candidate",
];
const COMPANIES: &[&str] = &[
    "company",
    "companies",
    "supplier",
    "vendor",
    "manufacturer",
    "organization",
    "organisation",
    "shipper",
    "brand",
];

/// Meanings of column names. docs/src/methodology/rows.md shows the same table.
const RULES: [Rule; 31] = [
    rule(&["email", "e_mail", "mail", "email_address", "mail_address"], Topic::Email),
    rule(&["username", "user_name", "login", "login_name", "nickname", "nick", "handle"], Topic::UserName),
    rule(&["first_name", "firstname", "given_name", "forename"], Topic::FirstName),
    rule(&["last_name", "lastname", "family_name", "surname"], Topic::LastName),
    rule(
        &[
            "full_name",
            "fullname",
            "display_name",
            "contact_name",
            "customer_name",
            "person_name",
            "author_name",
        ],
        Topic::FullName,
    ),
    rule(
        &[
            "company",
            "company_name",
            "organization",
            "organisation",
            "employer",
            "manufacturer",
            "vendor",
            "supplier",
        ],
        Topic::Company,
    ),
    rule(&["city", "town", "city_name"], Topic::City),
    rule(&["country", "country_name"], Topic::Country),
    rule(&["country_code", "country", "country_iso"], Topic::CountryCode),
    rule(
        &["street", "address", "street_address", "address_line", "address_line1", "address_1", "address1"],
        Topic::Street,
    ),
    rule(&["postcode", "post_code", "postal_code", "zip", "zip_code", "zipcode"], Topic::Postcode),
    rule(
        &["phone", "phone_number", "telephone", "mobile", "mobile_number", "tel", "fax", "fax_number"],
        Topic::Phone,
    ),
    rule(&["url", "uri", "link", "website", "homepage", "web_page"], Topic::Url),
    rule(&["domain", "domain_name", "host", "hostname", "host_name"], Topic::Domain),
    rule(&["ip", "ip_address", "ip_addr", "remote_addr"], Topic::Ip),
    rule(&["currency", "currency_code"], Topic::Currency),
    rule(&["sku", "article_number", "item_number", "product_code", "item_code"], Topic::Sku),
    rule(&["title", "subject", "headline", "product_name", "item_name"], Topic::Title),
    rule(
        &[
            "description",
            "comment",
            "comments",
            "note",
            "notes",
            "remark",
            "remarks",
            "summary",
            "message",
            "body",
            "content",
            "bio",
            "biography",
            "review",
            "abstract",
        ],
        Topic::Sentence,
    ),
    rule(&["lat", "latitude"], Topic::Latitude),
    rule(&["lon", "lng", "long", "longitude"], Topic::Longitude),
    rule(&["price", "unit_price", "list_price"], Topic::Price),
    rule(&["amount", "cost", "total", "subtotal", "fee", "balance", "credit"], Topic::Price),
    rule(&["percent", "percentage", "pct"], Topic::Percent),
    rule(&["age"], Topic::Age),
    rule(&["year"], Topic::Year),
    Rule { tables: &["city", "cities", "town"], names: &["name"], topic: Topic::City },
    Rule { tables: &["country", "countries"], names: &["name"], topic: Topic::Country },
    Rule { tables: COMPANIES, names: &["name"], topic: Topic::Company },
    Rule { tables: PEOPLE, names: &["name"], topic: Topic::FullName },
    Rule {
        tables: &["product", "item", "article", "film", "movie", "book", "project"],
        names: &["name"],
        topic: Topic::Title,
    },
];

/// Names of columns with times of one row, in the order of these times.
const TIMES: [&[&str]; 3] = [
    &["created", "created_at", "created_on", "created_date", "create_date", "creation_date", "inserted_at"],
    &[
        "updated",
        "updated_at",
        "updated_on",
        "updated_date",
        "modified",
        "modified_at",
        "modified_date",
        "changed_at",
    ],
    &["deleted", "deleted_at", "deleted_on", "deleted_date", "removed_at", "archived_at"],
];

/// Values that the name of the column suggests. None if no rule fits, or if the column does not
/// allow all values of the topic.
pub(super) fn values(
    table: &str,
    column: &str,
    kind: &Kind,
    allowed: &Allowed,
    turn: Option<Turn>,
) -> Option<Values> {
    let (table, column) = (words(table), words(column));
    let rules = RULES.iter().filter(|rule| {
        rule.names.iter().any(|name| is_last(&column, name))
            && (rule.tables.is_empty() || rule.tables.iter().any(|word| has_word(&table, word)))
    });
    rules
        .filter(|rule| turn.is_none() || rule.topic.can_be_unique())
        .filter(|rule| keeps(rule.topic, kind, allowed))
        .map(|rule| Values::Topic { topic: rule.topic, turn })
        .find(|values| values.check(kind).is_ok())
}

/// Position of a time among the times of its row, from the name of the column; none if the name
/// does not tell.
pub(super) fn time_order(column: &str, kind: &Kind) -> Option<usize> {
    let is_time = matches!(kind, Kind::Timestamp | Kind::TimestampTz | Kind::Date);
    let column = words(column);
    TIMES.iter().position(|names| is_time && names.contains(&column.as_str()))
}

/// Whether the column is NULL in most rows, judged by its name.
pub(super) fn is_seldom(column: &str, kind: &Kind) -> bool {
    time_order(column, kind) == Some(2)
}

/// Whether all values of a topic are allowed. The kind says how long texts may be.
fn keeps(topic: Topic, kind: &Kind, allowed: &Allowed) -> bool {
    match (&allowed.set, topic.range(kind)) {
        (Set::All, _) => allowed.shortest == 0,
        (Set::Units(stretches), Some(range)) => {
            stretches.iter().any(|stretch| stretch.contains(range.low) && stretch.contains(range.high))
        }
        (Set::Floats { low, high }, Some(range)) => *low <= range.low as f64 && range.high as f64 <= *high,
        _ => false,
    }
}

/// A name in lower case, its words separated by `_`: `zipCode` is `zip_code`.
fn words(name: &str) -> String {
    let mut words = String::new();
    let mut before = '_';
    for char in name.chars() {
        if char.is_ascii_uppercase() && before.is_ascii_lowercase() {
            words.push('_');
        }
        words.push(if char.is_alphanumeric() { char.to_ascii_lowercase() } else { '_' });
        before = char;
    }
    words
}

/// Whether a name ends with these words: `billing_city` with `city`.
fn is_last(name: &str, last: &str) -> bool {
    name.strip_suffix(last).is_some_and(|before| before.is_empty() || before.ends_with('_'))
}

/// Whether a word, or its plural, is in a name.
fn has_word(name: &str, word: &str) -> bool {
    name.split('_').any(|part| part.strip_suffix('s').unwrap_or(part) == word || part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(table: &str, column: &str, kind: &Kind) -> Option<Topic> {
        match values(table, column, kind, &Allowed::anything(), None)? {
            Values::Topic { topic, .. } => Some(topic),
            _ => None,
        }
    }

    #[test]
    fn names_and_types_decide() {
        for (table, column, kind, expected) in [
            ("customers", "name", Kind::Text, Some(Topic::FullName)),
            ("suppliers", "name", Kind::Text, Some(Topic::Company)),
            ("products", "name", Kind::Varchar(Some(40)), Some(Topic::Title)),
            ("settings", "name", Kind::Text, None),
            ("t", "billingCity", Kind::Text, Some(Topic::City)),
            ("t", "country", Kind::Text, Some(Topic::Country)),
            ("t", "country", Kind::Char(2), Some(Topic::CountryCode)),
            ("t", "email", Kind::Int4, None),
            ("t", "email", Kind::Varchar(Some(8)), None),
            ("t", "velocity", Kind::Text, None),
            ("t", "status", Kind::Text, None),
            ("t", "lat", Kind::Float8, Some(Topic::Latitude)),
        ] {
            assert_eq!(topic(table, column, &kind), expected, "{table}.{column} {}", kind.sql());
        }
    }

    #[test]
    fn a_unique_column_gets_unique_values_or_none() {
        let unique =
            |column| values("t", column, &Kind::Text, &Allowed::anything(), Some(Turn::EACH)).is_some();
        assert!(unique("email"));
        assert!(!unique("city"));
    }
}
