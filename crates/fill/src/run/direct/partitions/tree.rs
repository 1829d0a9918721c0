//! A partitioned table as the server keeps it: its partitions at all levels, and the partition of each row.

use std::collections::HashMap;

use rowgen::{Kind, RowHash, Table};
use serde::Deserialize;
use tokio_postgres::Row;
use tokio_postgres::types::Json;

use super::super::{Failure, NotDirect};
use super::bound::{Bound, Edge};
use super::key::{Form, Key, KeyColumn, Wire};
use crate::request::Persistence;
use server::Session;

/// The table and its partitions, as the server says.
#[derive(Clone, Debug)]
pub(crate) struct PartitionsFound(Vec<Member>);

/// A partitioned table, or a leaf.
#[derive(Clone, Debug)]
struct Member {
    oid: u32,
    parent: Option<u32>,
    leaf: LeafFound,
    kind: String,
    /// `partstrat`, of a partitioned table.
    strategy: Option<String>,
    /// The bound; none for the whole table.
    bound: Option<String>,
    keys: Vec<KeyFound>,
}

/// A partition that holds rows itself.
#[derive(Clone, Debug)]
pub(crate) struct LeafFound {
    /// Qualified and quoted.
    pub(crate) name: String,
    pub(crate) persistence: Persistence,
    /// Percent.
    pub(crate) fillfactor: u8,
}

/// A column of a partition key.
#[derive(Clone, Debug, Deserialize)]
struct KeyFound {
    /// The column; none for an expression.
    column: Option<String>,
    /// Whether its operator class is its type's default.
    is_usual: bool,
    /// Whether its collation compares texts byte by byte.
    has_bytes: bool,
    is_deterministic: bool,
}

impl PartitionsFound {
    /// The query for [`Self::of`]; its parameter is a table's qualified name.
    pub(crate) const QUERY: &str = include_str!("../../../sql/direct_partitions.sql");

    pub(crate) fn of(rows: &[Row]) -> Self {
        let member = |row: &Row| {
            let Json(keys) = row.get("keys");
            let is_unlogged = row.get::<_, &str>("persistence") == "u";
            let fillfactor = u8::try_from(row.get::<_, i32>("fillfactor")).unwrap_or(100);
            Member {
                oid: row.get("oid"),
                parent: row.get("parent"),
                leaf: LeafFound {
                    name: row.get("name"),
                    persistence: if is_unlogged { Persistence::Unlogged } else { Persistence::Logged },
                    fillfactor,
                },
                kind: row.get("kind"),
                strategy: row.get("strategy"),
                bound: row.get("bound"),
                keys,
            }
        };
        Self(rows.iter().map(member).collect())
    }

    /// Partitions that hold rows themselves.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = &LeafFound> {
        self.0.iter().filter(|member| member.kind != "p").map(|member| &member.leaf)
    }

    /// Partitioned tables, the whole first: qualified and quoted.
    pub(crate) fn partitioned(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|member| member.kind == "p").map(|member| &*member.leaf.name)
    }

    /// Whether pgrig can tell the partition of each of the table's rows.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub(crate) fn suit(&self, table: &Table) -> Result<(), NotDirect> {
        let refuse = |text: String| Err(NotDirect::Duties(text));
        for member in self.0.iter().filter(|member| member.kind == "p") {
            let name = &member.leaf.name;
            for key in &member.keys {
                let Some(column) = &key.column else {
                    return refuse(format!("{name} is partitioned by an expression"));
                };
                let kind = table.columns.iter().find(|of| of.name == *column).map(|of| &of.kind);
                if !key.is_usual || !kind.is_some_and(|kind| key.suits(kind, member.strategy.as_deref())) {
                    let sql = kind.map_or(String::new(), Kind::sql);
                    return refuse(format!("{name} is partitioned by {column}, of type {sql}"));
                }
            }
        }
        let of_parts = self.0.iter().filter(|member| member.parent.is_some());
        let strange = |bound: &Option<String>| bound.as_deref().and_then(Bound::parse).is_none();
        let mut strange = of_parts.filter(|member| strange(&member.bound));
        match strange.next() {
            Some(member) => refuse(format!("pgrig cannot interpret the bounds of {}", member.leaf.name)),
            None => Ok(()),
        }
    }
}

impl KeyFound {
    /// Whether values of the kind are compared, or hashed, as the server does.
    fn suits(&self, kind: &Kind, strategy: Option<&str>) -> bool {
        let Some(form) = Form::of(kind) else { return false };
        let is_text = matches!(form, Form::Text | Form::Padded);
        match strategy {
            Some("r") => form.is_ordered(self.has_bytes),
            Some("l" | "h") => !is_text || self.is_deterministic,
            _ => false,
        }
    }
}

