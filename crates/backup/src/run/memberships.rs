//! Memberships between roles of the original, in a scratch server.

use server::quote::identifier;

/// Statements for the memberships between roles that are there.
pub(super) fn grants(memberships: &[(String, String)], known: &[String]) -> Vec<String> {
    let are_known = |(granted, member): &&(String, String)| known.contains(granted) && known.contains(member);
    let grant = |(granted, member): &(String, String)| {
        format!("GRANT {} TO {}", identifier(granted), identifier(member))
    };
    memberships.iter().filter(are_known).map(grant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memberships_are_those_between_known_roles() {
        let of = |granted: &str, member: &str| (granted.to_owned(), member.to_owned());
        let all = [of("pg_cloud", "a"), of("pg_read_all_data", "My role"), of("a", "b")];
        let known = ["a", "My role", "pg_read_all_data"].map(str::to_owned);
        assert_eq!(grants(&all, &known), ["GRANT \"pg_read_all_data\" TO \"My role\""]);
    }
}
