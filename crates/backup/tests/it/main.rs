//! Backups of real servers, restored.

mod rehearse;
mod support;
