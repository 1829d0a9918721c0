//! Better ways of partitioned tables, as statements: some for each partition, and those that join them.
//!
//! An index of a partitioned table cannot be built CONCURRENTLY, and a constraint of one is checked with a lock on all partitions.
//! Instead the partitions get theirs one by one; then those of the partitioned table only take them.

use crate::find::{Kind, Relations};
use crate::not_null;
use crate::parts::{Action, Create};

/// Most partitions for which statements are written.
const MOST: usize = 32;

/// A partitioned table or a partition of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// Its schema as SQL.
    pub(crate) schema: String,
    /// Schema and name as SQL.
    pub(crate) sql: String,
    /// Place of the table of which it is a partition; none for the first.
    pub(crate) parent: Option<usize>,
    /// Whether it is partitioned itself.
    pub(crate) is_partitioned: bool,
}

/// A partitioned table and its partitions, each after the one of which it is a part; nothing for other tables, and if a partition is a
/// foreign table, which has no indexes.
pub(crate) fn tree(table: u32, relations: &Relations) -> Vec<Node> {
    let mut oids = vec![table];
    let mut nodes: Vec<Node> = Vec::new();
    while let Some(oid) = oids.get(nodes.len()) {
        let Some(relation) = relations.get(*oid) else { return Vec::new() };
        let is_partitioned = match relation.kind {
            Kind::Partitioned => true,
            Kind::Table if !nodes.is_empty() => false,
            _ => return Vec::new(),
        };
        let parent =
            if nodes.is_empty() { None } else { oids.iter().position(|oid| *oid == relation.parent) };
        if is_partitioned {
            let children = relations.0.iter().filter(|(_, child)| child.parent == *oid);
            let children: Vec<u32> = children.map(|(oid, _)| *oid).collect();
            oids.extend(children);
        }
        let (schema, sql) = (relation.schema.clone(), relation.sql.clone());
        nodes.push(Node { schema, sql, parent, is_partitioned });
    }
    nodes
}

/// The statements instead of CREATE INDEX; none if there are too many partitions.
pub(crate) fn index(create: &Create<'_>, own: &str, tree: &[Node]) -> Option<Vec<String>> {
    let tree = Tree::of(create.name.unwrap_or(own), own, tree)?;
    let begin = if create.is_unique { "CREATE UNIQUE INDEX" } else { "CREATE INDEX" };
    let mut ways = Vec::new();
    for (name, node) in tree.partitioned() {
        ways.push(format!("{begin} {name} ON ONLY {} {}", node.sql, create.rest));
    }
    for (name, node) in tree.leaves() {
        ways.push(format!("{begin} CONCURRENTLY {name} ON {} {}", node.sql, create.rest));
    }
    ways.extend(tree.attach());
    Some(ways)
}

/// The statements instead of ADD CONSTRAINT; none if the action is another, or if there are too many partitions. The columns `nullable` of a
/// primary key may be NULL before it.
pub(crate) fn constraint(
    action: &Action<'_>,
    own: &str,
    tree: &[Node],
    nullable: &[String],
) -> Option<Vec<String>> {
    let (name, ways): (_, fn(&Tree<'_>, &Action<'_>) -> Vec<String>) = match action {
        Action::Key { name, .. } => (name, key),
        Action::Rule { name, .. } => (name, reference),
        Action::SetNotNull { .. } | Action::AddColumn { .. } => return None,
    };
    let tree = Tree::of(name.unwrap_or(own), own, tree)?;
    let mut all = if nullable.is_empty() { Vec::new() } else { required(&tree, own, nullable) };
    all.extend(ways(&tree, action));
    Some(all)
}

/// The statements that make columns of all leaves NOT NULL. A leaf whose column is NOT NULL already takes them, too.
fn required(tree: &Tree<'_>, own: &str, columns: &[String]) -> Vec<String> {
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let name = format!("{own}_not_null");
    let of_leaf = |(_, node): Named<'_>| {
        let alter = |action: String| format!("ALTER TABLE {} {action}", node.sql);
        not_null::by_check(&alter, &name, &columns, false)
    };
    tree.leaves().flat_map(of_leaf).collect()
}

