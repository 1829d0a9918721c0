//! The words that specifications begin with, and their arguments.

use super::SpecError;
use crate::Topic;

/// A specification's first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Any,
    Unique,
    Serial,
    Timeseries,
    Shuffle,
    Uniform,
    Normal,
    Exponential,
    Zipf,
    List,
    Cycle,
    Constant,
    Null,
    Nulls,
    Text,
    Random,
    Blank,
    Topic(Topic),
    Reference,
    Default,
    Statistics,
    Repeated,
    Keys,
    Elements,
    Ranked,
    Letters,
    Lesser,
    Greater,
    Above,
}

/// The word of a name, the least and greatest number of its arguments, and their form.
struct Usage {
    name: Name,
    word: &'static str,
    counts: (usize, usize),
    arguments: &'static str,
}

const fn usage(name: Name, word: &'static str, counts: (usize, usize), arguments: &'static str) -> Usage {
    Usage { name, word, counts, arguments }
}

const ORDERED: &str = "(the other column,its specification,this column's own)";
const ANY_NUMBER: usize = usize::MAX;
/// Least likeness (0 to 1) of a name that is suggested.
const ALIKE: f64 = 0.6;

const ALL: [Usage; 28] = [
    usage(Name::Any, "any", (0, 0), "no arguments"),
    usage(Name::Unique, "unique", (0, 0), "no arguments"),
    usage(Name::Serial, "serial", (0, 2), "(start,step), or (start), or none"),
    usage(Name::Timeseries, "timeseries", (2, 2), "(start,step), for example timeseries(2024-01-01, 1s)"),
    usage(Name::Shuffle, "shuffle", (2, 2), "(low,high)"),
    usage(Name::Uniform, "uniform", (2, 2), "(low,high)"),
    usage(Name::Normal, "normal", (2, 2), "(mean,standard deviation)"),
    usage(Name::Exponential, "exponential", (1, 1), "(mean)"),
    usage(Name::Zipf, "zipf", (1, 2), "(n) or (n,s)"),
    usage(Name::List, "list", (1, ANY_NUMBER), "values: (a,b,…), with weights (a*3,b)"),
    usage(Name::Cycle, "cycle", (1, ANY_NUMBER), "values: (a,b,…)"),
    usage(Name::Constant, "constant", (1, 1), "(value); write a value with commas in single quotes"),
    usage(Name::Null, "null", (0, 0), "no arguments"),
    usage(
        Name::Nulls,
        "nulls",
        (1, 3),
        "(fraction,specification), for example nulls(0.1, uniform(1,10)), or (fraction) alone",
    ),
    usage(Name::Text, "text", (1, 2), "(characters) or (min,max)"),
    usage(Name::Random, "random", (1, 2), "(characters) or (min,max)"),
    usage(Name::Blank, "blank", (1, 2), "(characters) or (min,max)"),
    usage(Name::Reference, "reference", (1, 1), "(table.column)"),
    usage(Name::Default, "default", (0, 0), "no arguments"),
    usage(
        Name::Statistics,
        "statistics",
        (4, 4),
        "(distinct,correlation,common(value*share,…),histogram(bound,…))",
    ),
    usage(Name::Repeated, "repeated", (4, 4), "(distinct,correlation,common(place*share,…),specification)"),
    usage(
        Name::Keys,
        "keys",
        (3, 5),
        "(distinct,correlation,common(place*share,…)), optionally followed by histogram(place,…) and rows(number*fraction,…)",
    ),
    usage(
        Name::Elements,
        "elements",
        (3, 4),
        "(counts(number,…),listed(element*share,…),specification of other elements), optionally followed by the number of different other elements",
    ),
    usage(
        Name::Ranked,
        "ranked",
        (5, 5),
        "(column,correlation,nulls,links(link,…),specification); pgrig model writes it",
    ),
    usage(Name::Lesser, "lesser", (3, 3), ORDERED),
    usage(Name::Greater, "greater", (3, 3), ORDERED),
    usage(Name::Above, "above", (3, 3), ORDERED),
    usage(
        Name::Letters,
        "letters",
        (2, ANY_NUMBER),
        "an alphabet (digits, hex, upper, lower, mixed, words) and quantiles of the length",
    ),
];

/// The words above, then the topics.
fn all() -> impl Iterator<Item = Usage> {
    let topics = Topic::all().map(|topic| {
        let (counts, arguments) = if topic.can_be_unique() {
            ((0, 1), "no arguments, or (unique)")
        } else {
            ((0, 0), "no arguments")
        };
        usage(Name::Topic(topic), topic.name(), counts, arguments)
    });
    ALL.into_iter().chain(topics)
}

/// The name that is most like a word which is none.
fn alike(word: &str) -> Option<&'static str> {
    let word = word.to_lowercase();
    let likeness = |other: &'static str| (strsim::normalized_damerau_levenshtein(&word, other), other);
    let best = all().map(|usage| likeness(usage.word)).max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(likeness, _)| *likeness >= ALIKE).map(|(_, name)| name)
}

impl Name {
    /// The name that is written so, in whatever case.
    pub(super) fn find(word: &str) -> Result<Self, SpecError> {
        let found = all().find(|usage| usage.word.eq_ignore_ascii_case(word));
        found.map(|usage| usage.name).ok_or_else(|| SpecError::Unknown {
            name: word.to_owned(),
            alike: alike(word),
            known: all().map(|usage| usage.word).collect::<Vec<_>>().join(", "),
        })
    }

    /// Whether the specification takes so many arguments.
    pub(super) fn check_count(self, count: usize) -> Result<(), SpecError> {
        let Usage { word, counts: (least, most), arguments, .. } = self.usage();
        if (least..=most).contains(&count) {
            Ok(())
        } else {
            Err(SpecError::Arguments { name: word, arguments })
        }
    }

    /// The word itself.
    pub(super) fn word(self) -> &'static str {
        self.usage().word
    }

    fn usage(self) -> Usage {
        all().find(|usage| usage.name == self).expect("all names are listed")
    }
}
