//! Views, rules, policies, triggers, functions and publications of an original that depend on columns or constraints of its tables. The server
//! lets no statement drop such a column or constraint, or give the column a type. The copy of the tables lacks these objects, so the statement
//! succeeds there.

use std::collections::BTreeSet;

use connect::{ConnectError, Connection};
use server::quote::{literal, shown, shown_qualified};
use sql::Kind as Token;
use tokio_postgres::Row;

use crate::find::shown_relation;
use crate::run::rehearse::words;
use crate::script::Statement;
use crate::statement::tokens;

/// An object that depends on a relation or a part of it, or on a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dependent {
    /// Schema and name of the relation or function.
    on: (String, String),
    used: Used,
    pub(crate) object: Object,
}

/// The part of a relation that an object uses, or the function that it calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Used {
    /// The relation or its row type, and no single column.
    Relation,
    /// The column of this name.
    Column(String),
    /// The constraint of this name: a view with GROUP BY depends on the primary key.
    Constraint(String),
    /// The function with arguments of these types.
    Function(String),
}

/// A view or a function; a rule, policy or trigger of a relation; or the place of a relation in a publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) kind: Kind,
    /// Schema and name of the view or function; or of the relation to which it belongs.
    name: (String, String),
    /// The name of an object that belongs to the relation, or of the publication; the types of a function's arguments.
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
    Function,
    Procedure,
    Publication,
}

impl Kind {
    fn of(name: &str) -> Option<Self> {
        let kinds = [
            Self::View,
            Self::MaterializedView,
            Self::Rule,
            Self::Policy,
            Self::Trigger,
            Self::Function,
            Self::Procedure,
            Self::Publication,
        ];
        kinds.into_iter().find(|kind| kind.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::MaterializedView => "materialized view",
            Self::Rule => "rule",
            Self::Policy => "policy",
            Self::Trigger => "trigger",
            Self::Function => "function",
            Self::Procedure => "procedure",
            Self::Publication => "publication",
        }
    }

    fn is_view(self) -> bool {
        matches!(self, Self::View | Self::MaterializedView)
    }

    fn is_routine(self) -> bool {
        matches!(self, Self::Function | Self::Procedure)
    }

    /// Whether the words of a statement have that of the statements which make and drop it.
    fn is_in(self, words: &BTreeSet<String>) -> bool {
        let word = if self.is_view() { "view" } else { self.name() };
        words.contains(word) || self.is_routine() && words.contains("routine")
    }

    /// The server's message for a column whose type cannot change (tablecmds.c: `RememberAllDependentsForRebuilding`).
    pub(crate) fn keeps_type(self) -> &'static str {
        match self {
            Self::View | Self::MaterializedView | Self::Rule => {
                "cannot alter type of a column used by a view or rule"
            }
            Self::Policy => "cannot alter type of a column used in a policy definition",
            Self::Trigger => "cannot alter type of a column used in a trigger definition",
            Self::Function | Self::Procedure => {
                "cannot alter type of a column used by a function or procedure"
            }
            // Also of a column in the list of a publication.
            Self::Publication => "cannot alter type of a column used by a publication WHERE clause",
        }
    }
}

impl Used {
    fn of(row: &Row) -> Self {
        let (used, part): (&str, Option<String>) = (row.get("used"), row.get("part"));
        match (used, part) {
            ("column", Some(name)) => Self::Column(name),
            ("constraint", Some(name)) => Self::Constraint(name),
            ("function", Some(arguments)) => Self::Function(arguments),
            _ => Self::Relation,
        }
    }
}

impl Dependent {
    /// Whether it uses a relation, or a part of it.
    pub(crate) fn is_of(&self, relation: &(String, String)) -> bool {
        !matches!(self.used, Used::Function(_)) && self.on == *relation
    }

    /// Whether it uses this part of a relation.
    pub(crate) fn uses(&self, relation: &(String, String), part: &Used) -> bool {
        self.used == *part && self.on == *relation
    }

