//! The rules that the rows of tables keep while the migration runs: after each statement, because it may remove those that it has
//! added.

use std::collections::{BTreeMap, BTreeSet};

use connect::ConnectError;
use server::Session;
use tokio_postgres::Row;

use crate::run::defaults;
use crate::run::rehearse::Tables;

/// A rule of a table's rows, or of the values of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// OID; 0 for a domain.
    pub(crate) table: u32,
    /// The same after a column was renamed, and of a unique index that became a constraint.
    pub(crate) id: String,
    /// The domain as SQL, if it is one of a domain.
    pub(crate) domain: Option<String>,
    /// The action of ALTER TABLE or of ALTER DOMAIN, or CREATE INDEX.
    pub(crate) action: String,
    /// The index as SQL, if it is one.
    pub(crate) index: Option<String>,
    /// Whether it is NOT NULL of a parent.
    pub(crate) is_inherited: bool,
    /// 0 NOT NULL, 1 CHECK, 2 unique index or key, 3 foreign key.
    pub(crate) kind: i32,
    /// Ascends with the creation.
    pub(crate) number: u32,
    /// The name of a constraint.
    pub(crate) name: Option<String>,
    /// The columns of the table that it concerns.
    pub(crate) columns: Vec<String>,
    /// Whether all rows keep it: a constraint that is NOT VALID holds for new ones alone.
    is_valid: bool,
    /// The place of the first statement after which all rows keep it; none if they never do.
    pub(crate) since: Option<usize>,
}

impl Rule {
    fn of(row: &Row) -> Self {
        Self {
            table: row.get("oid"),
            id: row.get("id"),
            domain: row.get("domain"),
            action: row.get("action"),
            index: row.get("index"),
            is_inherited: row.get("inherited"),
            kind: row.get("kind"),
            number: row.get("number"),
            name: row.get("name"),
            columns: row.get("columns"),
            is_valid: row.get("is_valid"),
            since: None,
        }
    }

    /// The condition of a partition's rows as a CHECK; none for a partition by hash, whose condition holds in one database alone.
    fn of_bounds(table: u32, condition: &str, columns: &[String]) -> Option<Self> {
        (!condition.contains("satisfies_hash_partition(")).then(|| Self {
            table,
            id: "bounds".to_owned(),
            domain: None,
            action: format!("CHECK ({condition})"),
            index: None,
            is_inherited: false,
            kind: 1,
            number: table,
            name: None,
            columns: columns.to_vec(),
            is_valid: true,
            since: None,
        })
    }

    /// Whether both are one rule, perhaps with other names of columns, or say the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let place = |rule: &Self| (rule.table, rule.domain.clone());
        let says = |rule: &Self| (rule.action.clone(), rule.index.clone());
        place(self) == place(other) && (self.id == other.id || says(self) == says(other))
    }
}

/// The rules at this moment, in a session with an empty `search_path`. Partitions have none that they take over from their parents, but `attached`,
/// OIDs, do.
pub(crate) async fn rules(session: &Session, attached: &[u32]) -> Result<Vec<Rule>, ConnectError> {
    let rows = session.rows(include_str!("../sql/rules.sql"), &[&attached]).await?;
    Ok(rows.iter().map(Rule::of).collect())
}

/// The rules after each statement of a migration.
#[derive(Debug)]
pub(crate) struct Rules {
    /// OIDs of the tables that were no partitions before.
    standing: Vec<u32>,
    /// By table, domain and id, each as it was last.
    seen: BTreeMap<(u32, Option<String>, String), Rule>,
    /// Columns of the partition keys, by the OID of the partition.
    keys: BTreeMap<u32, Vec<String>>,
    /// Bounds of the partitions beside a default partition, by its OID.
    beside: BTreeMap<u32, BTreeSet<String>>,
    /// Labels of the enums after each statement, by its place and the OID of the type.
    labels: BTreeMap<(usize, u32), Vec<String>>,
}

impl Rules {
    pub(crate) fn new(tables: &Tables) -> Self {
        let standing = tables.filled().map(|(oid, _)| oid).collect();
        Self {
            standing,
            seen: BTreeMap::new(),
            keys: BTreeMap::new(),
            beside: BTreeMap::new(),
            labels: BTreeMap::new(),
        }
    }

