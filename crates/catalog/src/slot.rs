//! A column while its values are being decided.

use rowgen::{ColumnSpec, Keyed, Kind, Values};

use super::compose::nulled;
use super::defaults::{self, FromSequence};
use super::describe::DescribeRequest;
use super::error::CatalogError;
use super::extension;
use super::info::{ColumnInfo, ForeignKeyInfo, KeyElement, KeyInfo, Source, TableInfo, TypeShape};
use super::looks;
use super::mentioned::columns_in;
use super::spec::Given;

/// A column, its kind of values, and their origin.
#[derive(Clone, Debug)]
pub(super) struct Slot<'a> {
    pub(super) info: &'a ColumnInfo,
    /// The kind of its values; text if rowgen does not know the type. Its values are then given as
    /// text, or not at all.
    pub(super) kind: Kind,
    /// Whether rowgen knows the type.
    pub(super) known: bool,
    pub(super) role: Role,
    /// How often rows refer to each key, if the user says so.
    pub(super) keyed: Option<Keyed>,
    /// Fraction of NULLs among the values that pgrig chooses, if it is given.
    pub(super) nulls: Option<f64>,
}

/// The source of a column's values.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Role {
    /// The server gives the value: identity, default, generated.
    Server,
    /// The user gives it with `--column`, it is the only possible value, or it is a text of a type of an extension.
    Given(Values),
    /// pgrig counts instead of the column's own sequence.
    Sequence(FromSequence),
    /// A key of the table itself.
    OwnKey {
        /// The referenced column.
        of: String,
        /// The foreign key's name, if the row may reference any earlier row; otherwise it references itself.
        earlier: Option<String>,
    },
    /// pgrig knows no values of the type, or none that conditions allow, so the column is NULL.
    Unknown,
    /// pgrig chooses among the values that constraints leave.
    Free,
}

impl Slot<'_> {
    pub(super) fn name(&self) -> &str {
        &self.info.name
    }

    pub(super) fn is_free(&self) -> bool {
        self.role == Role::Free
    }

    /// Makes pgrig give the values that the server would give: those of the column's sequence, if
    /// it has one. `rows` is the number of wanted rows, if it is known.
    pub(super) fn give_values(&mut self, rows: Option<u64>) {
        if self.role == Role::Server && self.known && self.info.may_insert && !self.info.is_generated() {
            let own = defaults::role(self.info, &self.kind, rows);
            self.role = own.filter(|role| matches!(role, Role::Sequence(_))).unwrap_or(Role::Free);
        }
    }

    /// Makes pgrig choose the values instead of a default, unless the user describes the column.
    pub(super) fn spare_default(&mut self, given: &[ColumnSpec]) {
        let is_given =
            given.iter().any(|given| given.column == self.info.name && given.spec.only_nulls().is_none());
        let is_default = matches!(self.role, Role::Server | Role::Given(_));
        if is_default && !is_given && self.known && self.info.may_insert && !self.info.is_generated() {
            self.role = Role::Free;
        }
    }

    /// As [`Self::give_values`], unless the values are those of a sequence that pgrig cannot set.
    pub(super) fn give_known_values(&mut self, rows: Option<u64>) {
        if self.info.sequence.is_some() || !has_sequence(&self.info.source) {
            self.give_values(rows);
        }
    }

    /// The column of the same table that this one references.
    pub(super) fn own_key(&self) -> Option<&str> {
        match &self.role {
            Role::OwnKey { of, .. } => Some(of),
            _ => None,
        }
    }

    /// The sequence in whose place pgrig counts.
    pub(super) fn sequence(&self) -> Option<&FromSequence> {
        match &self.role {
            Role::Sequence(sequence) => Some(sequence),
            _ => None,
        }
    }

    /// Name of the column's own sequence, and how many values are left in it, whether pgrig or the
    /// server takes them. None if the sequence repeats its values. `rows` is the number of wanted
    /// rows, if it is known.
    pub(super) fn values_left(&self, rows: Option<u64>) -> Option<(String, u64)> {
        let of_server = || match (&self.role, defaults::role(self.info, &self.kind, rows)) {
            (Role::Server, Some(Role::Sequence(sequence))) => Some(sequence),
            _ => None,
        };
        let sequence = self.sequence().cloned().or_else(of_server)?;
        Some((sequence.name, sequence.count))
    }

    /// Whether the server itself gives each row another value.
    pub(super) fn is_unique_by_server(&self) -> bool {
        self.role == Role::Server && gives_unique_values(&self.info.source)
    }
}

