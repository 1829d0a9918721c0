//! The privileges of a role, and the verbs that work with them.

use backup::Readiness;
use connect::{ConnectError, Connection};
use server::quote::shown;
use server::{Survey, ask};

/// The privileges that verbs depend on.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each right is one")]
pub(super) struct Rights {
    is_superuser: bool,
    may_create_databases: bool,
    may_create_schemas: bool,
    may_create_tables: bool,
    may_monitor: bool,
    may_checkpoint: bool,
    /// Whether the role may set `track_io_timing`.
    may_time: bool,
    /// Whether the role may create tables in a schema that blockio has made.
    has_blockio_schema: bool,
    /// A schema in which it may create tables, quoted.
    a_schema: Option<String>,
    /// Number of tables outside the system's schemas.
    tables: i64,
    /// Number of those of which the role may read no column.
    unreadable_tables: i64,
    /// Schemas with tables that the role may not use, quoted.
    closed_schemas: Vec<String>,
}

impl Rights {
    pub(super) async fn ask(connection: &Connection) -> Result<Self, ConnectError> {
        let row = ask(connection, include_str!("doctor.sql"), &[]).await?;
        let is_superuser: bool = row.get("is_superuser");
        // PostgreSQL 13 and 14 lack the function, and the right.
        let may_time: bool = if row.get("can_grant_settings") {
            ask(connection, "SELECT has_parameter_privilege('track_io_timing', 'SET')", &[]).await?.get(0)
        } else {
            is_superuser
        };
        Ok(Self {
            is_superuser,
            may_checkpoint: row.get("may_checkpoint"),
            may_time,
            may_create_databases: row.get("may_create_databases"),
            may_create_schemas: row.get("may_create_schemas"),
            may_create_tables: row.get("may_create_tables"),
            may_monitor: row.get("may_monitor"),
            has_blockio_schema: row.get("has_blockio_schema"),
            a_schema: row.get("a_schema"),
            tables: row.get("tables"),
            unreadable_tables: row.get("unreadable_tables"),
            closed_schemas: row.get("closed_schemas"),
        })
    }

    /// The privileges as text.
    pub(super) fn phrase(&self) -> String {
        if self.is_superuser {
            return "superuser".to_owned();
        }
        let rights = [
            (self.may_create_tables, "may create tables"),
            (self.may_create_schemas, "schemas"),
            (self.may_create_databases, "databases"),
            (self.may_monitor, "pg_monitor"),
        ];
        let rights: Vec<&str> = rights.into_iter().filter(|(has, _)| *has).map(|(_, right)| right).collect();
        if rights.is_empty() {
            "cannot create tables, schemas or databases".to_owned()
        } else {
            rights.join(", ")
        }
    }

