-- $1: qualified name of a table. Its TOAST table, in the transaction that fills it; no row if it has none.
SELECT t.oid,
       format('%I.%I', n.nspname, t.relname) AS name,
       pg_relation_filepath(t.oid) AS path,
       pg_relation_size(t.oid) AS bytes,
       coalesce(t.xmin::text::bigint = pg_current_xact_id_if_assigned()::text::bigint % 4294967296, false) AS is_new,
       format('%I.%I', n.nspname, i.relname) AS index,
       -- _bt_allequalimage (nbtutils.c) says no for catalogs and TOAST tables of version 13.
       current_setting('server_version_num')::int >= 140000 AS shares_equal,
       -- The OID counter at the last checkpoint, or what it was set to since; it only grows.
       (SELECT next_oid FROM pg_control_checkpoint()) AS next_oid
  FROM pg_class c
  JOIN pg_class t ON t.oid = c.reltoastrelid
  JOIN pg_namespace n ON n.oid = t.relnamespace
  JOIN pg_index x ON x.indrelid = t.oid AND x.indisvalid
  JOIN pg_class i ON i.oid = x.indexrelid
 WHERE c.oid = to_regclass($1)
