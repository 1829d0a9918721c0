-- $1: schema; $2: what pgrig micro says in the comments of its own. What it left there, as far as this role may
-- drop it.
SELECT ARRAY(SELECT c.relname::text FROM pg_class c
              WHERE c.relnamespace = n.oid AND pg_get_userbyid(c.relowner) = current_user
                AND obj_description(c.oid, 'pg_class') = $2) AS tables,
       ARRAY(SELECT e.extname::text FROM pg_extension e
              WHERE e.extnamespace = n.oid AND pg_get_userbyid(e.extowner) = current_user
                AND obj_description(e.oid, 'pg_extension') = $2) AS extensions,
       pg_get_userbyid(n.nspowner) = current_user
           AND coalesce(obj_description(n.oid, 'pg_namespace') = $2, false) AS is_own
  FROM pg_namespace n
 WHERE n.nspname = $1
