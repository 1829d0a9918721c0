//! pg_dump's plain SQL, read as a stream: what is a statement, and what only looks like one.
