-- $1: names. Which of them are names of volatile functions that belong neither to PostgreSQL nor to an extension.
SELECT DISTINCT p.proname::text AS name
  FROM pg_proc p
 WHERE p.proname = ANY ($1::text[]) AND p.prokind = 'f' AND p.provolatile = 'v'
   AND NOT EXISTS (SELECT FROM pg_proc own
                    WHERE own.proname = p.proname AND own.pronamespace = 'pg_catalog'::regnamespace)
   AND NOT EXISTS (SELECT FROM pg_depend d
                    WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
 ORDER BY name
