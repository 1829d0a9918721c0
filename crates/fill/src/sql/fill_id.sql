-- The database, and the table that records a fill.
SELECT (SELECT oid FROM pg_database WHERE datname = current_database())::oid AS database,
       to_regclass($1)::oid AS record
