-- Tables that this transaction has created, as SQL names them.
SELECT ARRAY(
    SELECT c.oid::regclass::text
      FROM pg_class c
     WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
       AND c.xmin::text::bigint = txid_current() % 4294967296
     ORDER BY c.oid
)
