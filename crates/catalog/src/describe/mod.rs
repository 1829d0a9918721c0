//! From a table's facts to rows that keep its constraints. `uniqueness` has the ways to keep its keys, `partial` those to
//! keep partial unique indexes that leave room for fewer rows than wanted, `nulls` foreign keys that are NULL for a unique key,
//! `counted` columns that are counted for one although they have statistics. `rules` are conditions that the server judges.
//! `warnings` are the texts about its triggers and columns.

mod counted;
mod nulls;
mod partial;
mod rules;
mod uniqueness;
mod warnings;

use failure::Classified;
use futures_util::future::LocalBoxFuture;
use rowgen::{Column, ColumnSpec, Encoder, Format, Spread, Table};
use serde::{Deserialize, Serialize};
use tokio_postgres::Client;

use super::compose::{Choice, ascends, compose, drawn, is_counted_on, ordered};
use super::condition::{Condition, DOMAIN_VALUE, Names};
use super::constants::Constants;
use super::defaults;
use super::error::CatalogError;
use super::info::{CheckInfo, KeyInfo, SequenceInfo, TableInfo, columns_of};
use super::keys::{Assigned, Made, MostRows, Part, assign};
use super::narrow::{Narrow, Way};
use super::planned::Planned;
use super::present::Present;
use super::references::{self, Group};
use super::sample::{Rule, Sampling};
use super::slot::{Role, Slot, slots};
use super::spec::Given;
use super::transaction::Scope;

use self::counted::described;
use self::partial::Look;

/// Request for the rows of one table.
#[derive(Clone, Debug, Default)]
pub struct DescribeRequest {
    /// The user's specifications of columns (`--column NAME=SPEC`).
    pub columns: Vec<ColumnSpec>,
    /// Number of the first row. Rows that pgrig put there before have the numbers below it.
    pub first_row: u64,
    /// The rows of the table when the fill began, if this fill continues one; else pgrig looks at the table.
    pub present: Option<Present>,
    /// Number of rows, if known.
    pub rows: Option<u64>,
    /// Seed of the random values.
    pub seed: u64,
    /// Tables that are filled before this one in the same run. Their keys are referenced whatever rows they have now.
    pub planned: Vec<Planned>,
    /// Whether pgrig gives the values that identities, own sequences, and defaults of known meaning would give. The
    /// caller sets the sequences then ([`Described::sequences`]).
    pub takes_defaults: bool,
    /// Whether names of columns say nothing of their values.
    pub plain: bool,
    /// Whether a table that relates two others uses all keys of both, as a model's does; rows cannot be added later.
    pub uses_all_keys: bool,
    /// Number of rows that reach from the first partition to the last one, if the partition key is a column of a unique key that
    /// pgrig counts up; rows cannot be added later. If none, values follow each other closely.
    pub spread: Option<u64>,
    /// Columns that are referenced by tables filled later. pgrig gives their values itself, so that
    /// it knows these keys.
    pub referenced: Vec<String>,
    /// Columns whose values pgrig chooses although they have a default, unless the default is a sequence.
    pub chosen: Vec<String>,
}

