//! Statements of the schema that pgrig leaves out, because the server that measures lacks a role, a setting, an extension or a method of
//! compression; and triggers that run while it fills the tables.

use fill::{Lack, SchemaTriggers, Skipped};
use server::quote::shown;

use super::missing;
use crate::outcome::StatementOutcome;

/// Beginnings of the server's messages on missing objects that an extension may have.
const OF_EXTENSIONS: [&str; 7] =
    ["access method ", "collation ", "data type ", "function ", "operator ", "text search ", "type "];

/// The warnings about them. Names that the schema itself makes (`made`) are not told: later, the server has them.
pub(crate) fn warnings(skipped: &[Skipped], origin: &str, made: &[String]) -> Vec<String> {
    let of_lack = |one: &Skipped| {
        let names = one.names.iter().filter(|name| one.lack != Lack::Role || !made.contains(name));
        let one = Skipped { names: names.cloned().collect(), ..one.clone() };
        (!one.names.is_empty()).then(|| warning(&one, origin))
    };
    skipped.iter().filter_map(of_lack).collect()
}

/// A warning about triggers that the role may not disable.
pub(crate) fn of_triggers(triggers: &SchemaTriggers) -> Option<String> {
    let running = triggers.running();
    (!running.is_empty()).then(|| {
        format!(
            "these triggers run while pgrig fills the tables, because only a superuser may disable them: {}. If they make the fill fail, \
             connect as a superuser, or leave out --scratch",
            running.join(", ")
        )
    })
}

/// A warning with its remedy.
fn warning(skipped: &Skipped, origin: &str) -> String {
    let remedy = match skipped.lack {
        Lack::Role => {
            let creates: Vec<String> =
                skipped.names.iter().map(|name| format!("CREATE ROLE {}", shown(name))).collect();
            let roles = if creates.len() == 1 { "role" } else { "roles" };
            format!(": create the {roles} on the server that measures ({})", creates.join("; "))
        }
        Lack::Membership => {
            ": give --scratch with the URI of a superuser, or of a member of that role".to_owned()
        }
        Lack::Setting => String::new(),
        Lack::Extension => {
            ": install it on that server, or give --scratch with a server that has it".to_owned()
        }
        Lack::Compression => {
            ": to measure long values as the original stores them, give --scratch with a server that has it"
                .to_owned()
        }
    };
    skipped.sentence(origin) + &remedy
}

/// Corrects the failures of statements that name an object which the schema makes in a statement that was left out: on a server that lacks
/// nothing, they may succeed.
pub(crate) fn explain(skipped: &[Skipped], origin: &str, statements: &mut [StatementOutcome]) {
    for failed in statements.iter_mut().filter_map(|one| one.failed.as_mut()) {
        let is_missing = failed.remedy.as_deref() == Some(missing::REMEDY);
        let cause = skipped.iter().find(|one| may_make(one, &failed.message));
        if let Some(cause) = cause.filter(|_| is_missing) {
            failed.is_certain = false;
            failed.remedy = Some(warning(cause, origin));
        }
    }
}

/// Whether these statements may make the object that is missing according to the server's message.
fn may_make(skipped: &Skipped, message: &str) -> bool {
    match skipped.lack {
        // policy.c: get_relation_policy_oid.
        Lack::Role => skipped.statements.contains_key("CREATE POLICY") && message.starts_with("policy "),
        Lack::Extension => OF_EXTENSIONS.iter().any(|word| message.starts_with(word)),
        Lack::Membership | Lack::Setting | Lack::Compression => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn skipped(lack: Lack, names: &[&str], kind: &'static str) -> Skipped {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        Skipped { lack, names, statements: BTreeMap::from([(kind, 2)]) }
    }

    #[test]
    fn warnings_name_the_schema_and_remedies_that_the_verb_has() {
        let all = [
            skipped(Lack::Role, &["Reader", "app"], "OWNER TO"),
            skipped(Lack::Setting, &["of_another_release"], "SET"),
            skipped(Lack::Extension, &["vector"], "CREATE EXTENSION"),
        ];
        let told = warnings(&all, "shop.sql", &[]);
        let [roles, setting, extension] = &told[..] else { panic!("{told:?}") };
        assert_eq!(
            roles,
            "the server has no role Reader, app, so pgrig skipped 2 × OWNER TO of shop.sql: create the roles on the server that measures \
             (CREATE ROLE \"Reader\"; CREATE ROLE app)"
        );
        assert!(setting.ends_with("2 × SET of shop.sql"), "{setting}");
        assert!(extension.contains("of shop.sql: install it on that server"), "{extension}");
        // The schema makes one of the roles.
        let one = &warnings(&all, "shop.sql", &["Reader".to_owned()])[0];
        assert!(one.ends_with("create the role on the server that measures (CREATE ROLE app)"), "{one}");
        let made = ["app".to_owned(), "Reader".to_owned()];
        assert_eq!(warnings(&all[..1], "shop.sql", &made), Vec::<String>::new());
    }

    #[test]
    fn objects_of_statements_that_were_left_out() {
        let policy = "policy \"tenant\" for table \"orders\" does not exist";
        let class = "operator class \"gin_trgm_ops\" does not exist for access method \"gin\"";
        let constraint = "constraint \"c\" of relation \"orders\" does not exist";
        let policies = skipped(Lack::Role, &["app"], "CREATE POLICY");
        let owners = skipped(Lack::Role, &["app"], "OWNER TO");
        let extension = skipped(Lack::Extension, &["pg_trgm"], "CREATE EXTENSION");
        for (skipped, made) in [(&policies, Some(policy)), (&owners, None), (&extension, Some(class))] {
            for message in [policy, class, constraint] {
                assert_eq!(may_make(skipped, message), made == Some(message), "{skipped:?}: {message}");
            }
        }
    }
}