/// Decides for every column whether pgrig or the server fills it.
pub(super) fn slots<'a>(
    info: &'a TableInfo,
    given: &Given<'_>,
    request: &DescribeRequest,
) -> Result<Vec<Slot<'a>>, CatalogError> {
    let mut slots = Vec::new();
    for column in &info.columns {
        let kind = column.data_type.kind();
        let (keyed, nulls) = (given.keyed(info, column)?, given.nulls(column));
        let given = if keyed.is_some() { None } else { Some(given) };
        let role = role(info, column, kind.as_ref(), given, request)?;
        slots.push(Slot {
            info: column,
            known: kind.is_some(),
            kind: kind.unwrap_or(Kind::Text),
            role,
            keyed,
            nulls,
        });
    }
    send_something(&mut slots);
    for slot in slots.iter_mut().filter(|slot| slot.is_free() && !slot.known && !is_in_key(info, slot.info)) {
        let values = extension::values(&slot.info.data_type);
        // pgrig does not judge these values, but NULL fulfils conditions, and expressions of it are NULL.
        match values.filter(|_| slot.info.not_null || !is_evaluated(info, slot.info)) {
            Some(values) if slot.info.not_null => slot.role = Role::Given(values),
            Some(values) => slot.role = Role::Given(nulled(values, slot.nulls)),
            None if slot.info.not_null => {}
            None => slot.role = Role::Unknown,
        }
    }
    match slots.iter().find(|slot| slot.is_free() && !slot.known) {
        Some(slot) => Err(unsupported(info, slot.info)),
        None => Ok(slots),
    }
}

fn role(
    info: &TableInfo,
    column: &ColumnInfo,
    kind: Option<&Kind>,
    given: Option<&Given<'_>>,
    request: &DescribeRequest,
) -> Result<Role, CatalogError> {
    let forbidden = || CatalogError::ColumnPrivilege {
        table: info.shown(),
        column: column.name.clone(),
        role: info.role.clone(),
        is_optional: is_optional(column),
    };
    let values = given.map(|given| given.values(info, column, kind)).transpose()?.flatten();
    if let Some(values) = values {
        if column.is_generated() {
            return Err(CatalogError::GeneratedColumn { table: info.shown(), column: column.name.clone() });
        }
        return match values {
            Values::Server => Ok(Role::Server),
            _ if !column.may_insert => Err(forbidden()),
            values => Ok(Role::Given(values)),
        };
    }
    if column.is_generated() {
        return Ok(Role::Server);
    }
    if !column.may_insert {
        return is_optional(column).then_some(Role::Server).ok_or_else(forbidden);
    }
    if let Some(role) = of_self_reference(info, column) {
        return Ok(role);
    }
    if request.chosen.contains(&column.name) && kind.is_some() && !has_sequence(&column.source) {
        return Ok(Role::Free);
    }
    let is_for_pgrig =
        |kind: &&Kind| request.takes_defaults || !request.plain && passes_with_others(info, column, kind);
    let taken = kind.filter(is_for_pgrig).filter(|_| !points_elsewhere(info, column));
    let taken = taken.and_then(|kind| defaults::role(column, kind, request.rows));
    if let Some(Role::Sequence(sequence)) = taken {
        return Ok(Role::Sequence(sequence));
    }
    if column.source == Source::Nothing || needs_values(info, column) {
        return Ok(Role::Free);
    }
    Ok(taken.unwrap_or(Role::Server))
}

/// Whether a row need not give it a value.
fn is_optional(column: &ColumnInfo) -> bool {
    column.source != Source::Nothing || !column.not_null
}

/// The role of a column that references its own table: the key of an earlier row. Where an earlier row will not do, it is
/// NULL, or the key of the same row if NULL is not allowed.
fn of_self_reference(info: &TableInfo, column: &ColumnInfo) -> Option<Role> {
    let own = info.foreign_keys.iter().filter(|key| key.to_itself);
    let (key, at) = own
        .filter_map(|key| Some((key, key.columns.iter().position(|name| *name == column.name)?)))
        .find(|(key, at)| key.referenced.columns[*at] != column.name)?;
    let is_shared =
        info.foreign_keys.iter().any(|other| other.name != key.name && other.columns.contains(&column.name));
    if is_shared {
        return None;
    }
    let earlier = may_be_earlier(info, key).then(|| key.name.clone());
    let of = key.referenced.columns[at].clone();
    Some(if column.not_null || earlier.is_some() {
        Role::OwnKey { of, earlier }
    } else {
        Role::Given(Values::Null)
    })
}

/// Whether any earlier row may be referenced: no other constraint concerns the foreign key's columns, and one transaction
/// loads all partitions, since there are none.
fn may_be_earlier(info: &TableInfo, key: &ForeignKeyInfo) -> bool {
    let is_named = |sql: &str| key.columns.iter().any(|name| sql.contains(name.as_str()));
    let is_restricted = |name: &String| {
        let column = info.column(name);
        let is_domain =
            column.is_some_and(|column| matches!(column.data_type.shape, TypeShape::Domain { .. }));
        let is_unique = |of: &KeyElement| {
            of.column.as_ref() == Some(name) || of.expression.as_deref().is_some_and(|sql| sql.contains(name))
        };
        is_domain || info.keys.iter().flat_map(|key| &key.elements).any(is_unique)
    };
    let names_itself = key.columns.iter().any(|name| key.referenced.columns.contains(name));
    info.partitions.is_none()
        && info.partition_of.is_none()
        && !key.period
        && !names_itself
        && !info.checks.iter().any(|check| is_named(&check.expression))
        && !key.columns.iter().any(is_restricted)
}

