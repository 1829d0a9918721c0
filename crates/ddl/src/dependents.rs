//! Views, rules, policies and triggers of an original that depend on columns of its tables. The server lets no statement drop such a column, or
//! change its type. The copy of the tables lacks these objects, so the statement succeeds there.

use std::collections::BTreeSet;

use connect::{ConnectError, Connection};
use server::quote::{shown, shown_qualified};
use sql::Kind as Token;
use tokio_postgres::Row;

use crate::find::shown_relation;
use crate::run::rehearse::words;
use crate::script::Statement;
use crate::statement::tokens;

/// An object that depends on a column, or on a relation of which it uses no single column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dependent {
    /// Schema and name of the relation.
    pub(crate) on: (String, String),
    pub(crate) column: Option<String>,
    pub(crate) object: Object,
}

/// A view; or a rule, policy or trigger of a relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) kind: Kind,
    /// Schema and name of the view; or of the relation to which it belongs.
    relation: (String, String),
    /// The name of what belongs to the relation.
    own: Option<String>,
}

/// Kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    View,
    MaterializedView,
    Rule,
    Policy,
    Trigger,
}

impl Kind {
    fn of(name: &str) -> Option<Self> {
        [Self::View, Self::MaterializedView, Self::Rule, Self::Policy, Self::Trigger]
            .into_iter()
            .find(|kind| kind.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::MaterializedView => "materialized view",
            Self::Rule => "rule",
            Self::Policy => "policy",
            Self::Trigger => "trigger",
        }
    }

    /// The word of the statements that make and drop it.
    fn word(self) -> &'static str {
        if self == Self::MaterializedView { "view" } else { self.name() }
    }

    /// The server's message for a column whose type cannot change (tablecmds.c: `RememberAllDependentsForRebuilding`).
    pub(crate) fn keeps_type(self) -> &'static str {
        match self {
            Self::View | Self::MaterializedView | Self::Rule => {
                "cannot alter type of a column used by a view or rule"
            }
            Self::Policy => "cannot alter type of a column used in a policy definition",
            Self::Trigger => "cannot alter type of a column used in a trigger definition",
        }
    }
}

impl Object {
    /// For people: `policy tenant on orders`.
    pub(crate) fn shown(&self) -> String {
        let (schema, name) = &self.relation;
        let relation = shown_relation(schema, name);
        let kind = self.kind.name();
        match &self.own {
            Some(own) => format!("{kind} {} on {relation}", shown(own)),
            None => format!("{kind} {relation}"),
        }
    }

    /// The statement that drops it in the original, and does nothing in a copy that lacks it.
    pub(crate) fn drop_sql(&self) -> String {
        let (schema, name) = &self.relation;
        let relation = shown_qualified(schema, name);
        let kind = self.kind.name().to_uppercase();
        match &self.own {
            Some(own) => format!("DROP {kind} IF EXISTS {} ON {relation}", shown(own)),
            None => format!("DROP {kind} IF EXISTS {relation}"),
        }
    }

    /// Whether it goes with a relation that is dropped: it belongs to it, or is that view.
    pub(crate) fn goes_with(&self, relation: &(String, String)) -> bool {
        self.relation == *relation
    }

    /// Whether these words of a statement name it.
    fn is_named(&self, words: &BTreeSet<String>) -> bool {
        let has = |name: &String| words.contains(&name.to_lowercase());
        words.contains(self.kind.word()) && has(&self.relation.1) && self.own.as_ref().is_none_or(has)
    }
}

/// All of a database.
pub(crate) async fn of_database(connection: &Connection) -> Result<Vec<Dependent>, ConnectError> {
    let rows = match connection.client.query(include_str!("sql/dependents.sql"), &[]).await {
        Ok(rows) => rows,
        Err(error) => return Err(connection.explain(error).await),
    };
    let dependent = |row: &Row| {
        let kind = Kind::of(row.get("kind"))?;
        let object = Object { kind, relation: (row.get("schema"), row.get("name")), own: row.get("own") };
        let on = (row.get("on_schema"), row.get("on_name"));
        Some(Dependent { on, column: row.get("on_column"), object })
    };
    Ok(rows.iter().filter_map(dependent).collect())
}

