//! Connection strings, as PostgreSQL's documentation "34.1.1 Connection Strings" defines them: the
//! keyword/value form (`host=/tmp dbname='my db'`) and the URI form (`postgresql://user@host/db`).
//!
//! The parser only splits; which keywords exist is [`super::params`]' business. Its errors never quote
//! text that may be part of a password.

use super::error::ConnectError;

const URI_PREFIXES: [&str; 2] = ["postgresql://", "postgres://"];

/// Keyword and value, in the order given.
pub(super) type Pairs = Vec<(String, String)>;

/// Whether `-d`'s argument is a connection string rather than the name of a database (libpq's rule: it
/// starts like a URI or contains `=`).
pub(super) fn is_connection_string(text: &str) -> bool {
    is_uri(text) || text.contains('=')
}

/// Splits a connection string of either form.
pub(super) fn parse(text: &str) -> Result<Pairs, ConnectError> {
    if is_uri(text) { parse_uri(text) } else { parse_keywords(text) }
}

fn is_uri(text: &str) -> bool {
    URI_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
}

/// A URI of another program, as far as its scheme: `jdbc:postgresql://`. A URI may hold a password, which is not shown.
pub(super) fn foreign_scheme(text: &str) -> Option<&str> {
    if is_uri(text) {
        return None;
    }
    let before = text.split('=').next().unwrap_or_default();
    let mut schemes = URI_PREFIXES.iter().map(|prefix| prefix.trim_end_matches('/'));
    let end = match before.find("//") {
        Some(at) => at + "//".len(),
        None => schemes.find(|scheme| text.starts_with(*scheme))?.len(),
    };
    Some(&text[..end])
}

/// The URI that is meant by an address in the place of the name of a database: `127.0.0.1:5433/shop`.
pub(super) fn host_in_place_of_name(name: &str) -> Option<String> {
    if is_connection_string(name) {
        return None;
    }
    let (place, path) = name.split_once('/').map_or((name, None), |(place, path)| (place, Some(path)));
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_host_with_port =
        place.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && is_port(port));
    let is_host = place.parse::<std::net::Ipv4Addr>().is_ok() || place == "localhost";
    let path = path.filter(|path| !path.is_empty()).unwrap_or("DBNAME");
    (is_host || is_host_with_port).then(|| format!("postgresql://{place}/{path}"))
}

fn syntax(what: impl Into<String>) -> ConnectError {
    ConnectError::Syntax { what: what.into() }
}

/// A keyword and its value as a connection string has them.
pub(super) fn pair(keyword: &str, value: &str) -> String {
    format!("{keyword}='{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

// --- keyword/value -------------------------------------------------------------------------------

fn parse_keywords(text: &str) -> Result<Pairs, ConnectError> {
    let mut pairs = Pairs::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c == '=' || c.is_ascii_whitespace()).unwrap_or(rest.len());
        let keyword = &rest[..end];
        let Some(after) = rest[end..].trim_start().strip_prefix('=') else {
            return Err(missing_equals(pairs.last()));
        };
        if keyword.is_empty() {
            return Err(syntax("there is an \"=\" without a keyword before it"));
        }
        let (value, tail) = keyword_value(keyword, after.trim_start())?;
        pairs.push((keyword.to_owned(), value));
        rest = tail.trim_start();
    }
    Ok(pairs)
}

/// The word itself is not shown: it may be the second half of a password with a space in it.
fn missing_equals(previous: Option<&(String, String)>) -> ConnectError {
    let place = previous.map_or_else(
        || "at its beginning".to_owned(),
        |(keyword, _)| format!("after the value of \"{keyword}\""),
    );
    syntax(format!(
        "missing \"=\" {place}; write keyword=value, and quote a value with spaces: keyword='a value'"
    ))
}

/// One value, and the text after it. A backslash makes the next character literal, quoted or not.
fn keyword_value<'t>(keyword: &str, text: &'t str) -> Result<(String, &'t str), ConnectError> {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut chars = text.char_indices().skip(usize::from(quoted));
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.extend(chars.next().map(|(_, literal)| literal)),
            '\'' if quoted => return Ok((value, &text[at + 1..])),
            c if !quoted && c.is_ascii_whitespace() => return Ok((value, &text[at..])),
            c => value.push(c),
        }
    }
    if quoted {
        return Err(syntax(format!("the quoted value of \"{keyword}\" has no closing quote")));
    }
    Ok((value, ""))
}

// --- URI -----------------------------------------------------------------------------------------

fn parse_uri(text: &str) -> Result<Pairs, ConnectError> {
    let rest = URI_PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text);
    let mut pairs = Pairs::new();
    let rest = uri_credentials(rest, &mut pairs)?;
    let rest = uri_hosts(rest, &mut pairs)?;
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    if let Some(dbname) = path.strip_prefix('/').filter(|name| !name.is_empty()) {
        pairs.push(("dbname".into(), decode("the database name", dbname)?));
    }
    for parameter in query.split('&').filter(|p| !p.is_empty()) {
        pairs.push(uri_parameter(parameter)?);
    }
    Ok(pairs)
}

