//! Better ways of partitioned tables, as statements: some for each partition, and those that join them.
//!
//! An index of a partitioned table cannot be built CONCURRENTLY, and a constraint of one is checked with a lock on all partitions.
//! Instead the partitions get theirs one by one; then those of the partitioned table only take them.

use crate::find::{Kind, Relations};
use crate::not_null;
use crate::objects::{Object, ObjectKind, Objects};
use crate::parts::{Action, Create};

/// Most partitions for which statements are written.
const MOST: usize = 32;

/// A partitioned table or a partition of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) oid: u32,
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
    while let Some(&oid) = oids.get(nodes.len()) {
        let Some(relation) = relations.get(oid) else { return Vec::new() };
        let is_partitioned = match relation.kind {
            Kind::Partitioned => true,
            Kind::Table if !nodes.is_empty() => false,
            _ => return Vec::new(),
        };
        let parent =
            if nodes.is_empty() { None } else { oids.iter().position(|oid| *oid == relation.parent) };
        if is_partitioned {
            let children = relations.0.iter().filter(|(_, child)| child.parent == oid);
            let children: Vec<u32> = children.map(|(oid, _)| *oid).collect();
            oids.extend(children);
        }
        let (schema, sql) = (relation.schema.clone(), relation.sql.clone());
        nodes.push(Node { oid, schema, sql, parent, is_partitioned });
    }
    nodes
}

/// The statements instead of CREATE INDEX; none if there are too many partitions, or a name is not known.
pub(crate) fn index(create: &Create<'_>, objects: &Objects, tree: &[Node]) -> Option<Vec<String>> {
    let tree = Tree::of(ObjectKind::Index, objects, tree)?;
    let begin = if create.is_unique { "CREATE UNIQUE INDEX" } else { "CREATE INDEX" };
    let mut ways = Vec::new();
    for (index, node) in tree.partitioned() {
        ways.push(format!("{begin} {} ON ONLY {} {}", index.sql(), node.sql, create.rest));
    }
    for (index, node) in tree.leaves() {
        ways.push(format!("{begin} CONCURRENTLY {} ON {} {}", index.sql(), node.sql, create.rest));
    }
    ways.extend(tree.attach());
    Some(ways)
}

/// The statements instead of ADD CONSTRAINT; none if the action is another, if there are too many partitions, or if a name is not known. The
/// columns `nullable` of a primary key may be NULL before it. `own` begins the names of constraints that are there for a while.
pub(crate) fn constraint(
    action: &Action<'_>,
    (objects, tree): (&Objects, &[Node]),
    nullable: &[String],
    (own, version): (&str, u32),
) -> Option<Vec<String>> {
    let (kind, ways): (_, fn(&Tree<'_>, &Action<'_>) -> Vec<String>) = match action {
        Action::Key { .. } => (ObjectKind::Key, key),
        Action::Rule { .. } => (ObjectKind::Reference, reference),
        Action::SetNotNull { .. } | Action::AddColumn { .. } => return None,
    };
    let tree = Tree::of(kind, objects, tree)?;
    let mut all =
        if nullable.is_empty() { Vec::new() } else { required(&tree, objects, nullable, (own, version))? };
    all.extend(ways(&tree, action));
    Some(all)
}

/// The statements that make columns of all partitions NOT NULL, before those of the key. Up to PostgreSQL 17, a leaf whose column is NOT NULL
/// already takes them, too.
fn required(
    tree: &Tree<'_>,
    objects: &Objects,
    columns: &[String],
    (own, version): (&str, u32),
) -> Option<Vec<String>> {
    let mut ways = Vec::new();
    for node in tree.nodes.iter().filter(|node| !node.is_partitioned) {
        let alter = |action: String| format!("ALTER TABLE {} {action}", node.sql);
        ways.extend(not_null::of_key(&alter, (objects, node.oid), own, columns, (false, version))?);
    }
    let table = tree.nodes.first()?;
    let alter = |action: String| format!("ALTER TABLE {} {action}", table.sql);
    ways.extend(not_null::of_partitioned(&alter, (objects, table.oid), columns, version)?);
    Some(ways)
}

