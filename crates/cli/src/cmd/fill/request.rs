//! Converts arguments to requests.

use std::num::NonZeroU16;
use std::path::PathBuf;

use fill::limits::{Limits, SpaceLimit};
use fill::{
    Amount, CopyFormat, InitStep, InitSteps, MethodChoice, Modelled, ModelledType, OriginalHeap, OwnTable,
    Part, PartitionMethod, Persistence, ProbeKind, Request, RowsRule, SchemaAmount, SchemaRequest, Subject,
    TableRows, sql_of_script,
};
use model::{Model, Table};
use rowgen::Payload;

use crate::app::command_line::shown;
use crate::app::failure::Usage;
use crate::app::input;
use crate::cmd::fill::args::FillArgs;
use crate::cmd::fill::values::{Bloat, Filler, Format, Index, Method, RowsArg, Triggering, partitions};

impl FillArgs {
    /// The request, after a check for errors that only the command line can contain.
    pub(crate) fn request(&self) -> Result<Request, Usage> {
        if self.trials.is_some() && self.ladder.is_none() {
            return Err(Usage("--trials sets the number of trials of --ladder: give both".to_owned()));
        }
        let of_new_tables = self.unlogged
            || self.fillfactor != 100
            || !matches!(self.index, Index::Btree)
            || self.tablespace.is_some()
            || self.index_tablespace.is_some()
            || self.no_autovacuum;
        if self.append && of_new_tables {
            return Err(Usage(
                "--append does not change the tables: --unlogged, --fillfactor, --index, tablespaces, \
                 --no-autovacuum, and levels that set these, are for new tables: leave them out"
                    .to_owned(),
            ));
        }
        let subject = self.subject()?;
        if self.plain && !matches!(subject, Subject::Table(_)) {
            return Err(Usage(
                "--plain is for tables of your own: give --table, --ddl or --all-tables with it".to_owned(),
            ));
        }
        if self.triggers == Triggering::Off && !matches!(subject, Subject::Table(_)) {
            return Err(Usage(
                "--triggers is for tables of your own: give --table, --ddl or --all-tables with it"
                    .to_owned(),
            ));
        }
        let steps = self.steps();
        let limits = self.limits();
        let open_ended = limits.is_open_ended();
        let amount = match (self.size, self.scale, &self.rows) {
            (_, _, Some(RowsArg::Rules(rules))) => return Err(self.rules_of_one(rules)),
            (Some(_), _, Some(_)) | (_, Some(_), Some(_)) => {
                return Err(Usage(
                    "SIZE, --scale and --rows each set the amount: give one of them".to_owned(),
                ));
            }
            (Some(size), _, _) => Amount::Size(size.0),
            (_, Some(scale), _) => Amount::Scale(scale.whole()?),
            (_, _, Some(RowsArg::Each(rows))) => Amount::Rows(*rows),
            _ if open_ended => Amount::Unbounded,
            _ => Amount::Nothing,
        };
        let partition_method = match self.partition_method {
            Some(method) => method.into(),
            None if open_ended => PartitionMethod::Hash,
            None => PartitionMethod::Range,
        };
        Ok(Request {
            subject,
            amount,
            append: self.append,
            schema: self.schema.clone(),
            persistence: if self.unlogged { Persistence::Unlogged } else { Persistence::Logged },
            fillfactor: self.fillfactor,
            partitions: partitions(self.partitions, partition_method),
            index: self.index.into(),
            tablespace: self.tablespace.clone(),
            index_tablespace: self.index_tablespace.clone(),
            autovacuum: !self.no_autovacuum,
            payload: match self.payload {
                Filler::Blank => Payload::Blank,
                Filler::Text => Payload::Text,
                Filler::Random => Payload::Random,
            },
            method: self.method(),
            streams: self.streams.and_then(NonZeroU16::new),
            format: self.format(),
            chunk: self.chunk.map(|chunk| chunk.0),
            in_chunks: open_ended || limits != Limits::default() || self.probe.is_some(),
            is_scratch: false,
            part: self.part()?,
            place: None,
            steps,
        })
    }

    /// The part that this process is.
    fn part(&self) -> Result<Option<Part>, Usage> {
        let part = self.part.map(|part| part.part(&|name| std::env::var(name).ok())).transpose()?;
        if part.is_some() && self.no_resume {
            let text = "--part with --no-resume: each part would forget the rows that other parts have loaded. Leave out --no-resume. \
                        To start over, drop the tables before the parts start";
            return Err(Usage(text.to_owned()));
        }
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Ok(part.map(|part| Part { number: number(part.number), of: number(part.of) }))
    }