/// Rows for a table, ready to be copied.
///
/// The result depends on the table, the request, the present rows and the rows that can be referenced.
/// A fill that is resumed passes the [`Described::present`] and [`Described::first_row`] of its
/// beginning again. It does not call [`verify`](super::verify()), because the table may already
/// have rows of the sample.
#[derive(Clone, Debug)]
pub struct Described {
    /// The rows. Columns left to the server have [`rowgen::Values::Server`].
    pub table: Table,
    /// The first row's number: the request's, or more where present rows have to be passed over.
    pub first_row: u64,
    /// Rows and values that the table had before.
    pub present: Present,
    /// The most rows that keys leave room for.
    pub most_rows: Option<MostRows>,
    /// Columns whose type only the server can read, so that the rows must be sent as text.
    pub text_only: Vec<String>,
    /// Columns that get the values of their own sequences. The sequences have to be set once rows are in.
    pub sequences: Vec<SequenceTaken>,
    /// Tables that are filled before: their keys cannot be looked up yet.
    pub(crate) planned: Vec<Planned>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// A sequence whose values pgrig computes itself instead of calling nextval().
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceTaken {
    /// The column that gets its values.
    pub column: String,
    /// `pg_class.oid`.
    pub oid: u32,
    /// Qualified and quoted.
    pub name: String,
}

impl Described {
    /// Whether the rows can be sent in this format.
    pub fn supports(&self, format: Format) -> bool {
        format == Format::Text || self.text_only.is_empty() && Encoder::supports(&self.table, format)
    }
}

/// Describes rows for the table. Nothing is changed.
///
/// - Generated columns, identities and columns with a default are left to the server, unless a
///   spec or the request says otherwise or a default would break a key (a constant in a unique column, or beside
///   foreign keys in a unique key, an id that a self-reference needs) or a CHECK.
/// - A nullable column is NULL in a twentieth of the rows, unless it is part of a key.
/// - If pgrig finds no unique values for a key, a nullable foreign key with columns of this key is NULL in all rows.
/// - All rows satisfy the CHECKs of each partition, as far as they can.
/// - If a partial unique index leaves room for fewer rows than wanted, further rows do not satisfy its predicate.
/// - Numbers, dates and times in keys go on after the greatest one present. Texts, uuids and the like
///   follow from the row number and the seed: if the request begins at row 0, rows are numbered from the
///   present number of rows on, so that rows made with the same seed are not made again.
///
/// # Errors
/// If a constraint cannot be kept, with the remedy; if the server fails.
pub fn describe<'a>(
    client: &'a Client,
    info: &'a TableInfo,
    request: &'a DescribeRequest,
    scope: Scope,
) -> LocalBoxFuture<'a, Result<Described, CatalogError>> {
    let look = Look { client, info, request, scope };
    Box::pin(async move {
        if let Some(strict) = info.with_checks_for_all_rows() {
            let described = described(Look { info: &strict, ..look }).await;
            // CHECKs of several partitions may contradict each other.
            if !described.as_ref().is_err_and(Classified::is_usage) {
                return described;
            }
        }
        described(look).await
    })
}

/// Decisions about the values of single columns.
#[derive(Clone, Copy)]
struct Basis<'a> {
    conditions: &'a Conditions,
    way: &'a Way,
    present: &'a Present,
}

/// Rows that keep all keys, and all conditions that are understood.
struct Draft {
    table: Table,
    first_row: u64,
    parts: Vec<Part>,
    most: Option<MostRows>,
    warnings: Vec<String>,
}

struct Design<'a> {
    client: &'a Client,
    info: &'a TableInfo,
    request: &'a DescribeRequest,
    slots: Vec<Slot<'a>>,
    /// Conditions that rows must fulfil besides the table's CHECKs: predicates of unique indexes that no row may satisfy.
    avoided: &'a [CheckInfo],
}

impl<'a> Design<'a> {
    async fn of(
        client: &'a Client,
        info: &'a TableInfo,
        request: &'a DescribeRequest,
        avoided: &'a [CheckInfo],
    ) -> Result<Described, CatalogError> {
        let given = Given::read(client, info, &request.columns, &request.planned).await?;
        let mut slots = slots(info, &given, request)?;
        let refused = defaults::refused(client, info).await?;
        for slot in slots.iter_mut().filter(|slot| refused.iter().any(|name| name == slot.name())) {
            slot.spare_default(&request.columns);
        }
        for slot in slots.iter_mut().filter(|slot| request.referenced.iter().any(|name| name == slot.name()))
        {
            slot.give_values(request.rows);
        }
        let own: Vec<String> = slots.iter().filter_map(|slot| slot.own_key().map(str::to_owned)).collect();
        for slot in slots.iter_mut().filter(|slot| own.iter().any(|name| name == slot.name())) {
            slot.give_known_values(request.rows);
        }
        Self { client, info, request, slots, avoided }.described().await
    }

