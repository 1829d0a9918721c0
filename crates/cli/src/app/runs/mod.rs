//! Run documents: how they are saved, where they are, and which of them a word on the command line
//! names.
//!
//! - `file`: the document of a running run, saved as a whole each time.
//! - `head`: the part of a document that lists and choices need, read without the rest.
//! - `store`: all saved runs, newest first.
//! - `select`: finds documents by the words of the command line.
//! - `documents`: the documents in a file.

mod documents;
mod file;
mod head;
mod select;
mod store;

pub(crate) use documents::{Document, in_file};
pub(crate) use file::{RunFile, identify};
pub(crate) use head::{figures, is_id};
pub(crate) use select::{Labelled, RUN, Selection, VERBS, is_file, is_reserved};
pub(crate) use store::{Saved, Store};
