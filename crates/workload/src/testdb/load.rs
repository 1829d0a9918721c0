//! Runs a script of SQL, as pg_dump writes it, in a database: what psql would do, without psql.