/// How a row finds its leaf.
pub(super) struct Tree {
    /// The columns of all partition keys.
    pub(super) columns: Vec<KeyColumn>,
    /// The partitioned tables, the whole first.
    nodes: Vec<Node>,
}

/// A partitioned table.
struct Node {
    /// Indexes of its key columns in the tree's `columns`.
    keys: Vec<usize>,
    rule: Rule,
    /// The partition of rows that no other partition takes.
    default: Option<Child>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Child {
    Node(usize),
    /// Its place among the leaves.
    Leaf(u32),
}

enum Rule {
    /// The stretches, in ascending order.
    Range(Vec<Stretch>),
    List {
        parts: HashMap<Key, Child>,
        null: Option<Child>,
    },
    /// The partition of each remainder of the greatest modulus, of which all others are divisors.
    Hash(Vec<Option<Child>>),
}

struct Stretch {
    from: Vec<Edge<Key>>,
    /// Upper bound, exclusive.
    to: Vec<Edge<Key>>,
    part: Child,
}

impl Tree {
    /// Has the server read the values of bounds. `table` has the OIDs of this database.
    pub(super) async fn of(
        session: &Session,
        found: &PartitionsFound,
        table: &Table,
    ) -> Result<Self, Failure> {
        found.suit(table)?;
        let mut tree = Self { columns: Vec::new(), nodes: Vec::new() };
        let (mut parts, mut leaves) = (HashMap::new(), 0);
        let mut names = Vec::new();
        for (member, nodes) in found.0.iter().scan(0, |nodes, member| {
            *nodes += usize::from(member.kind == "p");
            Some((member, *nodes))
        }) {
            let part = if member.kind == "p" { Child::Node(nodes - 1) } else { Child::Leaf(leaves) };
            leaves += u32::from(member.kind != "p");
            parts.insert(member.oid, part);
        }
        for member in found.0.iter().filter(|member| member.kind == "p") {
            let children: Vec<(Bound, Child)> = found
                .0
                .iter()
                .filter(|child| child.parent == Some(member.oid))
                .filter_map(|child| Some((Bound::parse(child.bound.as_deref()?)?, parts[&child.oid])))
                .collect();
            let mut keys = Vec::new();
            let mut read = Vec::new();
            for (place, key) in member.keys.iter().filter_map(|key| key.column.as_deref()).enumerate() {
                let at = names.iter().position(|name| *name == key);
                let at = at.unwrap_or_else(|| {
                    names.push(key);
                    names.len() - 1
                });
                if at == tree.columns.len() {
                    let unsuitable = || NotDirect::Duties(format!("pgrig does not know the values of {key}"));
                    tree.columns.push(KeyColumn::of(table, key).ok_or_else(unsuitable)?);
                }
                keys.push(at);
                let column = table.columns.iter().find(|column| column.name == key);
                let sql = column.map_or(String::new(), |column| Form::sql(&column.kind));
                let literals = children.iter().flat_map(|(bound, _)| bound.literals(place));
                read.push(values(session, literals, &sql, &tree.columns[at].form).await?);
            }
            tree.nodes.push(Node::of(member.strategy.as_deref(), keys, children, &read));
        }
        Ok(tree)
    }

    /// The leaf of a row; none if no partition takes it. `keys` has the keys of all columns, for several rows.
    pub(super) fn leaf(&self, keys: &[Vec<Option<Key>>], row: usize) -> Option<u32> {
        let mut node = 0;
        loop {
            match self.nodes.get(node)?.part(keys, row)? {
                Child::Node(next) => node = next,
                Child::Leaf(leaf) => return Some(leaf),
            }
        }
    }
}

/// Keys by the literals that the server has read.
type Read = HashMap<String, Key>;

/// Has the server read literals of this type.
async fn values<'a>(
    session: &Session,
    literals: impl Iterator<Item = &'a str>,
    sql: &str,
    form: &Form,
) -> Result<Read, Failure> {
    let mut literals: Vec<&str> = literals.collect();
    literals.sort_unstable();
    literals.dedup();
    if literals.is_empty() {
        return Ok(Read::new());
    }
    let rows: Vec<String> = literals
        .iter()
        .enumerate()
        .map(|(at, literal)| format!("({at}, CAST({literal} AS {sql}))"))
        .collect();
    let query = format!("SELECT v FROM (VALUES {}) AS bounds (at, v) ORDER BY at", rows.join(", "));
    let unknown = || NotDirect::Duties(format!("pgrig cannot interpret a bound of type {sql}"));
    let mut read = Read::new();
    for (literal, row) in literals.into_iter().zip(session.rows(&query, &[]).await?) {
        let Wire(wire) = row.get(0);
        read.insert(literal.to_owned(), form.of_wire(&wire).ok_or_else(unknown)?);
    }
    Ok(read)
}