fn key(tree: &Tree<'_>, action: &Action<'_>) -> Vec<String> {
    let Action::Key { kind, columns, rest, .. } = action else { return Vec::new() };
    let mut ways = Vec::new();
    for (name, node) in tree.leaves() {
        ways.push(format!("CREATE UNIQUE INDEX CONCURRENTLY {name} ON {} {columns}", node.sql));
    }
    for (name, node) in tree.leaves() {
        let way = format!("ALTER TABLE {} ADD CONSTRAINT {name} {kind} USING INDEX {name} {rest}", node.sql);
        ways.push(way.trim_end().to_owned());
    }
    // The deepest first: each takes the columns' NOT NULL of those below it.
    for (name, node) in tree.partitioned().rev() {
        let way = format!("ALTER TABLE ONLY {} ADD CONSTRAINT {name} {kind} {columns} {rest}", node.sql);
        ways.push(way.trim_end().to_owned());
    }
    ways.extend(tree.attach());
    ways
}

fn reference(tree: &Tree<'_>, action: &Action<'_>) -> Vec<String> {
    let Action::Rule { rule, .. } = action else { return Vec::new() };
    let first = &tree.names[0];
    let mut ways: Vec<String> = tree
        .leaves()
        .map(|(_, node)| format!("ALTER TABLE {} ADD CONSTRAINT {first} {rule} NOT VALID", node.sql))
        .collect();
    ways.extend(
        tree.leaves().map(|(_, node)| format!("ALTER TABLE {} VALIDATE CONSTRAINT {first}", node.sql)),
    );
    ways.push(format!("ALTER TABLE {} ADD CONSTRAINT {first} {rule}", tree.nodes[0].sql));
    ways
}

/// The partitions, each with the name of its index or constraint.
struct Tree<'a> {
    nodes: &'a [Node],
    names: Vec<String>,
}

type Named<'a> = (&'a str, &'a Node);

impl<'a> Tree<'a> {
    /// `first` is the name at the partitioned table; those of its partitions begin with `own`.
    fn of(first: &str, own: &str, nodes: &'a [Node]) -> Option<Self> {
        let name = |place: usize| if place == 0 { first.to_owned() } else { format!("{own}_{place}") };
        let has_leaves = nodes.iter().any(|node| !node.is_partitioned);
        (has_leaves && nodes.len() <= MOST + 1)
            .then(|| Self { nodes, names: (0..nodes.len()).map(name).collect() })
    }