    /// Forgets them, because the migration begins anew.
    pub(crate) fn clear(&mut self) {
        self.seen.clear();
        self.keys.clear();
        self.beside.clear();
        self.labels.clear();
    }

    /// Adds the rules that a session of the migration sees after the statement at this place. Changes neither its settings nor the locks of its transaction.
    pub(crate) async fn read(
        &mut self,
        session: &Session,
        (place, is_in_transaction): (usize, bool),
    ) -> Result<(), ConnectError> {
        let (begin, end) = if is_in_transaction {
            ("SAVEPOINT pgrig_rules", "ROLLBACK TO SAVEPOINT pgrig_rules; RELEASE SAVEPOINT pgrig_rules")
        } else {
            ("BEGIN", "ROLLBACK")
        };
        session.run(begin).await?;
        session.run("SET LOCAL search_path = ''; SET LOCAL statement_timeout = 0").await?;
        session.run("SET LOCAL DateStyle = 'ISO, YMD'").await?;
        self.add(rules(session, &self.standing).await?, Some(place));
        let bounds = session.rows(include_str!("../sql/bounds.sql"), &[&self.standing]).await?;
        for row in &bounds {
            self.add_bounds(row.get("oid"), (row.get("condition"), row.get("columns")), Some(place));
        }
        let labels = "SELECT enumtypid AS oid, pg_catalog.array_agg(enumlabel::text ORDER BY enumsortorder) AS labels \
                      FROM pg_catalog.pg_enum GROUP BY 1";
        for row in session.rows(labels, &[]).await? {
            self.labels.insert((place, row.get("oid")), row.get("labels"));
        }
        for (default, beside) in defaults::beside(session).await? {
            self.beside.entry(default).or_default().extend(beside.bounds);
        }
        session.run(end).await
    }

    /// Adds the rules after the statement at this place, or after all. They take the place of earlier ones with their ids.
    pub(crate) fn add(&mut self, rules: impl IntoIterator<Item = Rule>, place: Option<usize>) {
        for rule in rules {
            let key = (rule.table, rule.domain.clone(), rule.id.clone());
            let earlier = self.seen.get(&key).and_then(|earlier| earlier.since);
            let since = earlier.or(place.filter(|_| rule.is_valid));
            self.seen.insert(key, Rule { since, ..rule });
        }
    }

    fn add_bounds(
        &mut self,
        table: u32,
        (condition, columns): (Option<&str>, Vec<String>),
        place: Option<usize>,
    ) {
        self.add(condition.and_then(|condition| Rule::of_bounds(table, condition, &columns)), place);
        self.keys.insert(table, columns);
    }

    /// All, in an order in which each follows those that it needs.
    pub(crate) fn all(&self) -> Vec<Rule> {
        let mut all: Vec<Rule> = self.seen.values().cloned().collect();
        all.sort_by_key(|rule| (rule.kind, rule.number));
        all
    }

    /// The constraints of a table: the name of each, and its columns.
    pub(crate) fn constraints(&self, table: u32) -> Vec<(String, Vec<String>)> {
        let after = self.seen.range((table, None, String::new())..).map(|(_, rule)| rule);
        let of_table = after.take_while(|rule| rule.table == table);
        of_table.filter_map(|rule| Some((rule.name.clone()?, rule.columns.clone()))).collect()
    }

    /// The foreign keys of a table that have one column: this column, and a specification of its values.
    pub(crate) fn references(&self, table: u32) -> Vec<(String, String)> {
        let of_table = self.seen.values().filter(|rule| rule.table == table);
        let of_rule = |rule: &Rule| match &rule.columns[..] {
            [column] => Some((column.clone(), reference(&rule.action)?)),
            _ => None,
        };
        of_table.filter_map(of_rule).collect()
    }

    /// The bounds that partitions beside default partitions have after any statement, by the OID of the default partition.
    pub(crate) fn beside(&self) -> &BTreeMap<u32, BTreeSet<String>> {
        &self.beside
    }

    /// The labels of an enum after the statement at this place; none if it was not there.
    pub(crate) fn labels(&self, place: usize, enumeration: u32) -> Option<&[String]> {
        self.labels.get(&(place, enumeration)).map(Vec::as_slice)
    }