    /// Whether it uses a view or function.
    fn needs(&self, object: &Object) -> bool {
        let is_kind = match &self.used {
            Used::Function(arguments) => object.kind.is_routine() && object.own.as_ref() == Some(arguments),
            Used::Relation | Used::Column(_) | Used::Constraint(_) => object.kind.is_view(),
        };
        is_kind && self.on == object.name
    }
}

impl Object {
    /// For people: `policy tenant on orders`.
    pub(crate) fn shown(&self) -> String {
        let (schema, name) = &self.name;
        let relation = shown_relation(schema, name);
        let kind = self.kind.name();
        match &self.own {
            Some(arguments) if self.kind.is_routine() => format!("{kind} {relation}({arguments})"),
            Some(publication) if self.kind == Kind::Publication => format!("{kind} {}", shown(publication)),
            Some(own) => format!("{kind} {} on {relation}", shown(own)),
            None => format!("{kind} {relation}"),
        }
    }

    /// The statement that drops it in the original, and does nothing in a copy that lacks it. A publication keeps its other tables.
    pub(crate) fn drop_sql(&self) -> String {
        let (schema, name) = &self.name;
        let relation = shown_qualified(schema, name);
        let kind = self.kind.name().to_uppercase();
        match &self.own {
            Some(arguments) if self.kind.is_routine() => {
                format!("DROP {kind} IF EXISTS {relation}({arguments})")
            }
            Some(publication) if self.kind == Kind::Publication => format!(
                "DO $$ BEGIN IF EXISTS (SELECT FROM pg_publication WHERE pubname = {}) THEN ALTER PUBLICATION {} DROP TABLE {relation}; \
                 END IF; END $$",
                literal(publication),
                shown(publication)
            ),
            Some(own) => format!("DROP {kind} IF EXISTS {} ON {relation}", shown(own)),
            None => format!("DROP {kind} IF EXISTS {relation}"),
        }
    }

    /// Whether it goes with a relation that is dropped: it belongs to it, or is that view.
    pub(crate) fn goes_with(&self, relation: &(String, String)) -> bool {
        !self.kind.is_routine() && self.name == *relation
    }

    /// Whether these words of a statement name it.
    fn is_named(&self, words: &BTreeSet<String>) -> bool {
        let has = |name: &String| words.contains(&name.to_lowercase());
        let is_meant = match self.kind {
            Kind::View | Kind::MaterializedView | Kind::Function | Kind::Procedure => has(&self.name.1),
            Kind::Publication => self.own.as_ref().is_some_and(has),
            Kind::Rule | Kind::Policy | Kind::Trigger => {
                has(&self.name.1) && self.own.as_ref().is_some_and(has)
            }
        };
        self.kind.is_in(words) && is_meant
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
        let object = Object { kind, name: (row.get("schema"), row.get("name")), own: row.get("own") };
        let on = (row.get("on_schema"), row.get("on_name"));
        Some(Dependent { on, used: Used::of(row), object })
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
        for dependent in self.objects(|one| one.needs(object)) {
            self.visit(dependent, order, on_path);
        }
        order.push(object);
    }

