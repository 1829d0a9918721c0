-- $1: OIDs of tables. Statistics of their columns, in the order of these; of a partitioned table those over all its partitions.
SELECT c.oid AS relation, s.attname::text AS name, s.null_frac, s.n_distinct, s.avg_width, s.correlation,
       {read}s.most_common_vals::text{as}::text[] AS common, s.most_common_freqs AS shares,
       {read}s.histogram_bounds::text{as}::text[] AS bounds,
       -- Of arrays; of tsvector they are no values of the column's type.
       {read}s.most_common_elems::text{as}::text[] AS elements, s.most_common_elem_freqs AS element_shares,
       s.elem_count_histogram AS element_counts,
       {ranges},
       a.attlen AS length, a.attalign::text AS alignment
  FROM pg_stats s JOIN pg_class c ON c.relname = s.tablename
  JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = s.schemaname
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = s.attname
 WHERE c.oid = ANY ($1::oid[]) AND s.inherited = (c.relkind = 'p')
 ORDER BY c.oid, a.attnum