/// `user[:password]@`, if the first of `@` and `/` is an `@`.
fn uri_credentials<'t>(text: &'t str, pairs: &mut Pairs) -> Result<&'t str, ConnectError> {
    let Some(at) = text.find(['@', '/']).filter(|&at| text[at..].starts_with('@')) else {
        return Ok(text);
    };
    let (user, password) = text[..at].split_once(':').unwrap_or((&text[..at], ""));
    for (keyword, value) in [("user", user), ("password", password)] {
        if !value.is_empty() {
            pairs.push((keyword.into(), decode(&format!("the {keyword}"), value)?));
        }
    }
    Ok(&text[at + 1..])
}

/// `host[:port],…` up to the path or the query, as the two comma-separated lists libpq uses.
fn uri_hosts<'t>(text: &'t str, pairs: &mut Pairs) -> Result<&'t str, ConnectError> {
    let end = text.find(['/', '?']).unwrap_or(text.len());
    let (list, rest) = text.split_at(end);
    // A raw @ here, or after a "port" that is none, is a password's: showing the host would show it.
    if list.contains('@') {
        return Err(unencoded());
    }
    let (mut hosts, mut ports) = (Vec::new(), Vec::new());
    for entry in list.split(',') {
        let (host, port) = uri_host(entry)?;
        if rest.contains('@') && !port.bytes().all(|b| b.is_ascii_digit()) {
            return Err(unencoded());
        }
        hosts.push(decode("the host", host)?);
        ports.push(decode("the port", port)?);
    }
    for (keyword, values) in [("host", hosts), ("port", ports)] {
        if values.iter().any(|v| !v.is_empty()) {
            pairs.push((keyword.into(), values.join(",")));
        }
    }
    Ok(rest)
}

fn unencoded() -> ConnectError {
    syntax(
        "the URI's user or password contains a character that is reserved in URIs; write @ as %40, / as %2F, : as \
         %3A and % as %25",
    )
}

/// One `host:port`; an IPv6 address stands in brackets.
fn uri_host(entry: &str) -> Result<(&str, &str), ConnectError> {
    let Some(bracketed) = entry.strip_prefix('[') else {
        return Ok(entry.split_once(':').unwrap_or((entry, "")));
    };
    let (address, rest) =
        bracketed.split_once(']').ok_or_else(|| syntax("the URI's IPv6 address has no closing \"]\""))?;
    match rest.strip_prefix(':') {
        _ if address.is_empty() => Err(syntax("the URI's IPv6 address is empty")),
        Some(port) => Ok((address, port)),
        None if rest.is_empty() => Ok((address, "")),
        None => Err(syntax("after the URI's \"[address]\" only \":port\" may follow")),
    }
}

fn uri_parameter(parameter: &str) -> Result<(String, String), ConnectError> {
    let (keyword, value) =
        parameter.split_once('=').ok_or_else(|| syntax("a parameter after the URI's \"?\" has no \"=\""))?;
    let keyword = decode("a parameter's name", keyword)?;
    if value.contains('=') {
        return Err(syntax(format!("the URI's parameter \"{keyword}\" has a second \"=\"; write it as %3D")));
    }
    let value = decode(&format!("the parameter \"{keyword}\""), value)?;
    // JDBC's spelling, which libpq accepts too.
    if keyword == "ssl" && value == "true" {
        return Ok(("sslmode".into(), "require".into()));
    }
    Ok((keyword, value))
}

