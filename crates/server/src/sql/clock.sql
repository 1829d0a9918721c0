-- The server's clock, its start, and the database: together the last two identify a database of a running server.
SELECT extract(epoch FROM clock_timestamp())::float8 AS time,
       extract(epoch FROM pg_postmaster_start_time())::float8 AS started,
       (SELECT oid FROM pg_database WHERE datname = current_database())::oid AS database
