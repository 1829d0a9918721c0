//! Conditions as the server prints them: CHECK constraints and the bounds of partitions.
//!
//! `pg_get_expr` parenthesises every operation (`ruleutils.c`, without PRETTYFLAG_PAREN), so no
//! table of precedences is needed. Constants are kept as text, which the server evaluates. A
//! condition that is not understood is [`Condition::Other`]; the sample check finds out whether the
//! rows fulfil it.

use std::ops::Range;

use sql::{Kind, Text};

use super::mentioned::mentions;

/// Conditions nested deeper than this are not understood.
pub(super) const MOST_LEVELS: u32 = 100;
/// Characters of operators.
const SYMBOLS: &[u8] = b"+-*/<>=~!@#%^&|`?";
/// The function by which the server prints a hash partition's bound.
const HASH_BOUND: &str = "satisfies_hash_partition";

/// A condition on one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// All of these conditions hold.
    All(Vec<Self>),
    /// At least one holds.
    Any(Vec<Self>),
    /// The subject compared with a constant.
    Compare { subject: Subject, operator: Operator, constant: String },
    /// The subject is in an array.
    OneOf { subject: Subject, array: String },
    /// A column compared with another one.
    Columns { left: String, operator: Operator, right: String },
    /// A column is NULL.
    Null { column: String },
    /// A column is not NULL.
    NotNull { column: String },
    /// A condition that pgrig does not understand.
    Other,
}

/// Left side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    /// The column's value, perhaps cast.
    Value(String),
    /// Number of characters, or of bytes if it consists of bytes.
    Length(String),
    /// Number of bytes.
    Bytes(String),
}

/// Operator of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
}

/// The columns that can stand in an expression.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    /// All columns of the table. In a domain's constraints the only one is [`DOMAIN_VALUE`].
    pub(super) all: &'a [&'a str],
    /// The column that a name stands for; none if conditions on that column do not matter.
    pub(super) subject: &'a dyn Fn(&str) -> Option<String>,
}

/// Name of the value in a domain's constraints.
pub(super) const DOMAIN_VALUE: &str = "VALUE";

impl Condition {
    /// Reads a printed expression.
    pub(super) fn parse(text: &str, names: Names<'_>) -> Self {
        match lex(text) {
            Some(tokens) => Reader { text, names }.condition(&tokens, 0),
            None => Self::Other,
        }
    }

    /// Whether the condition says that two columns must differ. Few rows break such a condition, so a
    /// sample does not show it.
    pub(super) fn has_columns_that_differ(&self) -> bool {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().any(Self::has_columns_that_differ),
            Self::Columns { operator, .. } => *operator == Operator::NotEqual,
            _ => false,
        }
    }
}

impl Operator {
    fn of(symbol: &str) -> Option<Self> {
        Some(match symbol {
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            "=" => Self::Equal,
            "<>" => Self::NotEqual,
            ">=" => Self::GreaterOrEqual,
            ">" => Self::Greater,
            _ => return None,
        })
    }

    /// The operator for exchanged sides: `<` becomes `>`.
    pub(super) fn turned(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Equal | Self::NotEqual => self,
            Self::GreaterOrEqual => Self::LessOrEqual,
            Self::Greater => Self::Less,
        }
    }
}

/// A token of an expression, as far as conditions distinguish them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A name or keyword; unquoted ones are lower case unless they are keywords.
    Word {
        name: String,
        quoted: bool,
    },
    /// A string or number.
    Literal,
    Symbol(String),
    Cast,
    Open,
    Close,
    /// Comma, dot, bracket.
    Mark,
}

pub(super) type Tokens<'t> = &'t [(Token, Range<usize>)];

struct Reader<'a> {
    text: &'a str,
    names: Names<'a>,
}

