//! Finds names in a dump that the server does not have: roles, settings, extensions and methods of compression. Statements
//! that concern only those are left out, so that a dump of another server can create its tables
//! here.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use ::sql::{Kind, Text, name};

use crate::error::FillError;
use connect::Connection;
use server::ask;
use server::quote::identifier;

/// Words after TO or FROM that are no names of roles.
const NO_ROLES: [&str; 5] = ["public", "current_user", "current_role", "session_user", "group"];
/// Words that end a list of roles.
const AFTER_ROLES: [&str; 8] = ["with", "granted", "using", "cascade", "restrict", "in", "grant", "revoke"];
/// SET commands whose next word is no setting.
const NO_SETTINGS: [&str; 8] =
    ["role", "session", "local", "transaction", "time", "constraints", "names", "schema"];

/// A script as this server can run it.
pub(crate) struct Adapted {
    /// The script without the statements that are left out; line numbers stay the same.
    pub(crate) sql: String,
    /// Statements that must be run before it.
    pub(crate) before: Vec<String>,
    /// The statements that are left out.
    pub(crate) skipped: Vec<Skipped>,
}

/// Names of one kind that the server does not have, and the statements that are left out because of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Kind of the names.
    pub lack: Lack,
    /// The names, sorted.
    pub names: Vec<String>,
    /// Numbers of the statements, by their kind for people: `OWNER TO`, `CREATE POLICY`.
    pub statements: BTreeMap<&'static str, usize>,
}

/// Kind of names that a server lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// Roles that are not there.
    Role,
    /// Roles to which pgrig's role may not give objects.
    Membership,
    /// Settings.
    Setting,
    /// Extensions.
    Extension,
    /// Methods of compression.
    Compression,
}

impl Skipped {
    /// A sentence without a remedy. `script` names the script for the user.
    pub fn sentence(&self, script: &str) -> String {
        let what = match self.lack {
            Lack::Role => "the server has no role",
            Lack::Membership => "this role may not give objects to",
            Lack::Setting => "the server has no setting",
            Lack::Extension => "the server has no extension",
            Lack::Compression => "the server has no compression of columns by",
        };
        let kinds = self.statements.iter().map(|(kind, count)| format!("{count} × {kind}"));
        let kinds: Vec<String> = kinds.collect();
        format!("{what} {}, so pgrig skipped {} of {script}", self.names.join(", "), kinds.join(", "))
    }

    /// The warning of a fill, with the remedy. `script` names the script for the user.
    pub fn of_fill(&self, script: &str) -> String {
        let remedy = match self.lack {
            Lack::Role => ": give --create-roles to create the roles",
            Lack::Membership => ": connect as a superuser, or as a member of that role",
            Lack::Setting | Lack::Extension | Lack::Compression => "",
        };
        self.sentence(script) + remedy
    }

    /// Statements that are left out because of names of one kind; none if there are none.
    fn of(lack: Lack, absent: &[String], left_out: &[&Statement]) -> Option<Self> {
        let mut names: BTreeSet<&String> = BTreeSet::new();
        let mut statements: BTreeMap<&'static str, usize> = BTreeMap::new();
        for statement in left_out {
            let is_absent = |name: &&String| absent.contains(name);
            let of_statement: Vec<&String> = lack.names(&statement.of).iter().filter(is_absent).collect();
            if !of_statement.is_empty() {
                *statements.entry(statement.kind).or_default() += 1;
            }
            names.extend(of_statement);
        }
        let names: Vec<String> = names.into_iter().cloned().collect();
        (!names.is_empty()).then_some(Self { lack, names, statements })
    }
}

impl Lack {
    /// The names of this kind.
    fn names(self, of: &Names) -> &[String] {
        match self {
            Self::Role | Self::Membership => of.roles(),
            Self::Setting => of.setting(),
            Self::Extension => of.extension(),
            Self::Compression => of.compression(),
        }
    }
}

/// A statement that names something which the server may not have.
#[derive(Debug, PartialEq)]
struct Statement {
    range: Range<usize>,
    /// Its kind for people.
    kind: &'static str,
    of: Names,
}

#[derive(Debug, PartialEq)]
enum Names {
    Roles(Vec<String>),
    Setting(String),
    Extension(String),
    Compression(String),
}