/// Those that the migration has not dropped so far, as far as its text shows.
pub(crate) struct Left<'a>(Vec<&'a Dependent>);

impl<'a> Left<'a> {
    pub(crate) fn new(all: &'a [Dependent]) -> Self {
        Self(all.iter().collect())
    }

    /// The objects that depend on something, each once.
    pub(crate) fn objects(&self, depends: impl Fn(&Dependent) -> bool) -> Vec<&'a Object> {
        let mut found: Vec<&'a Object> = Vec::new();
        for one in self.0.iter().filter(|one| depends(one)) {
            if !found.contains(&&one.object) {
                found.push(&one.object);
            }
        }
        found
    }

    /// These objects and all that depend on them, at any distance, in an order in which they can be dropped.
    pub(crate) fn in_order(&self, objects: &[&'a Object]) -> Vec<&'a Object> {
        let mut order = Vec::new();
        for &object in objects {
            self.visit(object, &mut order, &mut Vec::new());
        }
        order
    }

    fn visit(&self, object: &'a Object, order: &mut Vec<&'a Object>, on_path: &mut Vec<&'a Object>) {
        if order.contains(&object) || on_path.contains(&object) {
            return;
        }
        on_path.push(object);
        if object.own.is_none() {
            for dependent in self.objects(|one| one.on == object.relation) {
                self.visit(dependent, order, on_path);
            }
        }
        order.push(object);
    }

    /// Removes objects that are dropped, with all that depend on them.
    pub(crate) fn remove(&mut self, objects: &[&'a Object]) {
        let gone = self.in_order(objects);
        let is_gone = |object: &Object| {
            gone.iter().any(|gone| *gone == object || gone.own.is_none() && object.goes_with(&gone.relation))
        };
        self.0.retain(|one| !is_gone(&one.object));
    }

    /// Removes the objects that a statement drops or replaces according to its text. Code may drop all objects of a kind that it names.
    pub(crate) fn forget(&mut self, statement: &Statement) {
        let words = words(&statement.sql);
        let line = statement.in_one_line().to_lowercase();
        let mut line = line.split(' ');
        let (first, second) = (line.next().unwrap_or_default(), line.next().unwrap_or_default());
        // Of ALTER and DROP TABLE, the columns tell.
        if first == "alter" || (first, second) == ("drop", "table") {
            return;
        }
        if first == "drop" {
            let dropped = self.dropped(second, &words, cascades(statement));
            self.remove(&dropped);
        } else if words.contains("drop") {
            let dropped = self.objects(|one| words.contains(one.object.kind.word()));
            self.remove(&dropped);
        } else if first == "create" {
            // It takes the place of one in the original, and is in the copy.
            self.0.retain(|one| !one.object.is_named(&words));
        }
    }

    /// The objects that DROP with these words drops, the second of which tells the kind. Of a function or a type, objects can depend on it.
    fn dropped(&self, second: &str, words: &BTreeSet<String>, cascades: bool) -> Vec<&'a Object> {
        match second {
            "view" | "materialized" | "rule" | "policy" | "trigger" => {
                self.objects(|one| one.object.is_named(words))
            }
            "schema" => self.objects(|one| cascades && words.contains(&one.object.relation.0.to_lowercase())),
            _ => self.objects(|_| cascades),
        }
    }
}

/// Whether a statement drops all that depends on its objects. The actions of a foreign key, ON DELETE CASCADE, are not meant.
pub(crate) fn cascades(statement: &Statement) -> bool {
    let tokens = tokens(&statement.sql);
    let meant = tokens.iter().filter(|(kind, _)| *kind != Token::Comment);
    let text = meant.map(|(_, token)| token.to_lowercase()).collect::<Vec<_>>().join(" ");
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    let of_key = ["delete", "update"];
    words.iter().enumerate().any(|(at, word)| {
        *word == "cascade" && at.checked_sub(1).is_none_or(|before| !of_key.contains(&words[before]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    fn statement(sql: &str) -> Statement {
        Script::read(sql, None).unwrap().statements.remove(0)
    }

    fn dependent(on: &str, column: Option<&str>, kind: Kind, relation: &str, own: Option<&str>) -> Dependent {
        let public = |name: &str| ("public".to_owned(), name.to_owned());
        let object = Object { kind, relation: public(relation), own: own.map(str::to_owned) };
        Dependent { on: public(on), column: column.map(str::to_owned), object }
    }

    /// A view of a table, a materialized view of both, and a policy of the table.
    fn all() -> Vec<Dependent> {
        vec![
            dependent("orders", Some("total"), Kind::View, "Open", None),
            dependent("orders", Some("total"), Kind::MaterializedView, "counted", None),
            dependent("Open", Some("total"), Kind::MaterializedView, "counted", None),
            dependent("orders", Some("tenant"), Kind::Policy, "orders", Some("own")),
        ]
    }

    #[test]
    fn objects_are_dropped_after_those_that_depend_on_them() {
        let all = all();
        let left = Left::new(&all);
        let objects = left.objects(|one| one.column.as_deref() == Some("total"));
        let order: Vec<String> = left.in_order(&objects).iter().map(|object| object.drop_sql()).collect();
        assert_eq!(
            order,
            ["DROP MATERIALIZED VIEW IF EXISTS public.counted", "DROP VIEW IF EXISTS public.\"Open\""]
        );
        let policy = left.objects(|one| one.column.as_deref() == Some("tenant"));
        assert_eq!(policy[0].drop_sql(), "DROP POLICY IF EXISTS own ON public.orders");
        assert_eq!(policy[0].shown(), "policy own on orders");
    }

    #[test]
    fn objects_that_the_migration_drops_or_replaces_are_forgotten() {
        for (sql, wanted) in [
            ("ALTER TABLE orders DROP COLUMN view, DROP COLUMN rule", 3),
            ("DROP VIEW IF EXISTS other", 3),
            ("drop view if exists public.\"Open\" cascade", 1),
            ("DROP MATERIALIZED VIEW IF EXISTS counted", 2),
            ("DROP POLICY IF EXISTS own ON orders", 2),
            ("DROP POLICY IF EXISTS own ON lines", 3),
            ("CREATE OR REPLACE VIEW \"Open\" AS SELECT 1 AS one", 2),
            ("DO $$ BEGIN EXECUTE 'DROP POLICY ' || quote_ident('own'); END $$", 2),
            ("DROP SCHEMA public CASCADE", 0),
            ("DROP FUNCTION IF EXISTS tenant() CASCADE", 0),
            ("DROP FUNCTION IF EXISTS tenant()", 3),
            ("SELECT 'view'", 3),
        ] {
            let all = all();
            let mut left = Left::new(&all);
            left.forget(&statement(sql));
            assert_eq!(left.objects(|_| true).len(), wanted, "{sql}");
        }
    }

    #[test]
    fn the_cascade_of_a_foreign_key_drops_nothing() {
        for (sql, wanted) in [
            ("ALTER TABLE t DROP COLUMN a CASCADE", true),
            ("DO 'BEGIN DROP TABLE t /* all */ CASCADE; END'", true),
            ("ALTER TABLE t DROP COLUMN a, ADD FOREIGN KEY (b) REFERENCES u ON DELETE CASCADE", false),
            ("ALTER TABLE t DROP COLUMN a, ADD FOREIGN KEY (b) REFERENCES u ON UPDATE\nCASCADE", false),
            ("DROP TABLE t", false),
        ] {
            assert_eq!(cascades(&statement(sql)), wanted, "{sql}");
        }
    }
}
