-- $1: qualified names of tables. Whether no foreign key refers to one of them, none has triggers, and none is partitioned or
-- inherited.
SELECT NOT EXISTS (SELECT FROM pg_constraint k WHERE k.contype = 'f' AND (k.confrelid = ANY (t.oids) OR k.conrelid = ANY (t.oids)))
       AND NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = ANY (t.oids))
       AND NOT EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = ANY (t.oids) OR h.inhparent = ANY (t.oids))
       AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = ANY (t.oids) AND c.relkind <> 'r') AS stand_alone
  FROM (SELECT array_agg(to_regclass(name)::oid) AS oids FROM unnest($1::text[]) AS name) t