    async fn described(&self) -> Result<Described, CatalogError> {
        let mut warnings = self.warnings();
        let present = match &self.request.present {
            Some(present) => present.clone(),
            None => Present::ask(self.client, self.info, &self.slots).await?,
        };
        let conditions = self.conditions();
        let (way, understood) = self.way(&conditions, &mut warnings).await?;
        let groups = references::groups(
            self.client,
            self.info,
            &self.slots,
            &way,
            (present.has_rows, &self.request.planned),
        )
        .await?;
        let basis = Basis { conditions: &conditions, way: &way, present: &present };
        let is_judged = understood.contains(&false) || self.other_rules().next().is_some();
        let mut draft = self.draft(basis, &groups, is_judged).await?;
        if is_judged {
            let judged = self.judged(basis, &understood, &groups, &draft).await;
            if judged.as_ref().is_err_and(Classified::is_usage) {
                self.refuse_too_many(draft.most.as_ref())?;
            }
            if let Some((groups, notes)) = judged? {
                let groups: Vec<Group> =
                    groups.into_iter().map(|group| nulls::apart(group, &self.slots)).collect();
                draft = self.draft(basis, &groups, false).await?;
                warnings.extend(notes);
            }
        }
        self.refuse_too_many(draft.most.as_ref())?;
        warnings.extend(draft.warnings);
        // Even for NULL, binary format needs a function that some types of extensions lack.
        let sent = |slot: &&Slot<'_>| !slot.known && slot.role != Role::Server;
        Ok(Described {
            table: draft.table,
            first_row: draft.first_row,
            present,
            most_rows: draft.most,
            text_only: self.slots.iter().filter(sent).map(|slot| slot.name().to_owned()).collect(),
            planned: self.request.planned.clone(),
            sequences: self.sequences(),
            warnings,
        })
    }

    /// The rows, if columns that belong together get their values from these groups. There may be fewer rows than wanted if
    /// conditions are still to be judged: where these let columns of keys be NULL, there is room for more.
    async fn draft(
        &self,
        basis: Basis<'_>,
        groups: &[Group],
        is_judged: bool,
    ) -> Result<Draft, CatalogError> {
        let Basis { conditions, way, present } = basis;
        let mut parts = self.parts(way, groups, present);
        let wanted = self.wanted(&parts);
        let made = Made { rows: self.request.rows, uses_all_keys: self.request.uses_all_keys };
        let mut assigned = assign(&self.info.shown(), &mut parts, wanted, self.request.first_row, made)?;
        for (name, count) in self.slots.iter().filter_map(|slot| slot.values_left(self.request.rows)) {
            assigned.limit(count, None, || format!("sequence {name} has no more values"));
        }
        self.limit_to_one(&mut assigned, present);
        let Assigned { most, trusted } = assigned;
        if !is_judged || most.as_ref().is_some_and(|most| most.rows == 0) {
            self.refuse_too_many(most.as_ref())?;
        }
        self.refuse_unknown_present(&parts, present)?;
        let trusted = (!trusted.is_empty()).then(|| {
            format!(
                "pgrig does not check whether --column gives unique values to {}: if values repeat, the load fails",
                trusted.join(", ")
            )
        });
        let first_row = self.first_row(&parts, present).await?;
        let choice = self.choice(basis, groups, &parts, first_row);
        let columns = compose(self.info, &choice, &conditions.checks)?;
        let rows = self.request.rows.map_or(u64::MAX, |rows| first_row.saturating_add(rows));
        Ok(Draft {
            table: self.table(columns, rows),
            first_row,
            parts,
            most,
            warnings: Vec::from_iter(trusted),
        })
    }

