-- $1: tables, OIDs. Of each its first unique index that holds for all rows and whose columns are no expressions, the primary key
-- first: its columns, and a column of the table that an UPDATE may set to its own value, one of the index if there is one.
SELECT DISTINCT ON (i.indrelid) i.indrelid AS oid,
       ARRAY(SELECT pg_catalog.quote_ident(a.attname)
               FROM pg_catalog.unnest(i.indkey::int2[]) WITH ORDINALITY k (attnum, place)
               JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
              WHERE k.place <= i.indnkeyatts ORDER BY k.place) AS columns,
       (SELECT pg_catalog.quote_ident(a.attname)
          FROM pg_catalog.pg_attribute a
         WHERE a.attrelid = i.indrelid AND a.attnum > 0 AND NOT a.attisdropped AND a.attidentity <> 'a' AND a.attgenerated = ''
         ORDER BY a.attnum = ANY (i.indkey::int2[]) DESC, a.attnum LIMIT 1) AS written
  FROM pg_catalog.pg_index i
 WHERE i.indrelid = ANY ($1) AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
 ORDER BY i.indrelid, i.indisprimary DESC, i.indexrelid
