//! `jsonb` (`utils/jsonb.h`, `convertJsonbValue` in `utils/adt/jsonb_util.c`), from JSON without escapes,
//! exponents and keys that come twice.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::attribute::{HEADER, long_header, pad, write_numeric};
use super::literal::decimal;
use crate::json::Json;

/// Containers in one another; the server allows many more.
const DEEPEST: u32 = 32;

/// `JB_FSCALAR`, `JB_FOBJECT`, `JB_FARRAY`: what a container's number of items goes with.
const SCALAR: u32 = 0x1000_0000;
const OBJECT: u32 = 0x2000_0000;
const ARRAY: u32 = 0x4000_0000;
/// `JENTRY_HAS_OFF`: marks an entry that holds the end of its item; other entries hold the item's
/// length.
const HAS_OFFSET: u32 = 0x8000_0000;
/// `JB_OFFSET_STRIDE`: distance of two entries that hold an end.
const STRIDE: usize = 32;
/// `VARHDRSZ` and entries are aligned to an int.
const ALIGN: u32 = 4;

#[derive(Clone)]
enum Node<'a> {
    Null,
    Bool(bool),
    Text(&'a str),
    /// A number, and how many of its digits are decimals.
    Number(i64, i16),
    /// Items of an array, or an object's keys and then their values; the header tells which, and how many.
    Container(u32, Cow<'a, [Node<'a>]>),
}

/// Appends a `jsonb` without its header. None, and anything appended, if the text cannot be read.
pub(super) fn payload(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    match parsed(text)? {
        root @ Node::Container(..) => root.write(start, out),
        scalar => Node::Container(SCALAR | ARRAY | 1, vec![scalar].into()).write(start, out),
    };
    Some(())
}

/// Appends an object without its header: the bytes of [`payload`] for its text.
pub(super) fn object(json: &Json, out: &mut Vec<u8>) {
    let tags = json.tags.map(Node::Text);
    let (price, decimals) = json.price();
    // In the order of the keys.
    let values = [
        Node::Number(json.id.into(), 0),
        Node::Text(json.name),
        Node::Container(ARRAY | 2, Cow::Borrowed(&tags)),
        Node::Number(price.into(), decimals.into()),
        Node::Bool(json.active),
    ];
    let start = out.len();
    out.extend_from_slice(&BEFORE_VALUES);
    let entries = start + size_of::<u32>() * (1 + KEYS.len());
    for (number, value) in values.iter().enumerate() {
        let before = out.len();
        let entry = value.write(start, out) | length(before, out);
        let at = entries + size_of::<u32>() * number;
        out[at..at + size_of::<u32>()].copy_from_slice(&entry.to_le_bytes());
    }
}

/// Keys of a [`Json`] by their length, then by their bytes.
const KEYS: [&str; 5] = ["id", "name", "tags", "price", "active"];

/// The bytes that are the same in every [`Json`]: the header, the entries of the keys, room for the
/// entries of the values, the keys.
static BEFORE_VALUES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut items: Vec<Node<'_>> = KEYS.map(Node::Text).to_vec();
    items.resize(2 * KEYS.len(), Node::Null);
    let mut bytes = Vec::new();
    Node::Container(OBJECT | 5, items.into()).write(0, &mut bytes);
    bytes
});

/// Whether it is JSON that can be read here.
pub(super) fn is_readable(text: &str) -> bool {
    parsed(text).is_some()
}

impl Node<'_> {
    /// Appends the node; its type as entries have it (`JENTRY_IS…`).
    fn write(&self, start: usize, out: &mut Vec<u8>) -> u32 {
        match self {
            Self::Text(text) => {
                out.extend_from_slice(text.as_bytes());
                0
            }
            Self::Number(number, decimals) => {
                pad(start, ALIGN, out);
                let header = out.len();
                out.extend([0; HEADER]);
                write_numeric((*number).into(), *decimals, *decimals, out);
                let length = out.len() - header - HEADER;
                out[header..header + HEADER].copy_from_slice(&long_header(length));
                0x1000_0000
            }
            Self::Bool(false) => 0x2000_0000,
            Self::Bool(true) => 0x3000_0000,
            Self::Null => 0x4000_0000,
            Self::Container(header, items) => {
                pad(start, ALIGN, out);
                out.extend(header.to_le_bytes());
                let entries = out.len();
                let begin = entries + size_of::<u32>() * items.len();
                out.resize(begin, 0);
                for (number, item) in items.iter().enumerate() {
                    let before = out.len();
                    let kind = item.write(start, out);
                    let entry = if number % STRIDE == 0 {
                        HAS_OFFSET | length(begin, out)
                    } else {
                        length(before, out)
                    };
                    let at = entries + size_of::<u32>() * number;
                    out[at..at + size_of::<u32>()].copy_from_slice(&(kind | entry).to_le_bytes());
                }
                0x5000_0000
            }
        }
    }
}

