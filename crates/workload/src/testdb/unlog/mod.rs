//! Makes the tables of a live database unlogged, and logged again.
