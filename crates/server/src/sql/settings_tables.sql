-- What has to be known of tables before their persistence is changed. A partitioned table stands for its leaves.
WITH given AS (
    SELECT name, ordinal, to_regclass(name)::oid AS oid
      FROM unnest($1::text[]) WITH ORDINALITY AS g (name, ordinal)
), member AS (
    SELECT g.name, g.ordinal, coalesce(t.relid::oid, g.oid) AS oid
      FROM given g LEFT JOIN LATERAL pg_partition_tree(g.oid) t ON t.isleaf
)
SELECT m.name AS given,
       m.oid,
       n.nspname::text AS schema,
       c.relname::text AS table,
       c.relkind::text AS kind,
       c.relpersistence::text AS persistence,
       pg_has_role(c.relowner, 'USAGE') AS is_owner,
       pg_get_userbyid(c.relowner)::text AS owner,
       pg_total_relation_size(c.oid) AS bytes,
       coalesce(pg_relation_size(c.oid) > 0, false) AS has_rows,
       (SELECT min(p.pubname::text)
          FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
         WHERE r.prrelid = c.oid) AS publication,
       ARRAY(SELECT DISTINCT k.confrelid
               FROM pg_constraint k
              WHERE k.contype = 'f' AND k.conrelid = c.oid AND k.confrelid <> c.oid) AS referenced,
       (SELECT min(k.conrelid::regclass::text)
          FROM pg_constraint k JOIN pg_class f ON f.oid = k.conrelid
         WHERE k.contype = 'f' AND k.confrelid = c.oid AND f.relpersistence = 'p'
           AND k.conrelid NOT IN (SELECT oid FROM member WHERE oid IS NOT NULL)) AS permanent_referencing,
       -- A table whose name differs from a wrong one in its schema or its letters' case only.
       CASE WHEN c.oid IS NULL THEN
            (SELECT min(format('%I.%I', s.nspname, a.relname))
               FROM pg_class a JOIN pg_namespace s ON s.oid = a.relnamespace,
                    parse_ident(m.name, false) AS words
              WHERE a.relkind IN ('r', 'p') AND lower(a.relname) = lower(words[cardinality(words)]))
       END AS alike
  FROM member m
  LEFT JOIN pg_class c ON c.oid = m.oid
  LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
 ORDER BY m.ordinal, m.oid
