-- $1: schema; $2: names that will be needed there; $3: the journal's name; $4: pgrig's mark.
SELECT ARRAY(SELECT c.relname::text
               FROM pg_class c
               JOIN pg_namespace n ON n.oid = c.relnamespace
              WHERE n.nspname = $1 AND c.relname = ANY ($2::text[])
              ORDER BY 1) AS taken,
       (SELECT pg_get_userbyid(c.relowner)::text
          FROM pg_class c
          JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = $1 AND c.relname = $3 AND c.relkind = 'r'
            AND obj_description(c.oid, 'pg_class') = $4) AS journal_owner,
       current_user::text AS role,
       (SELECT has_schema_privilege(n.oid, 'USAGE') FROM pg_namespace n WHERE n.nspname = $1) AS may_use