fn length(since: usize, out: &[u8]) -> u32 {
    u32::try_from(out.len() - since).expect("a value is below 256 MB")
}

fn parsed(text: &str) -> Option<Node<'_>> {
    let mut parser = Parser { rest: unblanked(text) };
    let node = parser.value(DEEPEST)?;
    parser.rest.is_empty().then_some(node)
}

/// The text without blanks before it.
fn unblanked(text: &str) -> &str {
    let blanks = text.bytes().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
    &text[blanks..]
}

/// Reads one thing after another, with the blanks after it.
struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn value(&mut self, depth: u32) -> Option<Node<'a>> {
        match self.rest.bytes().next()? {
            b'"' => self.string().map(Node::Text),
            b'[' => self.array(depth.checked_sub(1)?),
            b'{' => self.object(depth.checked_sub(1)?),
            b'-' | b'0'..=b'9' => self.number(),
            b'n' => self.took("null").then_some(Node::Null),
            b't' => self.took("true").then_some(Node::Bool(true)),
            b'f' => self.took("false").then_some(Node::Bool(false)),
            _ => None,
        }
    }

    fn took(&mut self, mark: &str) -> bool {
        let after = self.rest.strip_prefix(mark);
        if let Some(after) = after {
            self.rest = unblanked(after);
        }
        after.is_some()
    }

    fn string(&mut self) -> Option<&'a str> {
        let text = self.rest.strip_prefix('"')?;
        let end = text.bytes().position(|byte| byte == b'"' || byte == b'\\' || byte < b' ')?;
        let (text, rest) = text.split_at(end);
        self.rest = unblanked(rest.strip_prefix('"')?);
        Some(text)
    }

    fn number(&mut self) -> Option<Node<'a>> {
        let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
        let end = self.rest.bytes().take_while(is_part).count();
        let (number, rest) = self.rest.split_at(end);
        let digits = number.strip_prefix('-').unwrap_or(number);
        let is_padded = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
        let (value, decimals) = decimal(number)
            .filter(|_| !is_padded && digits.starts_with(|char: char| char.is_ascii_digit()))?;
        self.rest = unblanked(rest);
        Some(Node::Number(value, decimals))
    }

    fn array(&mut self, depth: u32) -> Option<Node<'a>> {
        let items = self.items(["[", "]"], |parser| parser.value(depth))?;
        Some(Node::Container(ARRAY | u32::try_from(items.len()).ok()?, items.into()))
    }

    fn object(&mut self, depth: u32) -> Option<Node<'a>> {
        let mut pairs = self.items(["{", "}"], |parser| {
            let key = parser.string()?;
            parser.took(":").then_some(())?;
            Some((key, parser.value(depth)?))
        })?;
        // `lengthCompareJsonbStringValue`: by length first.
        pairs.sort_by_key(|(key, _)| (key.len(), *key));
        let is_unique = pairs.windows(2).all(|pair| pair[0].0 != pair[1].0);
        let count = u32::try_from(pairs.len()).ok().filter(|_| is_unique)?;
        let mut items = Vec::with_capacity(2 * pairs.len());
        items.extend(pairs.iter().map(|(key, _)| Node::Text(key)));
        items.extend(pairs.into_iter().map(|(_, value)| value));
        Some(Node::Container(OBJECT | count, items.into()))
    }

    fn items<T>(
        &mut self,
        [open, close]: [&str; 2],
        item: impl Fn(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut items = Vec::new();
        self.took(open).then_some(())?;
        if self.took(close) {
            return Some(items);
        }
        loop {
            items.push(item(self)?);
            if self.took(close) {
                return Some(items);
            }
            self.took(",").then_some(())?;
        }
    }
}