/// Adapts a script to the server. With `create_roles` missing roles are created instead.
///
/// # Errors
/// If the server cannot be asked.
pub(crate) async fn adapted(
    connection: &Connection,
    sql: &str,
    create_roles: bool,
) -> Result<Adapted, FillError> {
    let statements = statements(sql);
    let mut unchanged = Adapted { sql: sql.to_owned(), before: Vec::new(), skipped: Vec::new() };
    if statements.is_empty() {
        return Ok(unchanged);
    }
    let names = |pick: Pick| -> Vec<&str> {
        let all: BTreeSet<&str> =
            statements.iter().flat_map(|statement| pick(&statement.of)).map(String::as_str).collect();
        all.into_iter().collect()
    };
    let row = ask(
        connection,
        include_str!("absent.sql"),
        &[&names(Names::roles), &names(Names::setting), &names(Names::extension), &names(Names::compression)],
    )
    .await?;
    let absent = |column: &str| row.get::<_, Vec<String>>(column);
    let (roles, strangers) = (absent("roles"), absent("strangers"));
    if create_roles {
        unchanged.before = roles.iter().map(|role| format!("CREATE ROLE {}", identifier(role))).collect();
    }
    let missing = if create_roles { Vec::new() } else { roles };
    let (settings, extensions) = (absent("settings"), absent("extensions"));
    let compressions = absent("compressions");
    let among = |some: &[String], names: &[String]| names.iter().any(|name| some.contains(name));
    let is_out = |statement: &Statement| match &statement.of {
        Names::Roles(names) => {
            among(&missing, names) || statement.kind == "OWNER TO" && among(&strangers, names)
        }
        Names::Setting(setting) => settings.contains(setting),
        Names::Extension(extension) => extensions.contains(extension),
        Names::Compression(method) => compressions.contains(method),
    };
    let left_out: Vec<&Statement> = statements.iter().filter(|statement| is_out(statement)).collect();
    let kinds = [
        (Lack::Role, &missing),
        (Lack::Membership, &strangers),
        (Lack::Setting, &settings),
        (Lack::Extension, &extensions),
        (Lack::Compression, &compressions),
    ];
    let skipped = kinds.into_iter().filter_map(|(lack, names)| Skipped::of(lack, names, &left_out));
    unchanged.skipped = skipped.collect();
    unchanged.sql = without(sql, left_out.iter().map(|statement| &statement.range));
    Ok(unchanged)
}

/// Picks the names of one kind.
type Pick = fn(&Names) -> &[String];

/// The text with blanks instead of these parts.
fn without<'a>(sql: &str, parts: impl Iterator<Item = &'a Range<usize>>) -> String {
    let mut kept = String::with_capacity(sql.len());
    let mut at = 0;
    for part in parts {
        kept.push_str(&sql[at..part.start]);
        kept.extend(sql[part.clone()].chars().map(|character| if character == '\n' { '\n' } else { ' ' }));
        at = part.end;
    }
    kept.push_str(&sql[at..]);
    kept
}

impl Names {
    fn roles(&self) -> &[String] {
        if let Self::Roles(names) = self { names } else { &[] }
    }

    fn setting(&self) -> &[String] {
        if let Self::Setting(name) = self { std::slice::from_ref(name) } else { &[] }
    }

    fn extension(&self) -> &[String] {
        if let Self::Extension(name) = self { std::slice::from_ref(name) } else { &[] }
    }

    fn compression(&self) -> &[String] {
        if let Self::Compression(method) = self { std::slice::from_ref(method) } else { &[] }
    }
}

/// A word, a name or a sign of a statement, outside of parentheses.
#[derive(Debug)]
struct Item {
    /// The name, folded; for other items their text.
    text: String,
    is_quoted: bool,
}

impl Item {
    fn is(&self, word: &str) -> bool {
        !self.is_quoted && self.text == word
    }

    fn is_one_of(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }
}

