-- $1: oid of a table. Statistics of its columns; of a partitioned table those over all its partitions.
SELECT s.attname::text AS name, s.null_frac, s.n_distinct, s.avg_width, s.correlation,
       s.most_common_vals::text::text[] AS common, s.most_common_freqs AS shares,
       s.histogram_bounds::text::text[] AS bounds,
       -- Of arrays; of tsvector they are no values of the column's type.
       s.most_common_elems::text::text[] AS elements, s.most_common_elem_freqs AS element_shares,
       s.elem_count_histogram AS element_counts
  FROM pg_stats s JOIN pg_class c ON c.relname = s.tablename
  JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = s.schemaname
 WHERE c.oid = $1 AND s.inherited = (c.relkind = 'p')