impl Reader<'_> {
    fn condition(&self, tokens: Tokens, depth: u32) -> Condition {
        let tokens = unwrap(tokens);
        if depth > MOST_LEVELS {
            return Condition::Other;
        }
        let inner = |part| self.condition(part, depth + 1);
        if let Some(parts) = split(tokens, "AND") {
            return Condition::All(parts.into_iter().map(inner).collect());
        }
        if let Some(parts) = split(tokens, "OR") {
            return Condition::Any(parts.into_iter().map(inner).collect());
        }
        // All remainders of a hash partitioning together take every row.
        if let [(Token::Word { name, .. }, _), ..] = tokens
            && name == HASH_BOUND
        {
            return Condition::All(Vec::new());
        }
        self.null_test(tokens)
            .or_else(|| self.truth(tokens))
            .or_else(|| self.operation(tokens))
            .unwrap_or(Condition::Other)
    }

    fn null_test(&self, tokens: Tokens) -> Option<Condition> {
        let (rest, not) = match tokens {
            [rest @ .., is, not, null] if [is, not, null].map(keyword) == ["IS", "NOT", "NULL"] => {
                (rest, true)
            }
            [rest @ .., is, null] if [is, null].map(keyword) == ["IS", "NULL"] => (rest, false),
            _ => return None,
        };
        let column = self.column(rest)?;
        Some(if not { Condition::NotNull { column } } else { Condition::Null { column } })
    }

    /// A boolean column by itself, or NOT it.
    fn truth(&self, tokens: Tokens) -> Option<Condition> {
        let (rest, constant) = match tokens {
            [not, rest @ ..] if keyword(not) == "NOT" => (rest, "false"),
            _ => (tokens, "true"),
        };
        let subject = Subject::Value(self.column(rest)?);
        Some(Condition::Compare { subject, operator: Operator::Equal, constant: constant.to_owned() })
    }

    fn operation(&self, tokens: Tokens) -> Option<Condition> {
        let at = top_level(tokens).find(|&at| matches!(tokens[at].0, Token::Symbol(_)))?;
        let Token::Symbol(symbol) = &tokens[at].0 else { return None };
        let operator = Operator::of(symbol)?;
        let (left, right) = (&tokens[..at], &tokens[at + 1..]);
        if let [any, array @ ..] = right
            && keyword(any) == "ANY"
        {
            let subject = self.subject(left)?;
            let one_of = operator == Operator::Equal && self.is_constant(array);
            return one_of.then(|| Condition::OneOf { subject, array: self.source(array) });
        }
        if right.first().is_some_and(|first| keyword(first) == "ALL") {
            return None;
        }
        match (self.subject(left), self.subject(right)) {
            (Some(Subject::Value(left)), Some(Subject::Value(right))) => {
                Some(Condition::Columns { left, operator, right })
            }
            (Some(subject), None) if self.is_constant(right) => {
                Some(Condition::Compare { subject, operator, constant: self.source(right) })
            }
            (None, Some(subject)) if self.is_constant(left) => {
                let constant = self.source(left);
                Some(Condition::Compare { subject, operator: operator.turned(), constant })
            }
            _ => None,
        }
    }

    fn subject(&self, tokens: Tokens) -> Option<Subject> {
        let tokens = uncast(tokens);
        if let [(Token::Word { name, .. }, _), arguments @ ..] = tokens
            && matches!(arguments.first(), Some((Token::Open, _)))
        {
            return match name.as_str() {
                "length" | "char_length" | "character_length" => self.column(arguments).map(Subject::Length),
                "octet_length" => self.column(arguments).map(Subject::Bytes),
                _ => None,
            };
        }
        self.column(tokens).map(Subject::Value)
    }

    fn column(&self, tokens: Tokens) -> Option<String> {
        let [(Token::Word { name, .. }, _)] = uncast(tokens) else { return None };
        self.names.all.contains(&name.as_str()).then(|| (self.names.subject)(name)).flatten()
    }

    fn is_constant(&self, tokens: Tokens) -> bool {
        !tokens.is_empty() && !mentions(tokens, self.names.all)
    }

    fn source(&self, tokens: Tokens) -> String {
        match (tokens.first(), tokens.last()) {
            (Some((_, first)), Some((_, last))) => self.text[first.start..last.end].to_owned(),
            _ => String::new(),
        }
    }
}

/// The text of a string literal; a number as it is.
pub(super) fn unquoted(literal: &str) -> String {
    let inside = |body: &str| body.strip_suffix('\'').unwrap_or(body).replace("''", "'");
    match (literal.strip_prefix("E'"), literal.strip_prefix('\'')) {
        (Some(body), _) => inside(body).replace("\\\\", "\\"),
        (None, Some(body)) => inside(body),
        (None, None) => literal.to_owned(),
    }
}

