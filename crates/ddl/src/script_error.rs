//! Why the text of a migration, or of a reader or writer, is refused.

use failure::{Class, Classified};

/// Why a migration's text is refused.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// A command of psql's.
    #[error(
        "line {line}: {command} is a command of psql, which the server does not know: remove it, or write it as SQL"
    )]
    Command {
        /// The command.
        command: String,
        /// Its line.
        line: u64,
    },
    /// Data for COPY.
    #[error("line {line}: pgrig cannot run COPY … FROM stdin: write INSERT, or remove the COPY and its rows")]
    Data {
        /// Line of the statement.
        line: u64,
    },
    /// The text ends too early.
    #[error("the text ends inside {within} that begins at or after line {line}: close it")]
    EndsWithin {
        /// The construct.
        within: String,
        /// Line of the statement.
        line: u64,
    },
    /// A part that takes a migration back, and no other.
    #[error(
        "line {line}: the file has only a Down part ({down}), which pgrig does not measure: give a file with an Up part ({up}); or, to measure \
         these statements, remove this line"
    )]
    OnlyDown {
        /// Line of the comment.
        line: u64,
        /// The comment that begins the part that migrates.
        up: &'static str,
        /// The comment that begins this part.
        down: &'static str,
    },
    /// A transaction within --single-transaction.
    #[error("line {line}: {command} begins or ends a transaction: leave out --single-transaction")]
    Transaction {
        /// The command.
        command: String,
        /// Its line.
        line: u64,
    },
    /// A statement for transactions that outlive their session.
    #[error(
        "{place}: {command} is for transactions that outlive their session, and pgrig drops its databases after each run: write COMMIT (or ROLLBACK) in \
         place of PREPARE TRANSACTION, and remove COMMIT PREPARED and ROLLBACK PREPARED"
    )]
    TwoPhase {
        /// File and line.
        place: String,
        /// Its first words.
        command: &'static str,
    },
    /// A statement whose effect is not in the database.
    #[error(
        "{place}: {command} concerns the whole server, and pgrig runs the migration several times in databases that it drops: remove this statement{}",
        if *.is_of_roles {
            ". If a later statement needs a role, create the role on the server that measures (CREATE ROLE NAME)"
        } else {
            ""
        }
    )]
    WholeServer {
        /// File and line.
        place: String,
        /// Its first words.
        command: String,
        /// Whether it is of roles.
        is_of_roles: bool,
    },
    /// A statement that lets foreign tables connect.
    #[error(
        "{place}: {command} lets foreign tables connect to other servers, where each of the several runs of the migration could change data: remove this statement. Statements on \
         foreign tables are not measurable"
    )]
    Foreign {
        /// File and line.
        place: String,
        /// Its first words.
        command: String,
    },
    /// A statement that writes files or runs programs.
    #[error(
        "{place}: {command} acts on files or programs of the server's machine, in each of the migration's several runs: remove this statement"
    )]
    Files {
        /// File and line.
        place: String,
        /// Its first words.
        command: String,
    },
    /// A statement that sends rows to its client.
    #[error(
        "{place}: COPY … TO STDOUT writes to the client, and changes nothing in the database: remove this statement"
    )]
    Sent {
        /// File and line.
        place: String,
    },
    /// Nothing to measure.
    #[error(
        "the migration has no statement: give a file with SQL, or -c 'ALTER TABLE orders ADD COLUMN note text'"
    )]
    Empty,
}

impl Classified for ScriptError {
    fn class(&self) -> Class {
        Class::Request
    }
}

/// Why the user's reader or writer is refused.
#[derive(Debug, thiserror::Error)]
pub enum ProbingError {
    /// It is not a script of pgbench's.
    #[error(transparent)]
    Script(#[from] script::ScriptError),
    /// A command that cannot be carried out.
    #[error("{script}:{line}: {why} in command \"{command}\"")]
    Command {
        /// The script.
        script: String,
        /// Its line.
        line: usize,
        /// The command.
        command: String,
        /// The reason.
        why: String,
    },
}

impl Classified for ProbingError {
    fn class(&self) -> Class {
        Class::Request
    }
}
