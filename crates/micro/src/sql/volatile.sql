-- $1: names. Which of them are names of volatile functions, and not of functions of PostgreSQL itself.
SELECT DISTINCT p.proname::text AS name
  FROM pg_proc p
 WHERE p.proname = ANY ($1::text[]) AND p.prokind = 'f' AND p.provolatile = 'v'
   AND NOT EXISTS (SELECT FROM pg_proc own
                    WHERE own.proname = p.proname AND own.pronamespace = 'pg_catalog'::regnamespace)
 ORDER BY name