    fn all(&self) -> impl DoubleEndedIterator<Item = Named<'_>> {
        self.names.iter().map(String::as_str).zip(self.nodes)
    }

    fn partitioned(&self) -> impl DoubleEndedIterator<Item = Named<'_>> {
        self.all().filter(|(_, node)| node.is_partitioned)
    }

    fn leaves(&self) -> impl DoubleEndedIterator<Item = Named<'_>> {
        self.all().filter(|(_, node)| !node.is_partitioned)
    }

    /// Joins the indexes, the deepest first.
    fn attach(&self) -> impl Iterator<Item = String> + '_ {
        let index = |place: usize| format!("{}.{}", self.nodes[place].schema, self.names[place]);
        (0..self.nodes.len()).rev().filter_map(move |place| {
            let parent = self.nodes[place].parent?;
            Some(format!("ALTER INDEX {} ATTACH PARTITION {}", index(parent), index(place)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::Parts;

    fn node(name: &str, parent: Option<usize>, is_partitioned: bool) -> Node {
        Node { schema: "s".to_owned(), sql: format!("s.{name}"), parent, is_partitioned }
    }

    fn tree() -> Vec<Node> {
        vec![
            node("t", None, true),
            node("a", Some(0), false),
            node("b", Some(0), true),
            node("c", Some(2), false),
        ]
    }

    #[test]
    fn indexes_are_built_in_the_leaves_and_joined_from_below() {
        let parts = Parts::of("CREATE UNIQUE INDEX \"I\" ON t USING btree (id, n) WHERE n > 0;");
        let ways = index(&parts.create_index().unwrap(), "own", &tree()).unwrap();
        assert_eq!(
            ways,
            [
                "CREATE UNIQUE INDEX \"I\" ON ONLY s.t USING btree (id, n) WHERE n > 0",
                "CREATE UNIQUE INDEX own_2 ON ONLY s.b USING btree (id, n) WHERE n > 0",
                "CREATE UNIQUE INDEX CONCURRENTLY own_1 ON s.a USING btree (id, n) WHERE n > 0",
                "CREATE UNIQUE INDEX CONCURRENTLY own_3 ON s.c USING btree (id, n) WHERE n > 0",
                "ALTER INDEX s.own_2 ATTACH PARTITION s.own_3",
                "ALTER INDEX s.\"I\" ATTACH PARTITION s.own_2",
                "ALTER INDEX s.\"I\" ATTACH PARTITION s.own_1",
            ]
        );
    }

    #[test]
    fn constraints_of_partitions_come_before_that_of_the_table() {
        let with = |sql: &str, nullable: &[String]| {
            constraint(&Parts::of(sql).alter_table().unwrap().action, "own", &tree(), nullable)
        };
        let of = |sql: &str| with(sql, &[]);
        let key = of("ALTER TABLE t ADD CONSTRAINT k UNIQUE (id) DEFERRABLE").unwrap();
        assert_eq!(key[0], "CREATE UNIQUE INDEX CONCURRENTLY own_1 ON s.a (id)");
        assert_eq!(key[2], "ALTER TABLE s.a ADD CONSTRAINT own_1 UNIQUE USING INDEX own_1 DEFERRABLE");
        assert_eq!(key[4], "ALTER TABLE ONLY s.b ADD CONSTRAINT own_2 UNIQUE (id) DEFERRABLE");
        assert_eq!(key[5], "ALTER TABLE ONLY s.t ADD CONSTRAINT k UNIQUE (id) DEFERRABLE");
        assert_eq!(key[8], "ALTER INDEX s.k ATTACH PARTITION s.own_1");
        let reference = of("ALTER TABLE t ADD FOREIGN KEY (u) REFERENCES u").unwrap();
        assert_eq!(reference[0], "ALTER TABLE s.a ADD CONSTRAINT own FOREIGN KEY (u) REFERENCES u NOT VALID");
        assert_eq!(reference[4], "ALTER TABLE s.t ADD CONSTRAINT own FOREIGN KEY (u) REFERENCES u");
        assert_eq!(of("ALTER TABLE t ALTER n SET NOT NULL"), None);
        let primary = with("ALTER TABLE t ADD PRIMARY KEY (id)", &["id".to_owned()]).unwrap();
        assert_eq!(
            primary[0],
            "ALTER TABLE s.a ADD CONSTRAINT own_not_null CHECK (id IS NOT NULL) NOT VALID"
        );
        assert_eq!(primary[6], "ALTER TABLE s.c ALTER COLUMN id SET NOT NULL");
        assert_eq!(primary[8], "CREATE UNIQUE INDEX CONCURRENTLY own_1 ON s.a (id)");
    }

    #[test]
    fn a_table_without_partitions_or_with_very_many_has_none() {
        let parts = Parts::of("CREATE INDEX ON t (id)");
        let create = parts.create_index().unwrap();
        assert_eq!(index(&create, "own", &tree()[..1]), None);
        let many = std::iter::once(node("t", None, true)).chain((0..100).map(|_| node("a", Some(0), false)));
        assert_eq!(index(&create, "own", &many.collect::<Vec<_>>()), None);
    }
}
