-- $1: names of tables. Pairs of places in this list, from 0: a table, and an earlier one that a foreign key of it references.
WITH tables AS (SELECT name::regclass AS root, ordinality::int - 1 AS place
                  FROM unnest($1::text[]) WITH ORDINALITY AS t (name, ordinality)),
     members AS (SELECT place, root AS member FROM tables
                  UNION SELECT place, relid FROM tables, pg_partition_tree(root))
SELECT DISTINCT referencing.place, referenced.place AS referenced
  FROM pg_constraint c
  JOIN members referencing ON referencing.member = c.conrelid
  JOIN members referenced ON referenced.member = c.confrelid
 WHERE c.contype = 'f' AND referenced.place < referencing.place
 ORDER BY 1, 2