    /// The SQL of --ddl.
    pub(crate) fn ddl(&self) -> Result<Option<String>, Usage> {
        let read = |path: &PathBuf| {
            let failed = |error: String| {
                let name = path.display();
                if !path.exists() && path.to_string_lossy().contains(char::is_whitespace) {
                    return Usage(format!(
                        "--ddl {name}: there is no file of this name. To give SQL, write it to standard input of pgrig fill --ddl -"
                    ));
                }
                Usage(format!("cannot read --ddl {name}: {}", input::for_schema(error, path)))
            };
            let text = input::file_or_stdin(path).map_err(failed)?;
            sql_of_script(&text).map_err(|error| Usage(error.to_string()))
        };
        self.ddl.as_ref().map(read).transpose()
    }

    /// The model of --model.
    fn model(&self) -> Result<Option<Model>, Usage> {
        let read = |path: &PathBuf| {
            let failed = |error: String| Usage(format!("--model {}: {error}", path.display()));
            let text = input::file(path).map_err(|error| failed(input::for_model(error)))?;
            Model::read(&text).map_err(|error| failed(error.to_string()))
        };
        self.model.as_ref().map(read).transpose()
    }

    fn subject(&self) -> Result<Subject, Usage> {
        if self.series {
            return Ok(Subject::Series);
        }
        if self.table.is_none() && self.ddl.is_none() && self.column.is_empty() {
            return Ok(Subject::Pgbench);
        }
        Ok(Subject::Table(OwnTable {
            name: self.table.clone(),
            ddl: self.ddl()?,
            create_roles: self.create_roles,
            columns: self.column.clone(),
            seed: self.seed,
            plain: self.plain,
            triggers: self.triggers.into(),
            together: Vec::new(),
            in_cycle: false,
            order: fill::RowOrder::Any,
        }))
    }

    /// Limits that end the fill, other than its amount.
    pub(crate) fn limits(&self) -> Limits {
        let space = match (self.brim, self.until_free) {
            (true, _) => SpaceLimit::Brim { reserve: self.reserve.map_or(0, |size| size.0) },
            (false, Some(size)) => SpaceLimit::UntilFree(size.0),
            (false, None) => SpaceLimit::MustFit,
        };
        Limits {
            space,
            duration: self.duration.map(|length| length.0),
            marks: self.mark.clone().map_or(Vec::new(), |marks| marks.0),
            wait_for_space: self.wait_for_space.map(|length| length.0),
        }
    }

    fn method(&self) -> MethodChoice {
        let in_server = self.server_side || self.init_steps.as_ref().is_some_and(|steps| steps.server_side);
        match self.method {
            Method::Auto if in_server => MethodChoice::Server,
            Method::Auto => MethodChoice::Auto,
            Method::Copy => MethodChoice::Copy,
            Method::Server => MethodChoice::Server,
            Method::Reinsert => MethodChoice::Reinsert,
            Method::Explode => MethodChoice::Explode,
            Method::Direct => MethodChoice::Direct,
        }
    }

