//! The tokens of expressions (`exprscan.l`, state EXPR).

use super::fault::{Fault, Origin};
use super::words::skip;
use crate::error::Problem;
use crate::number;
use crate::variables::{begins_name, is_in_name};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    ShiftLeft,
    ShiftRight,
    BitOr,
    BitAnd,
    BitXor,
    BitNot,
    Open,
    Close,
    Comma,
    And,
    Or,
    Not,
    Is,
    IsNull,
    NotNull,
    Case,
    When,
    Then,
    Else,
    End,
    Null,
    True,
    False,
    Integer(i64),
    /// 2^63, which is allowed only after a minus.
    GreatestIntegerAndOne,
    Double(f64),
    Variable(&'a str),
    /// Any other word.
    Function(&'a str),
    /// End of the command.
    EndOfCommand,
}

/// A token and where it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lexed<'a> {
    pub(super) token: Token<'a>,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Lexed<'_> {
    /// The error of a token: the caret is below its last character, as pgbench's is.
    pub(super) fn fault(&self, problem: Problem) -> Fault {
        Fault::new(problem, Origin::Character(self.start.max(self.end.saturating_sub(1))))
    }
}

const SYMBOLS: [(&str, Token<'static>); 21] = [
    ("<>", Token::Unequal),
    ("!=", Token::Unequal),
    ("<=", Token::LessOrEqual),
    (">=", Token::GreaterOrEqual),
    ("<<", Token::ShiftLeft),
    (">>", Token::ShiftRight),
    ("<", Token::Less),
    (">", Token::Greater),
    ("=", Token::Equal),
    ("+", Token::Plus),
    ("-", Token::Minus),
    ("*", Token::Star),
    ("/", Token::Slash),
    ("%", Token::Percent),
    ("|", Token::BitOr),
    ("&", Token::BitAnd),
    ("#", Token::BitXor),
    ("~", Token::BitNot),
    ("(", Token::Open),
    (")", Token::Close),
    (",", Token::Comma),
];

const KEYWORDS: [(&str, Token<'static>); 14] = [
    ("and", Token::And),
    ("or", Token::Or),
    ("not", Token::Not),
    ("is", Token::Is),
    ("isnull", Token::IsNull),
    ("notnull", Token::NotNull),
    ("case", Token::Case),
    ("when", Token::When),
    ("then", Token::Then),
    ("else", Token::Else),
    ("end", Token::End),
    ("null", Token::Null),
    ("true", Token::True),
    ("false", Token::False),
];

/// The token that begins here, after blanks.
pub(super) fn token(text: &str, at: usize) -> Result<Lexed<'_>, Fault> {
    let (start, ended) = skip(text, at);
    if ended {
        let line_end = if start > at && text.as_bytes()[start - 1] == b'\n' { start - 1 } else { start };
        return Ok(Lexed { token: Token::EndOfCommand, start: line_end, end: start });
    }
    let rest = &text[start..];
    let names = |from: usize| from + rest.bytes().skip(from).take_while(|byte| is_in_name(*byte)).count();
    let (token, length) = if let Some((symbol, token)) = SYMBOLS.iter().find(|(s, _)| rest.starts_with(s)) {
        (*token, symbol.len())
    } else if rest.starts_with(':') && names(1) > 1 {
        (Token::Variable(&rest[1..names(1)]), names(1))
    } else if rest.bytes().next().is_some_and(begins_name) {
        let word = &rest[..names(0)];
        let keyword = KEYWORDS.iter().find(|(keyword, _)| keyword.eq_ignore_ascii_case(word));
        (keyword.map_or(Token::Function(word), |(_, token)| *token), word.len())
    } else if let Some((length, is_double)) = number_length(rest) {
        let digits = &rest[..length];
        let token = if is_double { double(digits) } else { integer(digits) };
        let last = Origin::Character(start + length - 1);
        (token.map_err(|problem| Fault::new(problem, last))?, length)
    } else {
        let character = rest.chars().next().expect("the command has not ended");
        return Err(Fault::new(Problem::Character(character), Origin::Character(start)));
    };
    Ok(Lexed { token, start, end: start + length })
}

fn integer(digits: &str) -> Result<Token<'static>, Problem> {
    if digits == "9223372036854775808" {
        return Ok(Token::GreatestIntegerAndOne);
    }
    number::integer(digits).map(Token::Integer).ok_or_else(|| Problem::IntegerOverflow(digits.to_owned()))
}

fn double(digits: &str) -> Result<Token<'static>, Problem> {
    number::double(digits).map(Token::Double).ok_or_else(|| Problem::DoubleOverflow(digits.to_owned()))
}

/// The length of a number without a sign, and whether it has a point or an exponent; `None` if
/// there is no number here.
fn number_length(text: &str) -> Option<(usize, bool)> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(0);
    let mut length = whole;
    if bytes.get(length) == Some(&b'.') {
        let fraction = digits(length + 1);
        if whole + fraction > 0 {
            length += 1 + fraction;
        }
    }
    if length == 0 {
        return None;
    }
    if let Some(b'e' | b'E') = bytes.get(length) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let exponent = digits((length + 1 + sign).min(bytes.len()));
        if exponent > 0 {
            return Some((length + 1 + sign + exponent, true));
        }
    }
    Some((length, length > whole))
}