impl Node {
    fn of(strategy: Option<&str>, keys: Vec<usize>, children: Vec<(Bound, Child)>, read: &[Read]) -> Self {
        let is_default = |(bound, part): &(Bound, Child)| (*bound == Bound::Default).then_some(*part);
        let default = children.iter().find_map(is_default);
        let rule = match strategy {
            Some("h") => Rule::of_hash(&children),
            Some("l") => Rule::of_list(children, &read[0]),
            _ => Rule::of_ranges(children, read),
        };
        Self { keys, rule, default }
    }

    fn part(&self, keys: &[Vec<Option<Key>>], row: usize) -> Option<Child> {
        let key = |place: usize| keys[self.keys[place]][row].as_ref();
        let all = || (0..self.keys.len()).map(key);
        match &self.rule {
            Rule::Range(stretches) => stretch(stretches, all).or(self.default),
            Rule::List { parts, null } => match key(0) {
                Some(key) => parts.get(key).copied(),
                None => *null,
            }
            .or(self.default),
            Rule::Hash(parts) => {
                let mut hash = RowHash::default();
                all().flatten().for_each(|key| key.hash_into(&mut hash));
                let modulus = u32::try_from(parts.len()).ok().filter(|modulus| *modulus > 0)?;
                parts[hash.remainder(modulus) as usize]
            }
        }
    }
}

/// The stretch that holds a key; none of its columns may be NULL.
fn stretch<'k, K: Iterator<Item = Option<&'k Key>>>(
    stretches: &[Stretch],
    key: impl Fn() -> K,
) -> Option<Child> {
    if key().any(|key| key.is_none()) {
        return None;
    }
    let is_before = |bound: &[Edge<Key>]| {
        for (edge, key) in bound.iter().zip(key().flatten()) {
            match edge {
                Edge::Least => return true,
                Edge::Greatest => return false,
                Edge::Value(value) if value == key => {}
                Edge::Value(value) => return value < key,
            }
        }
        // The bound itself.
        true
    };
    let above = stretches.partition_point(|stretch| is_before(&stretch.from));
    let stretch = stretches.get(above.checked_sub(1)?)?;
    (!is_before(&stretch.to)).then_some(stretch.part)
}

impl Rule {
    fn of_ranges(children: Vec<(Bound, Child)>, read: &[Read]) -> Self {
        let edges = |edges: Vec<Edge<String>>| {
            let edge = |(place, edge): (usize, Edge<String>)| match edge {
                Edge::Least => Edge::Least,
                Edge::Value(literal) => Edge::Value(read[place][&literal].clone()),
                Edge::Greatest => Edge::Greatest,
            };
            edges.into_iter().enumerate().map(edge).collect()
        };
        let stretch = |(bound, part)| match bound {
            Bound::Range { from, to } => Some(Stretch { from: edges(from), to: edges(to), part }),
            _ => None,
        };
        let mut stretches: Vec<Stretch> = children.into_iter().filter_map(stretch).collect();
        stretches.sort_by(|one, other| one.from.cmp(&other.from));
        Self::Range(stretches)
    }

    fn of_list(children: Vec<(Bound, Child)>, read: &Read) -> Self {
        let (mut parts, mut null) = (HashMap::new(), None);
        for (bound, part) in children {
            let Bound::List(values) = bound else { continue };
            for value in values {
                match value {
                    Some(literal) => {
                        parts.insert(read[&literal].clone(), part);
                    }
                    None => null = Some(part),
                }
            }
        }
        Self::List { parts, null }
    }

    fn of_hash(children: &[(Bound, Child)]) -> Self {
        let modulus = |(bound, _): &(Bound, Child)| match bound {
            Bound::Hash { modulus, .. } => Some(*modulus),
            _ => None,
        };
        let greatest = children.iter().filter_map(modulus).max().unwrap_or(0);
        let mut parts = vec![None; greatest as usize];
        for (bound, part) in children {
            let Bound::Hash { modulus, remainder } = bound else { continue };
            for at in (*remainder..greatest).step_by(*modulus as usize) {
                parts[at as usize] = Some(*part);
            }
        }
        Self::Hash(parts)
    }
}
