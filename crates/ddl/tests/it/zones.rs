//! Changes between timestamp and timestamptz, whose work may depend on the time zone.

use ddl::Amount;
use ddl::find::Class;

use crate::support::{Warned, classes, measured_by, request, server};

const EVENTS: &str = "CREATE TABLE events (id int PRIMARY KEY, at timestamp, until timestamptz);";

#[test]
fn no_time_zone_is_asked_for_where_the_table_is_rewritten_in_each() {
    let server = server(18);
    server.sql("ALTER SYSTEM SET timezone = 'Etc/UTC'");
    server.sql("SELECT pg_reload_conf()");
    for (change, class, is_warned) in [
        ("ALTER at TYPE timestamptz", Class::CatalogOnly, true),
        ("ALTER at TYPE timestamptz USING at::timestamptz", Class::CatalogOnly, true),
        ("ALTER at TYPE timestamptz USING at AT TIME ZONE 'UTC'", Class::Rewrite, false),
        ("ALTER until TYPE timestamp USING until AT TIME ZONE 'UTC'", Class::Rewrite, false),
        // The other column needs a rewrite anyway.
        ("ALTER at TYPE timestamptz, ALTER id TYPE bigint", Class::Rewrite, false),
    ] {
        let mut warned = Warned::default();
        let request = request(EVENTS, &format!("ALTER TABLE events {change}"), Amount::Rows(100));
        let outcome = measured_by(&server, &request, &mut warned).unwrap();
        assert_eq!(classes(&outcome), [Some(class)], "{change}");
        let warnings = warned.0.join("\n");
        assert_eq!(warnings.contains("between timestamp and timestamptz"), is_warned, "{change}: {warnings}");
        let untimed = outcome.statements[0].untimed().map(|untimed| untimed.reason());
        assert_eq!(untimed.is_some_and(|why| why.contains("(events.at)")), is_warned, "{change}");
    }
}
