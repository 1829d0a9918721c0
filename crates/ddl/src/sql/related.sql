-- $1: tables. Those that reference them, and those that they reference.
SELECT conrelid AS oid FROM pg_catalog.pg_constraint WHERE contype = 'f' AND confrelid = ANY ($1)
 UNION
SELECT confrelid FROM pg_catalog.pg_constraint WHERE contype = 'f' AND conrelid = ANY ($1)
