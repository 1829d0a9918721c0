//! Conditions as the server prints them: CHECK constraints and the bounds of partitions.
//!
//! `pg_get_expr` parenthesises every operation (`ruleutils.c`, without PRETTYFLAG_PAREN), so no
//! table of precedences is needed. Constants are kept as text, which the server evaluates. A
//! condition that is not understood is [`Condition::Other`]; the sample check finds out whether the
//! rows fulfil it.

use std::ops::Range;

use sql::{Kind, Text};

/// Conditions nested deeper than this are not understood.
pub(super) const MOST_LEVELS: u32 = 100;
/// Characters of operators.
const SYMBOLS: &[u8] = b"+-*/<>=~!@#%^&|`?";
/// The function by which the server prints a hash partition's bound.
const HASH_BOUND: &str = "satisfies_hash_partition";

/// A condition on one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// All hold.
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
    /// Not understood.
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
}

/// The columns that stand in a printed expression.
pub(super) fn columns_in<'n>(text: &str, all: &[&'n str]) -> Vec<&'n str> {
    let tokens = lex(text).unwrap_or_default();
    all.iter().copied().filter(|name| mentions(&tokens, &[name])).collect()
}

/// Whether nothing happens to the columns in an expression but these functions and casts to texts and bytes.
pub(super) fn calls_only(text: &str, functions: &[&str]) -> bool {
    const TYPES: [&str; 7] = ["text", "character", "varchar", "citext", "bpchar", "bytea", "name"];
    let tokens = lex(text).unwrap_or_default();
    let is_fine = |(at, (token, _)): (usize, &(Token, Range<usize>))| match token {
        Token::Symbol(_) => false,
        Token::Word { name, .. } if tokens.get(at + 1).is_some_and(|(next, _)| *next == Token::Open) => {
            functions.contains(&name.to_lowercase().as_str())
        }
        Token::Word { name, .. } if at > 0 && tokens[at - 1].0 == Token::Cast => {
            TYPES.contains(&name.as_str())
        }
        _ => true,
    };
    !tokens.is_empty() && tokens.iter().enumerate().all(is_fine)
}

/// The strings and numbers that stand in a printed expression, each once.
pub(super) fn literals_in(text: &str) -> Vec<String> {
    let mut literals: Vec<String> = Vec::new();
    for (token, place) in lex(text).unwrap_or_default() {
        let literal = unquoted(&text[place]);
        if token == Token::Literal && !literals.contains(&literal) {
            literals.push(literal);
        }
    }
    literals
}

/// The literals that a printed expression compares a column with: by `=`, `<>`, IN, `IS DISTINCT FROM` or CASE.
pub(super) fn compared_with(text: &str, column: &str) -> Vec<String> {
    let tokens = lex(text).unwrap_or_default();
    let mut found: Vec<String> = Vec::new();
    for at in (0..tokens.len()).filter(|&at| is_column(&tokens, at, column)) {
        let opened = tokens[..at].iter().rev().take_while(|(token, _)| *token == Token::Open).count();
        let before = tokens[..at - opened].last();
        // A function's parenthesis is not one around the column alone.
        let is_call = before.is_some_and(|token| matches!(token.0, Token::Word { .. }) && !is_keyword(token));
        let places = if before.is_some_and(|token| keyword(token) == "CASE") {
            after_when(&tokens[at..])
        } else {
            right_side(&tokens[at + 1..], opened - usize::from(is_call && opened > 0))
        };
        for place in places {
            let literal = unquoted(&text[place]);
            if !found.contains(&literal) {
                found.push(literal);
            }
        }
    }
    found
}

/// Whether the token is this column. Functions and types may have a column's name.
fn is_column(tokens: Tokens, at: usize, column: &str) -> bool {
    let is_name = matches!(&tokens[at].0, Token::Word { name, .. } if name == column);
    let is_type = at > 0 && tokens[at - 1].0 == Token::Cast;
    let is_function = tokens.get(at + 1).is_some_and(|(next, _)| *next == Token::Open);
    is_name && !is_type && !is_function
}

/// Whether the word is a keyword, which the server prints in capital letters.
fn is_keyword(token: &(Token, Range<usize>)) -> bool {
    keyword(token).starts_with(|letter: char| letter.is_ascii_uppercase())
}

