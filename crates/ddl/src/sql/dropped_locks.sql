-- The locks that pgrig_dropped has noted (dropped.sql).
SELECT pg_catalog.split_part(noted, ':', 1)::oid AS relation, pg_catalog.split_part(noted, ':', 2) AS mode
  FROM pg_catalog.unnest(pg_catalog.string_to_array(current_setting('pgrig.dropped', true), ' ')) AS noted
