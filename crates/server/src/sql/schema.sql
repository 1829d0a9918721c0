-- $1: schema asked for, NULL for the current one.
WITH asked AS (
    SELECT coalesce($1::text, current_schema()::text) AS name
), existing AS (
    SELECT n.oid FROM pg_namespace n, asked WHERE n.nspname = asked.name
)
SELECT asked.name AS schema,
       current_user::text AS role,
       current_database()::text AS database,
       EXISTS (SELECT FROM existing) AS schema_exists,
       has_database_privilege(current_database(), 'CREATE') AS may_create_schema,
       coalesce((SELECT has_schema_privilege(oid, 'CREATE') FROM existing), false) AS may_create_tables
  FROM asked