    /// Each verb, with the extent to which it works, and the reason if that is not complete.
    pub(super) fn verbs(&self, survey: &Survey, backup: &Readiness) -> [(&'static str, String); 8] {
        let Survey { server, site, .. } = survey;
        let role = shown(&server.role);
        let read_only = if server.in_recovery {
            Some("no: the server is a standby")
        } else if server.read_only {
            Some("no: the session is read-only (default_transaction_read_only)")
        } else {
            None
        };
        let no = |why: &str| why.to_owned();
        let fill = match read_only {
            Some(why) => no(why),
            None if !self.may_create_tables => {
                let grant = format!("run GRANT CREATE ON SCHEMA public TO {role}");
                if self.may_create_schemas {
                    format!(
                        "only with --schema NAME, which pgrig creates; to use it without --schema, {grant}"
                    )
                } else {
                    format!("no: {grant}")
                }
            }
            None if site.own => "yes, by writing pages directly".to_owned(),
            None if survey.data_directory.is_some() => {
                "yes, by COPY; --method direct writes pages directly".to_owned()
            }
            None => match survey.restricted_role() {
                Some(_) => format!(
                    "yes, by COPY; for --until-free, --reserve and --mark, run GRANT pg_read_all_settings TO {role}"
                ),
                None => {
                    "yes, by COPY; --until-free, --reserve and --mark need the server's machine".to_owned()
                }
            },
        };
        let blockio = match read_only {
            Some(why) => no(why),
            None if !self.may_create_schemas && !self.has_blockio_schema => {
                let grant = format!("run GRANT CREATE ON DATABASE {} TO {role}", shown(&server.database));
                match &self.a_schema {
                    Some(schema) => {
                        format!("only with --schema {schema}; to use it without --schema, {grant}")
                    }
                    None => format!("no: {grant}"),
                }
            }
            None => self.blockio(&role),
        };
        let tps = match read_only {
            Some(_) => "read-only scripts (-S); --matrix durability: no".to_owned(),
            None if site.own => "yes".to_owned(),
            None if self.is_superuser => {
                "yes; --matrix durability needs --allow-dangerous-settings".to_owned()
            }
            None => format!(
                "yes, on tables that role {role} may read and write; --matrix durability=dangerous needs a superuser, or grants (15 and later)"
            ),
        };
        let micro = match read_only {
            Some(_) => "expressions and SELECT; --ddl: no".to_owned(),
            None if self.may_create_tables => "yes".to_owned(),
            None => "expressions and SELECT; --ddl needs CREATE on a schema".to_owned(),
        };
        let testdb = match read_only {
            Some(why) => no(why),
            None if self.may_create_databases => "yes".to_owned(),
            None => format!("no: run ALTER ROLE {role} CREATEDB"),
        };
        let ddl = self.closed(&role).unwrap_or_else(|| {
            "yes: it only reads this database, and measures on pgrig's own server".to_owned()
        });
        [
            ("fill", fill),
            ("model", self.model(&role)),
            ("blockio", blockio),
            ("tps", tps),
            ("micro", micro),
            ("ddl", ddl),
            ("backup", self.backup(&role, backup)),
            ("testdb", testdb),
        ]
    }

    /// The parts of blockio that work, if it works.
    fn blockio(&self, role: &str) -> String {
        let parts = [
            (self.may_checkpoint, "CHECKPOINT"),
            (self.may_time, "I/O timing"),
            (self.is_superuser, "eviction"),
        ];
        let lacks: Vec<&str> = parts.into_iter().filter(|(may, _)| !may).map(|(_, part)| part).collect();
        match lacks.as_slice() {
            [] => "yes".to_owned(),
            [one] => format!("yes, without {one}: role {role} lacks the right"),
            [first @ .., last] => {
                format!("yes, without {} and {last}: role {role} lacks the rights", first.join(", "))
            }
        }
    }

    /// Whether backups can be rehearsed.
    fn backup(&self, role: &str, readiness: &Readiness) -> String {
        let Readiness { programs, no_base_backup } = readiness;
        match (programs, self.unreadable_tables, no_base_backup) {
            (Err(error), ..) => format!("no: {error}"),
            (_, 1.., _) => format!(
                "no: {role} lacks SELECT on {} of {} tables, and pg_dump reads all: run GRANT pg_read_all_data TO {role} (14 and \
                 later), or grant SELECT",
                self.unreadable_tables, self.tables
            ),
            (_, _, Some(why)) => format!("yes, with pg_dump; not with pg_basebackup: {why}"),
            (_, _, None) => "yes".to_owned(),
        }
    }

    /// Whether a model can be captured, on a standby too.
    fn model(&self, role: &str) -> String {
        if let Some(no) = self.closed(role) {
            return no;
        }
        match (self.tables, self.unreadable_tables) {
            (0, _) => "nothing to capture: this database has no tables".to_owned(),
            (_, 0) => "yes".to_owned(),
            (tables, unreadable) if tables == unreadable => format!(
                "no: {role} may SELECT from no table: run GRANT pg_read_all_data TO {role} (14 and later), or grant SELECT"
            ),
            (tables, unreadable) => format!(
                "yes, without statistics of {unreadable} of {tables} tables, for which {role} lacks SELECT"
            ),
        }
    }

    /// The answer for verbs that read the catalogs on all tables, if the role may not use a schema.
    fn closed(&self, role: &str) -> Option<String> {
        let schemas = self.closed_schemas.join(", ");
        (!schemas.is_empty()).then(|| format!("no: run GRANT USAGE ON SCHEMA {schemas} TO {role}"))
    }
}
