//! Reads names from tokens.

use crate::token::Kind;

/// The name that a token stands for: folded to lower case unless quoted. None if the token is no name.
pub fn name(kind: Kind, token: &[u8]) -> Option<Vec<u8>> {
    match kind {
        // As a server does that has an encoding of several bytes: ASCII alone.
        Kind::Word => Some(token.to_ascii_lowercase()),
        Kind::QuotedName => Some(unquoted(token)),
        _ => None,
    }
}

/// A quoted name's content.
fn unquoted(quoted: &[u8]) -> Vec<u8> {
    let has_escapes = quoted[0] != b'"';
    let content = &quoted[if has_escapes { 3 } else { 1 }..quoted.len() - 1];
    let mut name = Vec::with_capacity(content.len());
    let mut rest = content;
    while let Some((&byte, after)) = rest.split_first() {
        rest = match (byte, after) {
            (b'"', [b'"', after @ ..]) => after,
            (b'\\', [b'\\', after @ ..]) if has_escapes => after,
            (b'\\', [b'+', after @ ..]) if has_escapes => {
                if let Some(after) = unescape(after, 6, &mut name) {
                    rest = after;
                    continue;
                }
                after
            }
            (b'\\', after) if has_escapes => {
                if let Some(after) = unescape(after, 4, &mut name) {
                    rest = after;
                    continue;
                }
                after
            }
            _ => after,
        };
        name.push(byte);
    }
    name
}

/// Appends the character of so many hexadecimal digits, in UTF-8, and returns the text after them.
fn unescape<'a>(digits: &'a [u8], length: usize, name: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (digits, rest) = digits.split_at_checked(length)?;
    let code = u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
    name.extend(char::from_u32(code)?.encode_utf8(&mut [0; 4]).as_bytes());
    Some(rest)
}
