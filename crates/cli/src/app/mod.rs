//! Shared by all verbs: arguments, the choice of the server, interruption, output, saved runs, exit status.

pub(crate) mod args;
pub(crate) mod bar;
pub(crate) mod command_line;
pub(crate) mod conduct;
pub(crate) mod duration;
pub(crate) mod exit;
pub(crate) mod failure;
pub(crate) mod fault;
pub(crate) mod input;
pub(crate) mod interrupt;
pub(crate) mod json;
pub(crate) mod markdown;
pub(crate) mod mistakes;
pub(crate) mod output;
pub(crate) mod plain;
pub(crate) mod pooler;
pub(crate) mod printer;
pub(crate) mod questions;
pub(crate) mod recovery;
pub(crate) mod runs;
pub(crate) mod size;
pub(crate) mod table;
pub(crate) mod target;
pub(crate) mod terminal;
pub(crate) mod version;
pub(crate) mod wrap;