/// Percent-decoding. `what` names the part in errors; its text is not shown.
fn decode(what: &str, text: &str) -> Result<String, ConnectError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let code = tail
            .get(..2)
            .filter(|hex| hex.iter().all(u8::is_ascii_hexdigit))
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok())
            .ok_or_else(|| {
                syntax(format!("{what} has a \"%\" without two hexadecimal digits; write % as %25"))
            })?;
        if code == 0 {
            return Err(syntax(format!("{what} contains %00")));
        }
        bytes.push(code);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).map_err(|_| syntax(format!("{what} is not UTF-8 once percent-decoded")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(list: &[(&str, &str)]) -> Pairs {
        list.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect()
    }

    #[test]
    fn documented_strings() {
        let cases: &[(&str, &[(&str, &str)])] = &[
            (
                "host=localhost port=5432 dbname=mydb connect_timeout=10",
                &[("host", "localhost"), ("port", "5432"), ("dbname", "mydb"), ("connect_timeout", "10")],
            ),
            ("", &[]),
            ("  host = a\tport= 1 ", &[("host", "a"), ("port", "1")]),
            ("password='it\\'s' user=a\\ b", &[("password", "it's"), ("user", "a b")]),
            ("dbname='' host=x", &[("dbname", ""), ("host", "x")]),
            ("postgresql://", &[]),
            ("postgresql://localhost", &[("host", "localhost")]),
            ("postgresql://localhost:5433", &[("host", "localhost"), ("port", "5433")]),
            ("postgresql://localhost/mydb", &[("host", "localhost"), ("dbname", "mydb")]),
            ("postgresql://user@localhost", &[("user", "user"), ("host", "localhost")]),
            (
                "postgresql://user:secret@localhost",
                &[("user", "user"), ("password", "secret"), ("host", "localhost")],
            ),
            (
                "postgresql://other@localhost/otherdb?connect_timeout=10&application_name=myapp",
                &[
                    ("user", "other"),
                    ("host", "localhost"),
                    ("dbname", "otherdb"),
                    ("connect_timeout", "10"),
                    ("application_name", "myapp"),
                ],
            ),
            (
                "postgresql://host1:123,host2:456/somedb?target_session_attrs=any&application_name=myapp",
                &[
                    ("host", "host1,host2"),
                    ("port", "123,456"),
                    ("dbname", "somedb"),
                    ("target_session_attrs", "any"),
                    ("application_name", "myapp"),
                ],
            ),
            (
                "postgresql://user@localhost:5433/mydb?options=-c%20synchronous_commit%3Doff",
                &[
                    ("user", "user"),
                    ("host", "localhost"),
                    ("port", "5433"),
                    ("dbname", "mydb"),
                    ("options", "-c synchronous_commit=off"),
                ],
            ),
            (
                "postgresql:///mydb?host=localhost&port=5433",
                &[("dbname", "mydb"), ("host", "localhost"), ("port", "5433")],
            ),
            ("postgresql://[2001:db8::1234]/database", &[("host", "2001:db8::1234"), ("dbname", "database")]),
            ("postgres://[::1]:5/", &[("host", "::1"), ("port", "5")]),
            (
                "postgresql:///dbname?host=/var/lib/postgresql",
                &[("dbname", "dbname"), ("host", "/var/lib/postgresql")],
            ),
            (
                "postgresql://%2Fvar%2Flib%2Fpostgresql/dbname",
                &[("host", "/var/lib/postgresql"), ("dbname", "dbname")],
            ),
            (
                "postgres://u:p%40ss@h?ssl=true",
                &[("user", "u"), ("password", "p@ss"), ("host", "h"), ("sslmode", "require")],
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text).unwrap(), pairs(expected), "{text}");
        }
    }

    #[test]
    fn a_password_is_split_off() {
        for (text, told, password) in [
            ("postgresql://r:hunter%402pw@/db?host=/tmp", "user='r' dbname='db' host='/tmp'", "hunter@2pw"),
            ("host=h user=r password='a \\' b' dbname=db", "host='h' user='r' dbname='db'", "a ' b"),
            ("postgres://h/db?pass%77ord=p%20w", "host='h' dbname='db'", "p w"),
            ("password=a dbname=d password=b", "dbname='d'", "b"),
        ] {
            let split = crate::split_password(text).unwrap();
            assert_eq!(split, Some((told.to_owned(), password.to_owned())), "{text}");
        }
        for text in ["db", "postgresql://r@h/db", "host=h dbname=db", ""] {
            assert_eq!(crate::split_password(text).unwrap(), None, "{text}");
        }
        assert!(crate::split_password("postgres://u:secret%zz@h").is_err());
    }

    #[test]
    fn errors_say_what_and_never_show_a_password() {
        let cases = [
            ("host", "missing \"=\" at its beginning"),
            ("host=a password=top secret", "after the value of \"password\""),
            ("password='secret", "\"password\" has no closing quote"),
            ("=secret", "without a keyword"),
            ("postgres://u:secret%zz@h", "the password has a \"%\""),
            ("postgres://u:secret%00@h", "%00"),
            ("postgres://u:se@cret@h", "write @ as %40"),
            ("postgres://u:secret/x@h", "/ as %2F"),
            ("postgres://[::1/db", "closing"),
            ("postgres://[]/db", "empty"),
            ("postgres://[::1]x/db", "only \":port\""),
            ("postgres://h?secret", "no \"=\""),
            ("postgres://h?options=a=secret", "second \"=\""),
        ];
        for (text, expected) in cases {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
            assert!(!message.contains("secret") && !message.contains("cret@"), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn quoted_values_come_back(list in prop::collection::vec(("[a-z_]{1,12}", any::<String>()), 0..6)) {
            let text: Vec<String> = list.iter().map(|(k, v)| pair(k, v)).collect();
            prop_assert_eq!(parse(&text.join(" ")).unwrap(), list);
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in any::<String>(), tail in any::<String>()) {
            let _ = parse(&text);
            let _ = parse(&format!("postgres://{tail}"));
        }
    }
}
