-- Statements that make the schemas of users. Those of extensions come with these.
SELECT pg_catalog.format('CREATE SCHEMA IF NOT EXISTS %I;', n.nspname) AS sql
  FROM pg_catalog.pg_namespace n
 WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'public') AND n.nspname !~ '^pg_' AND n.nspname !~ '^pgrig($|_)'
   AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                    WHERE d.classid = 'pg_catalog.pg_namespace'::pg_catalog.regclass AND d.objid = n.oid AND d.deptype = 'e')
 ORDER BY n.nspname
