//! `pgrig fill` of tables with conditions that pgrig does not understand: the server judges candidates.

use crate::support::Rig;

const TABLES: &str = "
    CREATE TABLE people (id serial PRIMARY KEY, mail text UNIQUE CHECK (mail ~ '^[^@ ]+@[a-z]+\\.[a-z]{2,3}$'));
    CREATE TABLE links (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        one int NOT NULL REFERENCES people, other int NOT NULL REFERENCES people, note text, file text,
        value text NOT NULL CONSTRAINT positive CHECK (value::int > 0),
        CONSTRAINT apart CHECK (one <> other),
        CONSTRAINT either CHECK (num_nonnulls(note, file) = 1)
    );";

fn assert_filled(version: &str) {
    let rig = Rig::new();
    let server = rig.server(version);
    server.execute(TABLES);
    let ran = rig.run("fill --all-tables --rows people=500,links=20000");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    for part in ["either", "positive", "apart", "that the server accepts under", "% of "] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    let apart = "SELECT count(*) FROM links JOIN people ON people.id = one WHERE one <> other";
    assert_eq!(server.number(apart), 20_000);
    // NULL is in the list too, once.
    assert!(server.number("SELECT count(DISTINCT mail) FROM people") >= 499);
    assert!(server.number("SELECT least(count(note), count(file)) FROM links") > 1_000);
    // Validated anew: pages pass no CHECK.
    server.execute(
        "CREATE TABLE again (LIKE links INCLUDING CONSTRAINTS); INSERT INTO again SELECT * FROM links",
    );
}

#[test]
fn conditions_are_judged_on_the_newest() {
    assert_filled("--pg-version 18");
}

#[test]
fn conditions_are_judged_on_the_oldest() {
    assert_filled("--pg-version 13");
}
