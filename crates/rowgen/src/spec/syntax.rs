//! A specification's parts: name, parentheses, commas, quotes.

/// Column and specification of `column=specification`.
pub(super) fn column(text: &str) -> Option<(String, &str)> {
    if let Some(quoted) = text.trim_start().strip_prefix('"') {
        let end = quoted.replace("\"\"", "xx").find('"')?;
        let spec = quoted[end + 1..].trim_start().strip_prefix('=')?;
        return Some((quoted[..end].replace("\"\"", "\""), spec));
    }
    let (column, spec) = text.split_once('=')?;
    let column = column.trim();
    (!column.is_empty()).then(|| (column.to_owned(), spec))
}

/// Name and arguments of `name(argument,…)`.
pub(super) fn call(text: &str) -> Result<(&str, Vec<&str>), &'static str> {
    let text = text.trim();
    let Some((name, rest)) = text.split_once('(') else {
        return Ok((text, Vec::new()));
    };
    let inner = rest.strip_suffix(')').ok_or("the last character should be )")?;
    let arguments = if inner.trim().is_empty() { Vec::new() } else { split(inner)? };
    Ok((name.trim(), arguments))
}

/// Splits the text at commas that are neither in quotes nor in parentheses.
fn split(text: &str) -> Result<Vec<&str>, &'static str> {
    let mut parts = Vec::new();
    let (mut start, mut depth, mut quoted) = (0, 0_u32, false);
    for (position, byte) in text.bytes().enumerate() {
        match byte {
            b'\'' => quoted = !quoted,
            _ if quoted => {}
            b'(' => depth += 1,
            b')' => depth = depth.checked_sub(1).ok_or("there is a ) without a (")?,
            b',' if depth == 0 => {
                parts.push(text[start..position].trim());
                start = position + 1;
            }
            _ => {}
        }
    }
    if quoted {
        return Err("a quote is not closed");
    }
    if depth > 0 {
        return Err("a ( is not closed");
    }
    parts.push(text[start..].trim());
    Ok(parts)
}

/// A list's value, and the weight after its star.
pub(super) fn weight(argument: &str) -> (&str, Option<&str>) {
    match argument.rsplit_once('*') {
        // A star in quotes belongs to the value.
        Some((value, weight)) if !weight.contains('\'') => (value.trim(), Some(weight.trim())),
        _ => (argument, None),
    }
}

/// Without the single quotes around it, if there are any.
pub(super) fn unquoted(argument: &str) -> String {
    let quoted = argument.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    quoted.map_or_else(|| argument.to_owned(), |inner| inner.replace("''", "'"))
}