/// The statements that name something which the server may not have.
fn statements(sql: &str) -> Vec<Statement> {
    let mut found = Vec::new();
    let (mut items, mut depth, mut at): (Vec<Item>, usize, usize) = (Vec::new(), 0, 0);
    let mut start = None;
    // The server reports a text that ends within a token.
    while let Ok(Some((kind, length))) = Text::whole(sql).from(at).token() {
        let token = &sql[at..at + length];
        match kind {
            Kind::Blank | Kind::Comment => {}
            Kind::Open => depth += 1,
            Kind::Close => depth = depth.saturating_sub(1),
            Kind::Semicolon if depth == 0 => {
                let range = start.take().unwrap_or(at)..at + length;
                found.extend(named(&items).map(|(kind, of)| Statement { range, kind, of }));
                items.clear();
            }
            _ => {
                start.get_or_insert(at);
                if depth == 0 {
                    let text = name(kind, token.as_bytes())
                        .and_then(|name| String::from_utf8(name).ok())
                        .unwrap_or_else(|| token.to_owned());
                    items.push(Item { text, is_quoted: kind == Kind::QuotedName });
                }
            }
        }
        at += length;
    }
    found
}

/// Kind and names of a statement, if it is one that can be left out.
fn named(items: &[Item]) -> Option<(&'static str, Names)> {
    let heads = |words: &[&str]| {
        words.len() <= items.len() && items.iter().zip(words).all(|(item, word)| item.is(word))
    };
    let after = |word: &str| items.iter().rposition(|item| item.is(word)).map(|at| &items[at + 1..]);
    let with_roles = |kind, roles: Vec<String>| (!roles.is_empty()).then_some((kind, Names::Roles(roles)));
    if heads(&["alter", "default", "privileges"]) {
        let of = after("role").or_else(|| after("user")).map(roles).unwrap_or_default();
        let to = after("to").or_else(|| after("from")).map(roles).unwrap_or_default();
        return with_roles("ALTER DEFAULT PRIVILEGES", of.into_iter().chain(to).collect());
    }
    if heads(&["alter"]) {
        return match items {
            [.., owner, to, role] if owner.is("owner") && to.is("to") => {
                with_roles("OWNER TO", roles(std::slice::from_ref(role)))
            }
            [.., set, compression, method] if set.is("set") && compression.is("compression") => {
                Some(("SET COMPRESSION", Names::Compression(method.text.clone())))
            }
            _ => None,
        };
    }
    if heads(&["grant"]) {
        return with_roles("GRANT", after("to").map(roles).unwrap_or_default());
    }
    if heads(&["revoke"]) {
        return with_roles("REVOKE", after("from").map(roles).unwrap_or_default());
    }
    if heads(&["create", "policy"]) {
        return with_roles("CREATE POLICY", after("to").map(roles).unwrap_or_default());
    }
    if heads(&["set"]) {
        let [_, setting, sign, ..] = items else { return None };
        let is_setting = (sign.is("=") || sign.is("to")) && !setting.is_one_of(&NO_SETTINGS);
        return is_setting.then(|| ("SET", Names::Setting(setting.text.clone())));
    }
    let extension =
        |kind, words: usize| items.get(words).map(|name| (kind, Names::Extension(name.text.clone())));
    if heads(&["create", "extension", "if", "not", "exists"]) {
        extension("CREATE EXTENSION", 5)
    } else if heads(&["create", "extension"]) {
        extension("CREATE EXTENSION", 2)
    } else if heads(&["comment", "on", "extension"]) {
        extension("COMMENT ON EXTENSION", 3)
    } else {
        None
    }
}

