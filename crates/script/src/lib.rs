//! pgbench's script language: SQL statements, meta commands, expressions, variables, random numbers.
//! Parsed once, carried out many times. No database, no async, no clock, no files.
//!
//! Start reading at [`Scripts::parse`] and [`Script::proceed`]. This crate must not know a server: its caller sends the
//! statements, sleeps and runs the shell commands, and `tps` has the loop. It has a lexer of its own, since pgbench's
//! language is not SQL.
//!
//! `parse/` reads all scripts of a run together, because a client's variables live on from one script to the next: names
//! become slots, `\if` becomes jumps, `:name` becomes places in a statement's text. A `Fault` is an error at an offset; at
//! the end it gets script, line and caret. [`Script::proceed`] carries out the commands that need neither server, clock
//! nor shell, and returns the index of the next one that does. Nothing is allocated there but texts of `\gset`.
//! `builtin/` has pgbench's own scripts.
//! It follows PostgreSQL 18 as its sources have it (`src/bin/pgbench/`: `pgbench.c`, `exprparse.y`,
//! `exprscan.l`; `src/fe_utils/psqlscan.l`; `src/common/pg_prng.c`). With one `--random-seed` the random
//! numbers are those of pgbench 15 to 18, client by client; older ones have another generator. Logarithms
//! and powers are the platform's C library's, as in pgbench.
//!
//! Parsing finds some errors that pgbench finds only while it runs: names that no variable can have, quotes and
//! parentheses that are not closed, pipelines that cannot work.
//!
//! ```
//! use script::{Action, Scripts, Source, Start};
//!
//! let source = Source::file("transfer.sql", "\\set aid random(1, 100 * :scale)\nSELECT :aid;\n", 1);
//! let scripts = Scripts::parse(&[source])?;
//! let mut started = scripts.start(&Start { seed: 42, scale: 10, ..Start::default() });
//! let client = &mut started.clients[0];
//!
//! // \set is carried out here; the next command is for a server.
//! let script = &scripts[0];
//! let at = script.proceed(0, client).unwrap().unwrap();
//! let Action::Sql(sql) = script.commands()[at].action() else { panic!() };
//! let mut text = Vec::new();
//! sql.write(&client.variables, &mut text);
//! assert_eq!(text, b"SELECT 653;");
//! assert_eq!(sql.parameterised(), "SELECT $1;");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod command;
mod error;
mod evaluate;
mod expression;
mod hash;
mod number;
mod option;
mod parse;
mod random;
mod run;
mod scripts;
mod source;
mod start;
mod value;
mod variables;

pub use command::{Action, Command, Receive, Script, Shell, Sleep, SleepError, Sql, Unit};
pub use error::{Problem, ScriptError};
pub use evaluate::EvaluationError;
pub use expression::Expression;
pub use option::{Definition, OptionError};
pub use random::Random;
pub use run::{Client, Failure, Step};
pub use scripts::Scripts;
pub use source::Source;
pub use start::{Start, Started, Thread};
pub use value::Value;
pub use variables::{InvalidName, Names, Slot, Variables};