fn key(tree: &Tree<'_>, action: &Action<'_>) -> Vec<String> {
    let Action::Key { kind, columns, rest, .. } = action else { return Vec::new() };
    let mut ways = Vec::new();
    for (key, node) in tree.leaves() {
        ways.push(format!("CREATE UNIQUE INDEX CONCURRENTLY {} ON {} {columns}", key.sql(), node.sql));
    }
    for (key, node) in tree.leaves() {
        let name = key.sql();
        let way = format!("ALTER TABLE {} ADD CONSTRAINT {name} {kind} USING INDEX {name} {rest}", node.sql);
        ways.push(way.trim_end().to_owned());
    }
    // The deepest first: each takes the columns' NOT NULL of those below it.
    for (key, node) in tree.partitioned().rev() {
        let name = key.sql();
        let way = format!("ALTER TABLE ONLY {} ADD CONSTRAINT {name} {kind} {columns} {rest}", node.sql);
        ways.push(way.trim_end().to_owned());
    }
    ways.extend(tree.attach());
    ways
}

fn reference(tree: &Tree<'_>, action: &Action<'_>) -> Vec<String> {
    let Action::Rule { rule, .. } = action else { return Vec::new() };
    let add =
        |(key, node): Named<'_>| format!("ALTER TABLE {} ADD CONSTRAINT {} {rule}", node.sql, key.sql());
    let mut ways: Vec<String> = tree.leaves().map(|leaf| format!("{} NOT VALID", add(leaf))).collect();
    let validate =
        |(key, node): Named<'_>| format!("ALTER TABLE {} VALIDATE CONSTRAINT {}", node.sql, key.sql());
    ways.extend(tree.leaves().map(validate));
    // The first is that of the table itself.
    ways.extend(tree.made().take(1).map(add));
    ways
}

/// The partitions, each with its index or constraint.
struct Tree<'a> {
    nodes: &'a [Node],
    objects: Vec<&'a Object>,
}

type Named<'a> = (&'a Object, &'a Node);

impl<'a> Tree<'a> {
    fn of(kind: ObjectKind, objects: &'a Objects, nodes: &'a [Node]) -> Option<Self> {
        let has_leaves = nodes.iter().any(|node| !node.is_partitioned);
        if !has_leaves || nodes.len() > MOST + 1 {
            return None;
        }
        Some(Self { nodes, objects: objects.of_tree(kind, nodes)? })
    }

