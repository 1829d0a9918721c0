-- $1: schema; $2: table; $3: column; the rest as in pg_stats.
SELECT pg_restore_attribute_stats(
           'schemaname', $1::text,
           'relname', $2::text,
           'attname', $3::text,
           'inherited', false,
           'version', current_setting('server_version_num')::int,
           'null_frac', $4::real,
           'avg_width', $5::int,
           'n_distinct', $6::real,
           'most_common_vals', $7::text,
           'most_common_freqs', $8::real[],
           'histogram_bounds', $9::text,
           'correlation', $10::real
       )
