//! Copies of a template database, in each way that the server has.
