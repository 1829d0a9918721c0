-- Tables that this transaction has created, as SQL names them. A foreign key to a table of before marks
-- that one's pg_class row, but not its row type.
SELECT ARRAY(
    SELECT c.oid::regclass::text
      FROM pg_class c JOIN pg_type t ON t.oid = c.reltype
     WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
       AND t.xmin::text::bigint = txid_current() % 4294967296
     ORDER BY c.oid
)
