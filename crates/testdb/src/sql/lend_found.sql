-- $1: what names of pgrig's begin with. This role's databases with such names, the oldest first.
SELECT datname::text AS name, shobj_description(oid, 'pg_database') AS comment,
       -- What DROP DATABASE leaves if it is interrupted (DATCONNLIMIT_INVALID_DB, catalog/pg_database.h).
       datconnlimit = -2 AS half_dropped,
       -- The mark of a database that has no comment yet (clone.rs).
       datconnlimit = 1885827689 AS is_being_made
  FROM pg_database
 WHERE starts_with(datname::text, $1) AND datdba = (SELECT oid FROM pg_roles WHERE rolname = current_user)
 ORDER BY oid