    /// The request for all tables of a schema; none if the arguments are for one table. With --ddl,
    /// the number of tables is known only after its SQL has been run.
    pub(crate) fn schema_request(&self) -> Result<Option<SchemaRequest>, Usage> {
        let is_of_one = self.table.is_some() || self.series || self.ladder.is_some();
        if is_of_one || self.ddl.is_none() && self.model.is_none() && !self.all_tables {
            if self.exclude_table.is_empty() {
                return Ok(None);
            }
            return Err(Usage("--exclude-table goes with --all-tables, --ddl or --model".to_owned()));
        }
        let limits = self.limits();
        let is_limited = limits != Limits::default();
        self.refuse_for_schemas()?;
        if limits.space != SpaceLimit::MustFit || self.probe.is_some() {
            if self.ddl.is_some() && !self.all_tables {
                return self.of_one_table();
            }
            let text = "--brim and --until-free fill one table with as many rows as the disk has room for, and --probe queries one \
                        table as it grows: give --table NAME instead of --all-tables or --model";
            return Err(Usage(text.to_owned()));
        }
        let steps = InitSteps::whole().without(InitStep::PrimaryKeys).without(InitStep::Create);
        let amount = match (self.size, &self.rows) {
            (Some(_), Some(RowsArg::Each(_))) => {
                return Err(Usage("SIZE and --rows N each set the amount: give one of them".to_owned()));
            }
            (Some(size), _) => SchemaAmount::Size(size.0),
            (None, Some(RowsArg::Each(rows))) => SchemaAmount::Rows(*rows),
            (None, Some(RowsArg::Rules(_))) => SchemaAmount::Rules,
            (None, None) if self.scale.is_some() || self.model.is_some() => SchemaAmount::Rules,
            // A limit ends the fill of one table.
            (None, None) if is_limited && self.ddl.is_some() && !self.all_tables => {
                return self.of_one_table();
            }
            (None, None) => {
                return Err(self.without_amount("give SIZE, --rows N or --scale N"));
            }
        };
        let mut rules = match &self.rows {
            Some(RowsArg::Rules(rules)) => rules.clone(),
            _ => Vec::new(),
        };
        let model = self.model()?;
        let tables = model.as_ref().map_or(&[][..], |model| &model.tables);
        if !matches!(amount, SchemaAmount::Rows(_)) {
            // The user's own rules stand first.
            let of_model = |table: &Table| RowsRule {
                table: table.name.clone(),
                rows: TableRows::InProportion(table.rows),
            };
            rules.extend(tables.iter().filter(|table| table.rows > 0).map(of_model));
        }
        // A table without rows stays so.
        let empty = tables.iter().filter(|table| table.rows == 0).map(|table| table.name.clone());
        let empty = empty.collect();
        let ddl = match &model {
            Some(_) if self.all_tables => None,
            Some(model) => Some(sql_of_script(&model.ddl).map_err(|error| Usage(error.to_string()))?),
            None => self.ddl()?,
        };
        Ok(Some(SchemaRequest {
            ddl,
            modelled: tables.iter().flat_map(modelled).collect(),
            modelled_types: tables.iter().flat_map(types_of).collect(),
            heaps: tables.iter().filter(|table| table.rows > 0).map(heap_of).collect(),
            keeps_bloat: self.bloat == Some(Bloat::Keep),
            create_roles: self.create_roles,
            schema: self.schema.clone(),
            exclude: self.exclude_table.clone(),
            empty,
            amount,
            rules,
            scale: self.scale.map_or(1.0, |scale| scale.0),
            columns: self.column.clone(),
            spreads_keys: false,
            append: self.append,
            persistence: if self.unlogged { Persistence::Unlogged } else { Persistence::Logged },
            method: self.method(),
            streams: self.streams.and_then(NonZeroU16::new),
            format: self.format(),
            chunk: self.chunk.map(|chunk| chunk.0),
            in_chunks: is_limited,
            seed: self.seed,
            plain: self.plain,
            triggers: self.triggers.into(),
            steps: if self.data_only { steps.without(InitStep::Vacuum) } else { steps },
            part: self.part()?,
        }))
    }

    /// The error of a request without an amount, or that of the file of --ddl.
    pub(super) fn without_amount(&self, remedy: &str) -> Usage {
        let is_file = self.ddl.as_deref().is_some_and(|file| file.as_os_str() != "-");
        if is_file && let Err(unreadable) = self.ddl() {
            return unreadable;
        }
        Usage(format!("no amount is given: {remedy}, for example: {}", with_size()))
    }

    /// The error of rules for a fill of one table.
    fn rules_of_one(&self, rules: &[RowsRule]) -> Usage {
        Usage(match (&self.table, rules) {
            (Some(_), [RowsRule { rows: TableRows::Exactly(rows), .. }]) => {
                format!("with --table, give the number alone: --rows {rows}")
            }
            (Some(_), _) => {
                "with --table, give the number alone, for example --rows 1000; --rows TABLE=ROWS is for several tables".to_owned()
            }
            (None, _) => {
                "--rows TABLE=ROWS is for several tables: give --ddl or --all-tables, without --table".to_owned()
            }
        })
    }

    /// No request for several tables, unless some of them are excluded.
    fn of_one_table(&self) -> Result<Option<SchemaRequest>, Usage> {
        if self.exclude_table.is_empty() {
            return Ok(None);
        }
        let text = "--exclude-table is for several tables. --brim, --until-free and --probe are for one table; without SIZE, --rows or \
            --scale, so are --for, --mark and --wait-for-space. Leave out --exclude-table, or these options";
        Err(Usage(text.to_owned()))
    }

    /// Refuses options that mean nothing, or something dangerous, for all tables of a schema.
    fn refuse_for_schemas(&self) -> Result<(), Usage> {
        if let Some((option, instead)) = self.of_pgbench() {
            return Err(Usage(format!("{option} is for pgbench's tables: leave it out{instead}")));
        }
        let by_server =
            matches!(self.method(), MethodChoice::Server | MethodChoice::Reinsert | MethodChoice::Explode);
        let refusal = if by_server {
            "pgrig fills tables of your own by COPY or by writing pages: give --method copy or direct, or leave \
             out --method and --server-side"
        } else if self.unlogged && (self.ddl.is_none() && self.model.is_none() || self.all_tables) {
            "--unlogged is for tables that --ddl creates: leave it out, and make existing tables unlogged while they are empty \
             (ALTER TABLE orders SET UNLOGGED)"
        } else if self.bloat.is_some() && self.all_tables {
            "--bloat keep changes the fillfactor of tables during the fill, so it is for tables that --model creates: leave out \
             --all-tables, or leave out --bloat"
        } else if self.append && (self.ddl.is_some() || self.model.is_some() && !self.all_tables) {
            "--append adds to existing tables, and --ddl creates tables: leave out --append, or leave out --ddl (to add rows \
             to all existing tables, give --all-tables --append)"
        } else {
            return Ok(());
        };
        Err(Usage(refusal.to_owned()))
    }

