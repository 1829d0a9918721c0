-- $1: names. Which of them are plain functions, and whether one of that name can be inlined.
SELECT p.proname::text AS name, bool_or(l.lanname = 'sql') AS is_sql
  FROM pg_proc p
  JOIN pg_language l ON l.oid = p.prolang
 WHERE p.proname = ANY ($1::text[]) AND p.prokind = 'f'
 GROUP BY p.proname
 ORDER BY p.proname
