//! Backups of real servers, restored; and damaged ones, noticed.

mod at_once;
mod check;
mod cpu;
mod crash;
mod damage;
mod held;
mod hosts;
mod incremental;
mod interrupted;
mod logins;
mod lost;
mod others;
mod pages;
mod pitr;
mod prepared;
mod probe;
mod readable;
mod rehearse;
mod restore;
mod room;
mod sequences;
mod sizes;
mod support;
mod tablespaces;
mod tls;
mod unchanged;
