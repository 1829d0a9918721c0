//! Names of tables in statements.

use server::quote;

use crate::script::tokens;

/// A name as `to_regclass` takes it; none if it is of another database, or is no name: there it raises an error, which would end the
/// transaction of the migration (namespace.c: RangeVarGetRelidExtended).
pub(crate) fn within(name: &str, database: &str) -> Option<String> {
    let parts = tokens(name).into_iter().filter_map(|(kind, token)| sql::name(kind, token.as_bytes()));
    let parts: Vec<String> = parts.map(String::from_utf8).collect::<Result<_, _>>().ok()?;
    let own = match &parts[..] {
        own @ ([_] | [_, _]) => own,
        [first, own @ ..] if own.len() == 2 && first == database => own,
        _ => return None,
    };
    let is_name = own.iter().all(|part| !part.is_empty());
    is_name.then(|| own.iter().map(|part| quote::identifier(part)).collect::<Vec<_>>().join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_server_would_refuse_are_none() {
        for (name, wanted) in [
            ("Orders", Some("\"orders\"")),
            ("s /* the */ . \"T x\"", Some("\"s\".\"T x\"")),
            ("Shop.public.orders", Some("\"public\".\"orders\"")),
            ("elsewhere.public.orders", None),
            ("shop.a.b.c", None),
            ("\"\"", None),
            ("", None),
        ] {
            assert_eq!(within(name, "shop").as_deref(), wanted, "{name}");
        }
    }
}