/// The roles that a list begins with.
fn roles(items: &[Item]) -> Vec<String> {
    items
        .iter()
        .take_while(|item| !item.is_one_of(&AFTER_ROLES))
        .filter(|item| !item.is(",") && !item.is_one_of(&NO_ROLES))
        .map(|item| item.text.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(sql: &str) -> Option<(&'static str, Names)> {
        let mut found = statements(&format!("{sql};"));
        assert!(found.len() <= 1, "{found:?}");
        found.pop().map(|statement| (statement.kind, statement.of))
    }

    #[test]
    fn roles_of_every_statement_that_gives_something_to_them() {
        let of = |names: &[&str]| Names::Roles(names.iter().map(|&name| name.to_owned()).collect());
        for (sql, kind, names) in [
            ("ALTER TABLE public.t OWNER TO app", "OWNER TO", &["app"] as &[&str]),
            (
                "alter function f(int, text default 'owner to x') owner to \"Odd \"\"Role\"",
                "OWNER TO",
                &["Odd \"Role"],
            ),
            (
                "GRANT SELECT, INSERT(a) ON TABLE t TO reader, GROUP \"Writer\" WITH GRANT OPTION",
                "GRANT",
                &["reader", "Writer"],
            ),
            ("GRANT app TO reader GRANTED BY postgres", "GRANT", &["reader"]),
            ("REVOKE ALL ON SCHEMA public FROM old_role CASCADE", "REVOKE", &["old_role"]),
            (
                "CREATE POLICY p ON t FOR SELECT TO reader, public USING (a = current_user)",
                "CREATE POLICY",
                &["reader"],
            ),
            (
                "ALTER DEFAULT PRIVILEGES FOR ROLE app IN SCHEMA s GRANT SELECT ON TABLES TO reader",
                "ALTER DEFAULT PRIVILEGES",
                &["app", "reader"],
            ),
        ] {
            let (found, roles) = only(sql).unwrap_or_else(|| panic!("{sql}"));
            assert_eq!(found, kind);
            assert_eq!(roles, of(names), "{sql}");
        }
    }

    #[test]
    fn settings_and_extensions() {
        assert_eq!(
            only("SET transaction_timeout = 0"),
            Some(("SET", Names::Setting("transaction_timeout".to_owned())))
        );
        let vector = || Names::Extension("vector".to_owned());
        assert_eq!(only("CREATE EXTENSION vector"), Some(("CREATE EXTENSION", vector())));
        assert_eq!(
            only("CREATE EXTENSION IF NOT EXISTS \"vector\" WITH SCHEMA public"),
            Some(("CREATE EXTENSION", vector()))
        );
        assert_eq!(only("COMMENT ON EXTENSION vector IS 'x'"), Some(("COMMENT ON EXTENSION", vector())));
    }

    #[test]
    fn compression_of_a_column() {
        let method = Names::Compression("lz4".to_owned());
        assert_eq!(
            only("ALTER TABLE ONLY public.t ALTER COLUMN \"set\" SET COMPRESSION lz4"),
            Some(("SET COMPRESSION", method))
        );
    }

    #[test]
    fn skipped_statements_are_counted_and_the_remedy_is_that_of_the_caller() {
        let found = statements(
            "ALTER TABLE t OWNER TO app; GRANT SELECT ON t TO bob, app; SET x = 1; GRANT app TO eve;",
        );
        let left_out: Vec<&Statement> = found.iter().collect();
        let absent = ["bob".to_owned(), "app".to_owned()];
        let skipped = Skipped::of(Lack::Role, &absent, &left_out).unwrap();
        let sentence = "the server has no role app, bob, so pgrig skipped 1 × GRANT, 1 × OWNER TO of ";
        assert_eq!(skipped.sentence("shop.sql"), format!("{sentence}shop.sql"));
        for script in ["--ddl", "the model's ddl"] {
            let remedy = "give --create-roles to create the roles";
            assert_eq!(skipped.of_fill(script), format!("{sentence}{script}: {remedy}"));
        }
        assert_eq!(Skipped::of(Lack::Extension, &absent, &left_out), None);
    }

    #[test]
    fn other_statements_stay() {
        for sql in [
            "GRANT SELECT ON t TO PUBLIC",
            "ALTER TABLE t OWNER TO current_user",
            "ALTER TABLE t RENAME TO owner",
            "ALTER TABLE t ADD COLUMN owner int",
            "SET ROLE app",
            "SET LOCAL work_mem = '1MB'",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
            "SELECT 'GRANT x TO y'",
            "CREATE TABLE set (a int)",
            "CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$ GRANT SELECT ON t TO x; $$",
        ] {
            assert_eq!(only(sql), None, "{sql}");
        }
    }

    #[test]
    fn what_is_left_out_leaves_lines_where_they_were() {
        let sql = "CREATE TABLE t (a int);\nALTER TABLE t\n  OWNER TO gone;\n-- é\nSELECT 1;";
        let found = statements(sql);
        let blank = without(sql, found.iter().map(|statement| &statement.range));
        assert_eq!(blank.matches('\n').count(), sql.matches('\n').count());
        assert!(blank.starts_with("CREATE TABLE t (a int);\n") && blank.ends_with("-- é\nSELECT 1;"));
    }
}