/// The literals that a column before these tokens is compared with. `opened` parentheses begin before the column.
fn right_side(tokens: Tokens, mut opened: usize) -> Vec<Range<usize>> {
    // The ends of parentheses and casts around the column.
    let is_around = |token: &&(Token, Range<usize>)| match token.0 {
        Token::Close if opened > 0 => {
            opened -= 1;
            true
        }
        Token::Cast => true,
        Token::Word { .. } => !is_keyword(token),
        _ => false,
    };
    let tokens = &tokens[tokens.iter().take_while(is_around).count()..];
    let side = match tokens {
        [(Token::Symbol(symbol), _), side @ ..] if matches!(symbol.as_str(), "=" | "<>") => side,
        [is, distinct, from, side @ ..]
            if [is, distinct, from].map(keyword) == ["IS", "DISTINCT", "FROM"] =>
        {
            side
        }
        [is, not, distinct, from, side @ ..]
            if [is, not, distinct, from].map(keyword) == ["IS", "NOT", "DISTINCT", "FROM"] =>
        {
            side
        }
        _ => return Vec::new(),
    };
    let mut depth = 0_i32;
    let is_side = |token: &&(Token, Range<usize>)| {
        match token.0 {
            Token::Open => depth += 1,
            Token::Close => depth -= 1,
            Token::Symbol(_) if depth == 0 => return false,
            _ => {}
        }
        depth >= 0 && (depth > 0 || !matches!(keyword(token), "AND" | "OR"))
    };
    let side = side.iter().take_while(is_side);
    side.filter(|(token, _)| *token == Token::Literal).map(|(_, place)| place.clone()).collect()
}

/// The literals that stand after WHEN.
fn after_when(tokens: Tokens) -> Vec<Range<usize>> {
    let when = (0..tokens.len()).filter(|&at| keyword(&tokens[at]) == "WHEN");
    let next = when.filter_map(|at| tokens[at + 1..].iter().find(|(token, _)| *token != Token::Open));
    next.filter(|(token, _)| *token == Token::Literal).map(|(_, place)| place.clone()).collect()
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

/// Whether one of these columns stands in it. Functions and types may have a column's name.
fn mentions(tokens: Tokens, columns: &[&str]) -> bool {
    (0..tokens.len()).any(|at| columns.iter().any(|column| is_column(tokens, at, column)))
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

/// The word, if it is a keyword.
fn keyword((token, _): &(Token, Range<usize>)) -> &str {
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
fn uncast(mut tokens: Tokens<'_>) -> Tokens<'_> {
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
    fn functions_that_keep_values_apart_are_told_from_others() {
        let calls_only = |text| calls_only(text, &["lower", "md5", "coalesce"]);
        assert!(calls_only("lower((email)::text)"));
        assert!(calls_only("md5(COALESCE(a, ''::text))"));
        for text in ["(a % 10)", "date_trunc('day'::text, b)", "((b)::date)", "lower((a || b))", ""] {
            assert!(!calls_only(text), "{text}");
        }
    }

    #[test]
    fn literals_are_read_once_each() {
        let text =
            "((a = 'it''s'::text) OR (a ~ E'^\\\\d'::text) OR (b > 5) OR (b < 5) OR (b = '-1'::integer))";
        assert_eq!(literals_in(text), ["it's", "^\\d", "5", "-1"]);
    }

    #[test]
    fn literals_that_a_column_is_compared_with() {
        for (text, literals) in [
            ("((kind = 'x'::text) = (x_id IS NOT NULL))", vec!["x"]),
            (
                "(((kind)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[])) OR (n = 3))",
                vec!["a", "b"],
            ),
            ("(((kind)::text <> 'it''s'::text) AND (other = 'y'::text))", vec!["it's"]),
            ("((kind IS DISTINCT FROM 'x'::text) = (x_id IS NULL))", vec!["x"]),
            (
                "CASE kind WHEN 'x'::text THEN (a = 1) WHEN ('y'::text) THEN (b > 2) ELSE false END",
                vec!["x", "y"],
            ),
            ("(length(kind) = 5)", vec![]),
            ("((other = 'x'::text) AND (kind > 'y'::text))", vec![]),
        ] {
            assert_eq!(compared_with(text, "kind"), literals, "{text}");
        }
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