    /// Without those whose index or constraint was there before: the statement takes it as it is.
    fn made(&self) -> impl DoubleEndedIterator<Item = Named<'a>> {
        let all = self.objects.iter().copied().zip(self.nodes);
        all.filter(|(object, _)| object.is_new)
    }

    fn partitioned(&self) -> impl DoubleEndedIterator<Item = Named<'a>> {
        self.made().filter(|(_, node)| node.is_partitioned)
    }

    fn leaves(&self) -> impl DoubleEndedIterator<Item = Named<'a>> {
        self.made().filter(|(_, node)| !node.is_partitioned)
    }

    /// Joins the indexes, the deepest first. Those of an index that was there before are joined already.
    fn attach(&self) -> impl Iterator<Item = String> {
        let index = |place: usize| format!("{}.{}", self.nodes[place].schema, self.objects[place].sql());
        (0..self.nodes.len()).rev().filter_map(move |place| {
            let parent = self.nodes[place].parent?;
            let (whole, part) = (index(parent), index(place));
            self.objects[parent].is_new.then(|| format!("ALTER INDEX {whole} ATTACH PARTITION {part}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::tests::{made, not_null, of_table};
    use crate::parts::Parts;

    fn node(oid: u32, name: &str, parent: Option<usize>, is_partitioned: bool) -> Node {
        Node { oid, schema: "s".to_owned(), sql: format!("s.{name}"), parent, is_partitioned }
    }

    fn tree() -> Vec<Node> {
        vec![
            node(1, "t", None, true),
            node(2, "a", Some(0), false),
            node(3, "b", Some(0), true),
            node(4, "c", Some(2), false),
        ]
    }

    /// An object of each table, with these names.
    fn objects(kind: ObjectKind, names: [&str; 4]) -> Vec<Object> {
        let parents = [0, 11, 11, 13];
        let of = |((name, parent), table): ((&str, u32), u32)| Object {
            parent,
            ..made(kind, 10 + table, table, name)
        };
        names.into_iter().zip(parents).zip(1..).map(of).collect()
    }

    #[test]
    fn indexes_are_built_in_the_leaves_and_joined_from_below() {
        let parts = Parts::of("CREATE UNIQUE INDEX \"I\" ON t USING btree (id, n) WHERE n > 0;");
        let objects = objects(ObjectKind::Index, ["I", "a_id_n_idx", "b_id_n_idx", "c_id_n_idx1"]);
        let ways = index(&parts.create_index().unwrap(), &of_table(&objects), &tree()).unwrap();
        assert_eq!(
            ways,
            [
                "CREATE UNIQUE INDEX \"I\" ON ONLY s.t USING btree (id, n) WHERE n > 0",
                "CREATE UNIQUE INDEX b_id_n_idx ON ONLY s.b USING btree (id, n) WHERE n > 0",
                "CREATE UNIQUE INDEX CONCURRENTLY a_id_n_idx ON s.a USING btree (id, n) WHERE n > 0",
                "CREATE UNIQUE INDEX CONCURRENTLY c_id_n_idx1 ON s.c USING btree (id, n) WHERE n > 0",
                "ALTER INDEX s.b_id_n_idx ATTACH PARTITION s.c_id_n_idx1",
                "ALTER INDEX s.\"I\" ATTACH PARTITION s.b_id_n_idx",
                "ALTER INDEX s.\"I\" ATTACH PARTITION s.a_id_n_idx",
            ]
        );
    }

    #[test]
    fn an_index_that_a_partition_has_already_is_only_joined() {
        let parts = Parts::of("CREATE INDEX ON t (n)");
        let mut objects = objects(ObjectKind::Index, ["t_n_idx", "a_n_idx", "of_b", "of_c"]);
        objects[2].is_new = false;
        objects[3].is_new = false;
        let ways = index(&parts.create_index().unwrap(), &of_table(&objects), &tree()).unwrap();
        assert_eq!(
            ways,
            [
                "CREATE INDEX t_n_idx ON ONLY s.t (n)",
                "CREATE INDEX CONCURRENTLY a_n_idx ON s.a (n)",
                "ALTER INDEX s.t_n_idx ATTACH PARTITION s.of_b",
                "ALTER INDEX s.t_n_idx ATTACH PARTITION s.a_n_idx",
            ]
        );
    }

    #[test]
    fn constraints_of_partitions_come_before_that_of_the_table() {
        let with = |sql: &str, objects: &[Object], nullable: &[String], version| {
            let action = Parts::of(sql).alter_table().unwrap().action;
            constraint(&action, (&of_table(objects), &tree()), nullable, ("own", version))
        };
        let keys = objects(ObjectKind::Key, ["k", "a_id_key", "b_id_key", "c_id_key"]);
        let key = with("ALTER TABLE t ADD CONSTRAINT k UNIQUE (id) DEFERRABLE", &keys, &[], 180_000).unwrap();
        assert_eq!(key[0], "CREATE UNIQUE INDEX CONCURRENTLY a_id_key ON s.a (id)");
        assert_eq!(key[2], "ALTER TABLE s.a ADD CONSTRAINT a_id_key UNIQUE USING INDEX a_id_key DEFERRABLE");
        assert_eq!(key[4], "ALTER TABLE ONLY s.b ADD CONSTRAINT b_id_key UNIQUE (id) DEFERRABLE");
        assert_eq!(key[5], "ALTER TABLE ONLY s.t ADD CONSTRAINT k UNIQUE (id) DEFERRABLE");
        assert_eq!(key[8], "ALTER INDEX s.k ATTACH PARTITION s.a_id_key");
        let references = objects(ObjectKind::Reference, ["t_u_fkey", "t_u_fkey", "t_u_fkey", "c_u_fkey"]);
        let sql = "ALTER TABLE t ADD FOREIGN KEY (u) REFERENCES u";
        let reference = with(sql, &references, &[], 180_000).unwrap();
        assert_eq!(
            reference[0],
            "ALTER TABLE s.a ADD CONSTRAINT t_u_fkey FOREIGN KEY (u) REFERENCES u NOT VALID"
        );
        assert_eq!(reference[3], "ALTER TABLE s.c VALIDATE CONSTRAINT c_u_fkey");
        assert_eq!(reference[4], "ALTER TABLE s.t ADD CONSTRAINT t_u_fkey FOREIGN KEY (u) REFERENCES u");
        assert_eq!(with(sql, &keys, &[], 180_000), None);
        assert_eq!(with("ALTER TABLE t ALTER n SET NOT NULL", &keys, &[], 180_000), None);
    }

    #[test]
    fn columns_of_a_primary_key_are_not_null_before_it() {
        let sql = "ALTER TABLE t ADD PRIMARY KEY (id)";
        let mut all = objects(ObjectKind::Key, ["t_pkey", "a_pkey", "b_pkey", "c_pkey"]);
        all.extend((1..=4).map(|table| not_null(20 + table, table, "id", "t_id_not_null")));
        let of = |version| {
            let action = Parts::of(sql).alter_table().unwrap().action;
            let nullable = ["id".to_owned()];
            constraint(&action, (&of_table(&all), &tree()), &nullable, ("own", version)).unwrap()
        };
        let checked = of(170_000);
        assert_eq!(
            checked[0],
            "ALTER TABLE s.a ADD CONSTRAINT own_not_null CHECK (id IS NOT NULL) NOT VALID"
        );
        assert_eq!(checked[6], "ALTER TABLE s.c ALTER COLUMN id SET NOT NULL");
        assert_eq!(checked[8], "CREATE UNIQUE INDEX CONCURRENTLY a_pkey ON s.a (id)");
        assert_eq!(
            of(180_000)[..6],
            [
                "ALTER TABLE s.a ADD CONSTRAINT t_id_not_null NOT NULL id NOT VALID",
                "ALTER TABLE s.a VALIDATE CONSTRAINT t_id_not_null",
                "ALTER TABLE s.c ADD CONSTRAINT t_id_not_null NOT NULL id NOT VALID",
                "ALTER TABLE s.c VALIDATE CONSTRAINT t_id_not_null",
                "ALTER TABLE s.t ADD CONSTRAINT t_id_not_null NOT NULL id",
                "CREATE UNIQUE INDEX CONCURRENTLY a_pkey ON s.a (id)",
            ]
        );
    }

    #[test]
    fn a_table_without_partitions_or_with_very_many_has_none() {
        let parts = Parts::of("CREATE INDEX ON t (id)");
        let create = parts.create_index().unwrap();
        let mut all = objects(ObjectKind::Index, ["t_id_idx", "a_id_idx", "b_id_idx", "c_id_idx"]);
        assert_eq!(index(&create, &of_table(&all), &tree()[..1]), None);
        let leaves = 2..100;
        all.truncate(1);
        all.extend(
            leaves
                .clone()
                .map(|table| Object { parent: 11, ..made(ObjectKind::Index, 10 + table, table, "a_id_idx") }),
        );
        let many = std::iter::once(node(1, "t", None, true));
        let many: Vec<Node> = many.chain(leaves.map(|oid| node(oid, "a", Some(0), false))).collect();
        assert_eq!(index(&create, &of_table(&all), &many[..=MOST]).unwrap().len(), 1 + 2 * MOST);
        assert_eq!(index(&create, &of_table(&all), &many), None);
    }
}