/// Whether the word is a keyword, which the server prints in capital letters.
pub(super) fn is_keyword(token: &(Token, Range<usize>)) -> bool {
    keyword(token).starts_with(|letter: char| letter.is_ascii_uppercase())
}

/// The word, if it is a keyword.
pub(super) fn keyword((token, _): &(Token, Range<usize>)) -> &str {
    match token {
        Token::Word { name, quoted: false } => name,
        _ => "",
    }
}

/// Positions outside of parentheses.
pub(super) fn top_level(tokens: Tokens<'_>) -> impl Iterator<Item = usize> {
    let mut depth = 0_u32;
    tokens.iter().enumerate().filter_map(move |(at, (token, _))| {
        match token {
            Token::Open => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            _ if depth == 0 => return Some(at),
            _ => {}
        }
        None
    })
}

/// Without the parentheses around the whole.
pub(super) fn unwrap(mut tokens: Tokens<'_>) -> Tokens<'_> {
    while let [(Token::Open, _), inner @ .., (Token::Close, _)] = tokens
        && is_balanced(inner)
    {
        tokens = inner;
    }
    tokens
}

fn is_balanced(tokens: Tokens) -> bool {
    let mut depth = 0_i32;
    tokens.iter().all(|(token, _)| {
        match token {
            Token::Open => depth += 1,
            Token::Close => depth -= 1,
            _ => {}
        }
        depth >= 0
    })
}

/// Without parentheses and casts around the whole.
pub(super) fn uncast(mut tokens: Tokens<'_>) -> Tokens<'_> {
    loop {
        tokens = unwrap(tokens);
        let is_operation = top_level(tokens).any(|at| matches!(tokens[at].0, Token::Symbol(_)));
        match top_level(tokens).find(|&at| tokens[at].0 == Token::Cast) {
            Some(at) if !is_operation => tokens = &tokens[..at],
            _ => return tokens,
        }
    }
}

/// The parts between a keyword outside of parentheses; none if it is not there.
fn split<'t>(tokens: Tokens<'t>, word: &str) -> Option<Vec<Tokens<'t>>> {
    let at: Vec<usize> = top_level(tokens).filter(|&at| keyword(&tokens[at]) == word).collect();
    if at.is_empty() {
        return None;
    }
    let starts = std::iter::once(0).chain(at.iter().map(|at| at + 1));
    let ends = at.iter().copied().chain(std::iter::once(tokens.len()));
    Some(starts.zip(ends).map(|(start, end)| &tokens[start..end]).collect())
}