    fn choice<'c>(
        &'c self,
        basis: Basis<'c>,
        groups: &'c [Group],
        parts: &'c [Part],
        first_row: u64,
    ) -> Choice<'c> {
        let Basis { way, present, .. } = basis;
        Choice {
            table: &self.info.name,
            info: self.info,
            spread: self.request.spread.filter(|_| first_row == 0 && !present.has_rows),
            referenced: &self.request.referenced,
            seed: self.request.seed,
            plain: self.request.plain,
            slots: &self.slots,
            way,
            groups,
            parts,
            present,
            first_row,
        }
    }

    fn table(&self, columns: Vec<Column>, rows: u64) -> Table {
        Table { name: self.info.name.clone(), columns, rows, seed: self.request.seed }
    }

    /// Groups of columns whose values the server accepts, where the draft would break a condition.
    async fn judged(
        &self,
        basis: Basis<'_>,
        understood: &[bool],
        groups: &[Group],
        draft: &Draft,
    ) -> Result<Option<(Vec<Group>, Vec<String>)>, CatalogError> {
        let checks = &basis.conditions.checks;
        let choice = self.choice(basis, groups, &draft.parts, draft.first_row);
        let bounds = self.info.partition_condition();
        let bounds = bounds.as_deref().map(|bounds| Rule::of_bounds(self.info, bounds));
        let mut rules: Vec<Rule<'_>> = bounds.into_iter().chain(self.rules()).collect();
        let conditions = basis.conditions.bounds.iter().chain(checks);
        for ((rule, condition), understood) in rules.iter_mut().zip(conditions).zip(understood) {
            rule.is_kept = *understood || ascends(&choice, checks, condition);
            rule.is_about_pairs = condition.has_columns_that_differ();
            rule.is_rarely_broken |= rule.is_about_pairs;
        }
        rules.extend(self.other_rules());
        let most = draft.most.as_ref().map_or(u64::MAX, |most| draft.first_row.saturating_add(most.rows));
        let sampling = Sampling {
            client: self.client,
            info: self.info,
            slots: &self.slots,
            rules,
            groups,
            parts: &draft.parts,
            made: &draft.table,
            rows: draft.first_row..draft.table.rows.min(most),
            wanted: self.request.rows.or_else(|| draft.most.as_ref().map(|most| most.rows)),
            drawn: &self.table(drawn(choice, checks), u64::MAX),
        };
        Box::pin(sampling.groups()).await
    }

    fn sequences(&self) -> Vec<SequenceTaken> {
        let taken = self.slots.iter().filter(|slot| slot.sequence().is_some());
        let taken = taken.filter_map(|slot| Some((slot.name(), slot.info.sequence.as_ref()?)));
        taken
            .map(|(column, SequenceInfo { oid, name, .. })| SequenceTaken {
                column: column.to_owned(),
                oid: *oid,
                name: name.clone(),
            })
            .collect()
    }

    /// Everything that is said about free columns: partition bounds, CHECKs, domains' CHECKs.
    fn conditions(&self) -> Conditions {
        let all = self.info.column_names();
        let subject = |name: &str| self.free(name).map(|slot| slot.name().to_owned());
        let names = Names { all: &all, subject: &subject };
        let bounds = self.info.partition_condition().map(|bounds| Condition::parse(&bounds, names));
        let condition = |check: &CheckInfo| match &check.within {
            None => Condition::parse(&check.expression, names),
            Some(within) if within.is_of_key(&all) => Condition::All(Vec::new()),
            Some(_) => Condition::Other,
        };
        let mut checks: Vec<Condition> = self.info.checks.iter().map(condition).collect();
        checks.extend(self.avoided.iter().map(|_| Condition::Other));
        for slot in self.slots.iter().filter(|slot| slot.is_free()) {
            let subject = |_: &str| Some(slot.name().to_owned());
            let names = Names { all: &[DOMAIN_VALUE], subject: &subject };
            let domain = slot.info.data_type.domain_checks();
            checks.extend(domain.iter().map(|check| Condition::parse(&check.expression, names)));
        }
        Conditions { bounds, checks }
    }

    fn free(&self, name: &str) -> Option<&Slot<'_>> {
        self.slots.iter().find(|slot| slot.name() == name && slot.is_free())
    }

    /// The values of each column that fulfil the conditions, and which conditions are understood:
    /// bounds first, then CHECKs.
    async fn way(
        &self,
        conditions: &Conditions,
        warnings: &mut Vec<String>,
    ) -> Result<(Way, Vec<bool>), CatalogError> {
        let all: Vec<Condition> = conditions.bounds.iter().chain(&conditions.checks).cloned().collect();
        let constants = Constants::ask(self.client, &self.slots, &all).await?;
        let keys = &self.info.keys;
        let bounds = conditions.bounds.as_ref().filter(|_| self.info.partitions.is_some());
        let mut narrow =
            Narrow { slots: &self.slots, constants: &constants, keys, all_alternatives: false, bounds };
        let mut best = narrow.best(&all);
        if best.is_none() {
            narrow.all_alternatives = true;
            best = narrow.best(&all);
        }
        let way = best.ok_or_else(|| CatalogError::Contradiction {
            table: self.info.shown(),
            constraints: self
                .info
                .checks
                .iter()
                .filter(|check| check.within.is_none())
                .map(|check| check.name.as_str())
                .collect::<Vec<_>>()
                .join(", "),
        })?;
        if let Some(bounds) = &conditions.bounds
            && self.info.partitions.as_ref().is_some_and(|leaves| leaves.len() > 1)
        {
            let bounds = std::slice::from_ref(bounds);
            if narrow.joined(bounds).len() > 1 || narrow.best(bounds).is_some_and(|way| way.has_gaps()) {
                let warning = "some partitions stay empty: the bounds of the partitions have gaps, and pgrig makes key values in one \
                    range without gaps. To fill these partitions, describe the partition key with --column";
                warnings.push(warning.to_owned());
            }
        }
        // Columns that conditions order get values, even where NULL would fulfil a condition.
        let ordered = ordered(&all);
        let is_kept =
            |condition: &Condition| narrow.understands(condition) && !narrow.needs_null(condition, &ordered);
        let understood = all.iter().map(is_kept).collect();
        Ok((way, understood))
    }

    /// How often each key of the group comes, if the user says so.
    fn spread(&self, group: &Group) -> Option<Spread> {
        let keyed =
            self.slots.iter().filter(|slot| group.has(slot.name())).find_map(|slot| slot.keyed.as_ref());
        keyed.map(|keyed| keyed.spread.clone())
    }

    /// Refuses a table that has rows if pgrig cannot know which combinations of few values they
    /// use. For a single foreign key it knows: the server has returned the unused keys.
    fn refuse_unknown_present(&self, parts: &[Part], present: &Present) -> Result<(), CatalogError> {
        if self.request.first_row > 0 || !present.has_rows {
            return Ok(());
        }
        let starts_anew = |key: &&KeyInfo| {
            let wanted = self.wanted_key(key, parts);
            let mut turning =
                wanted.parts.iter().map(|&at| &parts[at]).filter(|part| part.turn.is_some()).peekable();
            let overlaps = key.elements.iter().any(|element| element.overlap);
            turning.peek().is_some() && turning.all(|part| !part.fresh || overlaps)
        };
        match self.info.keys.iter().find(starts_anew) {
            Some(key) => Err(CatalogError::RowsPresent {
                table: self.info.shown(),
                key: key.name.clone(),
                definition: key.definition.clone(),
                columns: columns_of(&key.elements, &self.info.column_names()),
            }),
            None => Ok(()),
        }
    }

    /// Number of the first row. Texts, uuids and the like follow from the row number alone, so
    /// pgrig skips as many row numbers as the table has rows. A caller that counts the rows itself
    /// has already done so.
    async fn first_row(&self, parts: &[Part], present: &Present) -> Result<u64, CatalogError> {
        let by_number = |part: &Part| {
            let slot = self.slots.iter().find(|slot| part.columns == [slot.name()]);
            part.turn.is_some() && slot.is_some_and(|slot| !is_counted_on(&slot.kind))
        };
        if self.request.first_row == 0 && self.request.present.is_none() && parts.iter().any(by_number) {
            return present.count(self.client, self.info).await;
        }
        Ok(self.request.first_row)
    }
}

/// Conditions that rows must fulfil, by origin.
struct Conditions {
    bounds: Option<Condition>,
    checks: Vec<Condition>,
}
