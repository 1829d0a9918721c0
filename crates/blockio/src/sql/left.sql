-- {journal}: what pgrig blockio lists its own in; $1: schema; $2: the extension; $3: pgrig's mark. What is listed there,
-- of which only what has the mark may be dropped.
SELECT ARRAY(SELECT name FROM {journal} WHERE kind = 'table') AS tables,
       EXISTS (SELECT FROM {journal} j
                 JOIN pg_extension e ON e.extname = $2
                WHERE j.kind = 'extension' AND pg_get_userbyid(e.extowner) = current_user
                  AND obj_description(e.oid, 'pg_extension') = $3) AS extension,
       EXISTS (SELECT FROM {journal} j
                 JOIN pg_namespace n ON n.nspname = $1
                WHERE j.kind = 'schema' AND pg_get_userbyid(n.nspowner) = current_user
                  AND obj_description(n.oid, 'pg_namespace') = $3) AS schema