    /// An option that only pgbench's tables have, and the way to the same for tables of one's own.
    fn of_pgbench(&self) -> Option<(&'static str, &'static str)> {
        let in_ddl = ", and write it into the statements of --ddl";
        let column = " (for a column of your own: --column TABLE.COLUMN=text(80))";
        let drop = ", and drop or TRUNCATE tables of your own yourself";
        let options = [
            // A level sets several of the others.
            (self.level.is_some(), "--level", ""),
            (self.partitions.is_some(), "--partitions", in_ddl),
            (self.fillfactor != 100, "--fillfactor", in_ddl),
            (!matches!(self.index, Index::Btree), "--index", in_ddl),
            (!matches!(self.payload, Filler::Blank), "--payload", column),
            (self.tablespace.is_some(), "--tablespace", in_ddl),
            (self.index_tablespace.is_some(), "--index-tablespace", in_ddl),
            (self.no_autovacuum, "--no-autovacuum", in_ddl),
            (self.foreign_keys, "--foreign-keys", in_ddl),
            (self.drop, "--drop", drop),
            (self.init_steps.is_some(), "--init-steps", ""),
        ];
        options.into_iter().find_map(|(given, option, instead)| given.then_some((option, instead)))
    }

    fn format(&self) -> Option<CopyFormat> {
        self.format.map(|format| match format {
            Format::Text => CopyFormat::Text,
            Format::Binary => CopyFormat::Binary,
        })
    }

    /// Whether a second run of the same command fails, because pgbench's tables then exist.
    pub(crate) fn works_once(&self) -> bool {
        let is_own = self.table.is_some() || self.ddl.is_some() || self.all_tables || self.model.is_some();
        let steps = self.steps();
        let creates = steps.include(InitStep::Create) && !steps.include(InitStep::Drop);
        creates && !is_own && !self.append && self.ladder.is_none()
    }

    /// The steps by --init-steps, or else by the other options.
    fn steps(&self) -> InitSteps {
        let own = self.table.is_some() || self.ddl.is_some();
        let steps = match &self.init_steps {
            Some(letters) => letters.steps.clone(),
            None if own => {
                let steps = if self.data_only { InitSteps::data_only() } else { InitSteps::whole() };
                let steps = steps.without(InitStep::PrimaryKeys);
                if self.ddl.is_some() { steps } else { steps.without(InitStep::Create) }
            }
            None if self.data_only => InitSteps::data_only(),
            None => InitSteps::whole(),
        };
        let adds = self.append && self.init_steps.is_none();
        let steps = if adds { steps.without(InitStep::Create).without(InitStep::PrimaryKeys) } else { steps };
        let steps = if self.foreign_keys { steps.then(InitStep::ForeignKeys) } else { steps };
        let looks_up = self.probe.as_ref().is_some_and(ProbeKind::needs_index);
        let steps = if looks_up && self.init_steps.is_none() { steps.keys_first() } else { steps };
        if self.drop { steps.first(InitStep::Drop) } else { steps }
    }
}

/// The command of this process, with a size.
fn with_size() -> String {
    let mut words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let at = words.iter().position(|word| word == "fill").map_or(words.len(), |at| at + 1);
    words.insert(at, "1GB".to_owned());
    format!("pgrig {}", shown(&words))
}

fn modelled(table: &Table) -> impl Iterator<Item = Modelled> {
    table.specs().into_iter().map(|spec| Modelled { table: table.name.clone(), spec })
}

fn heap_of(table: &Table) -> OriginalHeap {
    OriginalHeap {
        table: table.name.clone(),
        rows: table.rows,
        bytes: table.bytes.heap,
        without_bloat: table.bytes.without_bloat(),
    }
}

fn types_of(table: &Table) -> impl Iterator<Item = ModelledType> {
    table.columns.iter().map(|column| ModelledType {
        table: table.name.clone(),
        column: column.name.clone(),
        data_type: column.data_type.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_from_switches() {
        for (flags, letters) in [
            ("1GB", "tgvp"),
            ("1GB --drop", "dtgvp"),
            ("1GB --data-only --drop", "dtg"),
            ("1GB --foreign-keys", "tgvpf"),
            ("1GB --append", "gv"),
            ("1GB --append --data-only", "g"),
            ("1GB -I dtGvp", "dtgvp"),
            ("1GB --probe lookup", "tpgv"),
            ("1GB --probe scan", "tgvp"),
            ("--brim", "tgvp"),
        ] {
            let request = FillArgs::of_flags(flags).unwrap().request().unwrap();
            assert_eq!(request.steps.letters(), letters, "{flags}");
        }
    }
}
