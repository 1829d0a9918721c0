//! Backups of real servers, restored; and damaged ones, noticed.

mod check;
mod damage;
mod incremental;
mod rehearse;
mod sizes;
mod support;