    /// The columns of the partition keys that decide on the rows of a table; none if it is no default partition, and is not attached.
    pub(crate) fn keys(&self, table: u32) -> &[String] {
        self.keys.get(&table).map_or(&[][..], Vec::as_slice)
    }
}

/// The specification of the values of a foreign key, whose action this is; none if it is no foreign key, or has names in quotes.
fn reference(action: &str) -> Option<String> {
    let (_, referenced) = action.strip_prefix("FOREIGN KEY (")?.split_once(") REFERENCES ")?;
    let (table, rest) = referenced.split_once('(')?;
    let (column, _) = rest.split_once(')')?;
    let table = table.strip_prefix("public.").unwrap_or(table);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    (table.chars().all(is_plain) && column.chars().all(is_plain))
        .then(|| format!("reference({table}.{column})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(kind: i32, number: u32, action: &str) -> Rule {
        Rule {
            table: 1,
            id: format!("constraint {number}"),
            domain: None,
            action: action.to_owned(),
            index: None,
            is_inherited: false,
            kind,
            number,
            name: Some(format!("c{number}")),
            columns: vec!["a".to_owned()],
            is_valid: true,
            since: None,
        }
    }

    fn none() -> Rules {
        Rules {
            standing: Vec::new(),
            seen: BTreeMap::new(),
            keys: BTreeMap::new(),
            beside: BTreeMap::new(),
            labels: BTreeMap::new(),
        }
    }

    #[test]
    fn a_rule_is_the_same_after_its_columns_were_renamed() {
        let old = rule(1, 5, "CHECK ((a > 0))");
        assert!(old.is_same(&rule(1, 5, "CHECK ((b > 0))")));
        assert!(old.is_same(&rule(1, 6, "CHECK ((a > 0))")));
        assert!(!old.is_same(&rule(1, 6, "CHECK ((b > 0))")));
        assert!(!old.is_same(&Rule { table: 2, ..rule(1, 6, "CHECK ((a > 0))") }));
    }

    #[test]
    fn foreign_keys_follow_unique_keys_and_each_rule_is_as_it_was_last() {
        let mut rules = none();
        rules.add([rule(3, 7, "FOREIGN KEY"), rule(1, 8, "CHECK ((a > 0))")], None);
        rules.add([rule(2, 9, "UNIQUE (a)"), rule(1, 8, "CHECK ((b > 0))")], None);
        let actions: Vec<String> = rules.all().into_iter().map(|rule| rule.action).collect();
        assert_eq!(actions, ["CHECK ((b > 0))", "UNIQUE (a)", "FOREIGN KEY"]);
    }

    #[test]
    fn a_rule_holds_for_all_rows_since_it_is_valid() {
        let mut rules = none();
        let since = |rules: &Rules| rules.all()[0].since;
        rules.add([Rule { is_valid: false, ..rule(1, 8, "CHECK ((a > 0))") }], Some(0));
        assert_eq!(since(&rules), None);
        for (place, wanted) in [(Some(2), Some(2)), (Some(3), Some(2)), (None, Some(2))] {
            rules.add([rule(1, 8, "CHECK ((a > 0))")], place);
            assert_eq!(since(&rules), wanted);
        }
    }

    #[test]
    fn the_values_of_a_foreign_key_are_those_of_the_other_table() {
        for (action, wanted) in [
            ("FOREIGN KEY (a) REFERENCES public.p(id) ON DELETE CASCADE", Some("reference(p.id)")),
            ("FOREIGN KEY (a) REFERENCES s.p(id)", Some("reference(s.p.id)")),
            ("FOREIGN KEY (a) REFERENCES public.\"P q\"(id)", None),
            ("CHECK ((a > 0))", None),
        ] {
            assert_eq!(reference(action).as_deref(), wanted, "{action}");
        }
    }

    #[test]
    fn bounds_are_a_check_but_not_those_by_hash() {
        let mut rules = none();
        let columns = || vec!["at".to_owned()];
        rules.add_bounds(5, (Some("(at IS NOT NULL)"), columns()), None);
        rules.add_bounds(6, (Some("satisfies_hash_partition('1'::oid, 2, 0, at)"), columns()), None);
        rules.add_bounds(7, (None, columns()), None);
        let all = rules.all();
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].action, "CHECK ((at IS NOT NULL))");
        assert!([5, 6, 7].iter().all(|table| rules.keys(*table) == ["at"]));
    }
}