/// Tokens with their places; none if the text has not the form that the server prints.
pub(super) fn lex(text: &str) -> Option<Vec<(Token, Range<usize>)>> {
    let rest = Text::whole(text);
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some((kind, length)) = rest.from(at).token().ok()? {
        let part = &text[at..];
        let run = |belongs: fn(u8) -> bool| rest.run(at, belongs) - at;
        let (token, length) = match (kind, part.as_bytes()[0]) {
            (Kind::Blank, _) => {
                at += length;
                continue;
            }
            (Kind::Open, _) => (Token::Open, length),
            (Kind::Close, _) => (Token::Close, length),
            (Kind::Literal, _) => (Token::Literal, length),
            (Kind::Word, _) => (Token::Word { name: part[..length].to_owned(), quoted: false }, length),
            (Kind::QuotedName, _) => {
                let name = String::from_utf8(sql::name(kind, &part.as_bytes()[..length])?).ok()?;
                (Token::Word { name, quoted: true }, length)
            }
            (Kind::Other, b'0'..=b'9') => {
                (Token::Literal, run(|byte| byte.is_ascii_alphanumeric() || byte == b'.'))
            }
            (Kind::Other, b':') if part.starts_with("::") => (Token::Cast, 2),
            (Kind::Other, b',' | b'.' | b'[' | b']' | b':') => (Token::Mark, 1),
            (Kind::Other, byte) if SYMBOLS.contains(&byte) => {
                let length = run(|byte| SYMBOLS.contains(&byte));
                (Token::Symbol(part[..length].to_owned()), length)
            }
            _ => return None,
        };
        tokens.push((token, at..at + length));
        at += length;
    }
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Condition {
        let all = ["a", "b", "date", "Odd \"one", "status", "VALUE", "fixed"];
        let subject = |name: &str| (name != "fixed").then(|| name.to_owned());
        Condition::parse(text, Names { all: &all, subject: &subject })
    }

    fn compare(column: &str, operator: Operator, constant: &str) -> Condition {
        let subject = Subject::Value(column.into());
        Condition::Compare { subject, operator, constant: constant.into() }
    }

    #[test]
    fn comparisons() {
        assert_eq!(parse("(a > 0)"), compare("a", Operator::Greater, "0"));
        assert_eq!(
            parse("((a)::numeric >= '-0.5'::numeric)"),
            compare("a", Operator::GreaterOrEqual, "'-0.5'::numeric")
        );
        assert_eq!(parse("((0)::numeric < VALUE)"), compare("VALUE", Operator::Greater, "(0)::numeric"));
        assert_eq!(
            parse("(date <= '2024-01-01'::date)"),
            compare("date", Operator::LessOrEqual, "'2024-01-01'::date")
        );
        assert_eq!(
            parse("(b <= (now() - '1 day'::interval))"),
            compare("b", Operator::LessOrEqual, "(now() - '1 day'::interval)")
        );
        assert_eq!(
            parse("(\"Odd \"\"one\" <> 'it''s (not) AND'::text)"),
            compare("Odd \"one", Operator::NotEqual, "'it''s (not) AND'::text")
        );
        assert_eq!(
            parse("(a = E'back\\\\slash\\''::text)"),
            compare("a", Operator::Equal, "E'back\\\\slash\\''::text")
        );
        assert_eq!(parse("a"), compare("a", Operator::Equal, "true"));
        assert_eq!(parse("(NOT a)"), compare("a", Operator::Equal, "false"));
        let columns = Condition::Columns { left: "a".into(), operator: Operator::Less, right: "b".into() };
        assert_eq!(parse("(a < (b)::bigint)"), columns);
    }

    #[test]
    fn combinations() {
        let between = parse("((a >= 1) AND (a <= 5) AND (b IS NOT NULL))");
        let Condition::All(parts) = between else { panic!("{between:?}") };
        assert_eq!(parts[1], compare("a", Operator::LessOrEqual, "5"));
        assert_eq!(parts[2], Condition::NotNull { column: "b".into() });
        let either = parse("((a IS NULL) OR ((a = 1) AND (b = 2)))");
        let Condition::Any(parts) = either else { panic!("{either:?}") };
        assert_eq!(parts[0], Condition::Null { column: "a".into() });
        assert!(matches!(&parts[1], Condition::All(inner) if inner.len() == 2));
    }

    #[test]
    fn lists_and_lengths() {
        let array = "((ARRAY['new'::character varying, 'paid'::character varying])::text[])";
        let subject = Subject::Value("status".into());
        assert_eq!(
            parse(&format!("((status)::text = ANY {array})")),
            Condition::OneOf { subject, array: array.into() }
        );
        let subject = Subject::Length("a".into());
        assert_eq!(
            parse("(char_length((a)::text) <= 10)"),
            Condition::Compare { subject, operator: Operator::LessOrEqual, constant: "10".into() }
        );
        let subject = Subject::Bytes("a".into());
        let operator = Operator::Equal;
        assert_eq!(
            parse("(octet_length(a) = 20)"),
            Condition::Compare { subject, operator, constant: "20".into() }
        );
        assert_eq!(parse("(octet_length(lower(a)) = 20)"), Condition::Other);
    }

    #[test]
    fn a_hash_partition_asks_for_nothing() {
        assert_eq!(parse("satisfies_hash_partition('16384'::oid, 2, 0, a)"), Condition::All(vec![]));
    }

    #[test]
    fn what_is_not_understood_is_other() {
        for text in [
            "(a ~ '^x'::text)",
            "(a <> ALL (ARRAY[1, 2]))",
            "((a + b) > 10)",
            "((a % 2) = 0)",
            "(a > (b + 1))",
            "(fixed > 0)",
            "(a > fixed)",
            "(NOT (a > 5))",
            "(a > 'unterminated)",
            "CASE WHEN (a > 0) THEN (b > 0) ELSE true END",
            "",
        ] {
            assert_eq!(parse(text), Condition::Other, "{text}");
        }
    }
}