/// Whether a default must not be left to the server: where it would break a key.
fn needs_values(info: &TableInfo, column: &ColumnInfo) -> bool {
    let repeats = |name: &str| {
        let source = info.column(name).map_or(&Source::Nothing, |column| &column.source);
        *source != Source::Nothing && !gives_unique_values(source)
    };
    let all = info.column_names();
    let all_repeat = |key: &KeyInfo| {
        // Also columns of which the index has `lower(name)`.
        let deciding = |element: &KeyElement| element.column.clone().or_else(|| element.injective_in(&all));
        let columns: Vec<String> = key.elements.iter().filter_map(deciding).collect();
        // Beside keys of another table, a constant would leave one row for each of these.
        let is_whole = key.predicate.is_none() && !key.exclusion && column.data_type.kind().is_some();
        let points = |name: &str| info.column(name).is_some_and(|other| points_elsewhere(info, other));
        let is_short = |name: &str| repeats(name) || is_whole && points(name);
        columns.contains(&column.name) && columns.iter().all(|name| is_short(name))
    };
    let repeats = info.keys.iter().any(all_repeat);
    // The next value of a sequence is not known when a row is made to reference itself.
    let referenced = info.foreign_keys.iter().filter(|key| key.to_itself).any(|key| {
        let must = |name: &String| info.column(name).is_some_and(|column| column.not_null);
        key.referenced.columns.contains(&column.name) && key.columns.iter().all(must)
    });
    repeats || referenced || points_elsewhere(info, column)
}

/// Whether it is one of several times of a row that follow each other. A default of `now()` would
/// be later than all times that pgrig makes.
fn passes_with_others(info: &TableInfo, column: &ColumnInfo, kind: &Kind) -> bool {
    let place = |column: &ColumnInfo| looks::time_order(&column.name, &column.data_type.kind()?);
    looks::time_order(&column.name, kind)
        .is_some_and(|own| info.columns.iter().filter_map(place).any(|other| other != own))
}

/// Whether the column references another table.
fn points_elsewhere(info: &TableInfo, column: &ColumnInfo) -> bool {
    info.foreign_keys.iter().any(|key| !key.to_itself && key.columns.contains(&column.name))
}

fn is_in_key(info: &TableInfo, column: &ColumnInfo) -> bool {
    let in_key = info.keys.iter().any(|key| key.columns().any(|name| name == column.name));
    in_key || info.foreign_keys.iter().any(|key| key.columns.contains(&column.name))
}

/// Whether the server evaluates conditions or expressions of the column: its domain's, the table's, those of indexes and of generated columns.
fn is_evaluated(info: &TableInfo, column: &ColumnInfo) -> bool {
    let generated = info.columns.iter().filter_map(|other| match &other.source {
        Source::Generated { expression, .. } => Some(expression.as_str()),
        _ => None,
    });
    let keys = info.keys.iter().flat_map(|key| &key.elements);
    let keys = keys.filter_map(|element| element.expression.as_deref());
    let checks = info.checks.iter().chain(&info.expressions).map(|check| check.expression.as_str());
    let mut all = checks.chain(generated).chain(keys);
    !column.data_type.domain_checks().is_empty()
        || all.any(|expression| !columns_in(expression, &[column.name.as_str()]).is_empty())
}

fn gives_unique_values(source: &Source) -> bool {
    // gen_random_uuid, uuid_generate_v4, uuidv7 …
    let is_uuid = |expression: &str| expression.contains("uuid") && expression.contains('(');
    let random = matches!(source, Source::Default { expression, .. } if is_uuid(expression));
    random || has_sequence(source)
}

/// Whether a sequence would give the column its values.
pub(super) fn has_sequence(source: &Source) -> bool {
    matches!(source, Source::Identity { .. } | Source::Default { sequence: true, .. })
}

/// Makes at least one column non-default, because COPY has to send at least one.
fn send_something(slots: &mut [Slot<'_>]) {
    if slots.iter().all(|slot| slot.role == Role::Server)
        && let Some(first) = slots.iter_mut().find(|slot| !slot.info.is_generated() && slot.info.may_insert)
    {
        first.role = Role::Free;
    }
}

fn unsupported(info: &TableInfo, column: &ColumnInfo) -> CatalogError {
    CatalogError::UnsupportedType {
        table: info.shown(),
        column: column.name.clone(),
        data_type: column.data_type.sql.clone(),
        nullable: !column.not_null,
        has_default: column.source != Source::Nothing,
    }
}
