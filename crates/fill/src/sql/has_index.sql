-- $1: qualified table name; $2: name of its BRIN index. Whether it has a primary key or that index.
SELECT EXISTS (
    SELECT FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
     WHERE i.indrelid = to_regclass($1) AND i.indisvalid AND (i.indisprimary OR c.relname = $2)
)
