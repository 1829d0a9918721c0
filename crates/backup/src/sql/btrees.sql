-- All B-tree indexes that can be used, and whether one of these collations sorts them.
SELECT x.oid,
       x.oid::regclass::text AS name,
       EXISTS (SELECT FROM unnest(i.indcollation) AS k (collation_oid) WHERE k.collation_oid = ANY ($1::oid[])) AS other_order,
       i.indrelid AS own,
       i.indrelid::regclass::text AS table
  FROM pg_index i
  JOIN pg_class x ON x.oid = i.indexrelid
 WHERE x.relkind = 'i'
   AND x.relam = (SELECT oid FROM pg_am WHERE amname = 'btree')
   AND x.relpersistence = 'p'
   AND i.indisvalid
   AND i.indisready
 ORDER BY 1
