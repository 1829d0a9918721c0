-- $1: names of tables without partitions, as SQL has them. Their fillfactors, NULL where none is set; of heaps only.
SELECT given.name,
       (SELECT option_value::int FROM pg_options_to_table(c.reloptions) WHERE option_name = 'fillfactor') AS fillfactor
  FROM unnest($1::text[]) WITH ORDINALITY AS given (name, place)
  JOIN pg_class c ON c.oid = given.name::regclass
  JOIN pg_am am ON am.oid = c.relam
 WHERE c.relkind = 'r' AND am.amname = 'heap'
 ORDER BY given.place