    /// Removes objects that are dropped, with all that depend on them.
    pub(crate) fn remove(&mut self, objects: &[&'a Object]) {
        let gone = self.in_order(objects);
        let is_gone = |object: &Object| {
            gone.iter().any(|gone| *gone == object || gone.kind.is_view() && object.goes_with(&gone.name))
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
            let dropped = self.objects(|one| one.object.kind.is_in(&words));
            self.remove(&dropped);
        } else if first == "create" {
            // It takes the place of one in the original, and is in the copy.
            self.0.retain(|one| !one.object.is_named(&words));
        }
    }

    /// The objects that DROP with these words drops, the second of which tells the kind. Objects can depend on a function or a type.
    fn dropped(&self, second: &str, words: &BTreeSet<String>, cascades: bool) -> Vec<&'a Object> {
        match second {
            "view" | "materialized" | "rule" | "policy" | "trigger" | "publication" => {
                self.objects(|one| one.object.is_named(words))
            }
            "function" | "procedure" | "routine" if !cascades => {
                self.objects(|one| one.object.is_named(words))
            }
            "schema" => self.objects(|one| cascades && words.contains(&one.object.name.0.to_lowercase())),
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

    fn public(name: &str) -> (String, String) {
        ("public".to_owned(), name.to_owned())
    }

    fn dependent(on: &str, column: &str, kind: Kind, name: &str, own: Option<&str>) -> Dependent {
        let object = Object { kind, name: public(name), own: own.map(str::to_owned) };
        Dependent { on: public(on), used: Used::Column(column.to_owned()), object }
    }

    /// A view of a table, a materialized view of both, and a policy of the table.
    fn all() -> Vec<Dependent> {
        vec![
            dependent("orders", "total", Kind::View, "Open", None),
            dependent("orders", "total", Kind::MaterializedView, "counted", None),
            dependent("Open", "total", Kind::MaterializedView, "counted", None),
            dependent("orders", "tenant", Kind::Policy, "orders", Some("own")),
        ]
    }

    fn uses(one: &Dependent, column: &str) -> bool {
        one.uses(&public("orders"), &Used::Column(column.to_owned()))
    }

    #[test]
    fn objects_are_dropped_after_those_that_depend_on_them() {
        let all = all();
        let left = Left::new(&all);
        let objects = left.objects(|one| uses(one, "total"));
        let order: Vec<String> = left.in_order(&objects).iter().map(|object| object.drop_sql()).collect();
        assert_eq!(
            order,
            ["DROP MATERIALIZED VIEW IF EXISTS public.counted", "DROP VIEW IF EXISTS public.\"Open\""]
        );
        let policy = left.objects(|one| uses(one, "tenant"));
        assert_eq!(policy[0].drop_sql(), "DROP POLICY IF EXISTS own ON public.orders");
        assert_eq!(policy[0].shown(), "policy own on orders");
    }

    /// A function has the name of a table, and a view calls it.
    #[test]
    fn functions_are_dropped_after_views_and_publications_keep_their_other_tables() {
        let function = dependent("orders", "total", Kind::Function, "orders", Some("integer, text"));
        let view = Dependent {
            on: public("orders"),
            used: Used::Function("integer, text".to_owned()),
            ..dependent("orders", "total", Kind::View, "sums", None)
        };
        let all =
            [function, view, dependent("orders", "state", Kind::Publication, "orders", Some("Its news"))];
        let mut left = Left::new(&all);
        let objects = left.objects(|one| uses(one, "total"));
        let order: Vec<String> = left.in_order(&objects).iter().map(|object| object.drop_sql()).collect();
        assert_eq!(
            order,
            ["DROP VIEW IF EXISTS public.sums", "DROP FUNCTION IF EXISTS public.orders(integer, text)"]
        );
        assert_eq!(objects[0].shown(), "function orders(integer, text)");
        assert!(!objects[0].goes_with(&public("orders")));
        let publication = left.objects(|one| uses(one, "state"));
        assert_eq!(publication[0].shown(), "publication \"Its news\"");
        let drop = publication[0].drop_sql();
        assert_eq!(
            drop,
            "DO $$ BEGIN IF EXISTS (SELECT FROM pg_publication WHERE pubname = 'Its news') THEN ALTER PUBLICATION \"Its news\" \
             DROP TABLE public.orders; END IF; END $$"
        );
        left.forget(&statement(&drop));
        assert_eq!(left.objects(|_| true).len(), 2);
        left.forget(&statement("DROP ROUTINE IF EXISTS orders(int, text)"));
        assert!(left.objects(|_| true).is_empty());
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
