-- {table}: 352 rows of the columns and about the width of pg_settings, the same on every server. With `seq`
-- before it each is 241 to 248 bytes as a tuple, so 32 of them make a block of 8 kB and all of them 11.
CREATE TABLE {table} WITH (autovacuum_enabled = off) AS
SELECT 'setting_' || lpad(x::text, 4, '0') AS name,
       lpad((x * 8191 % 1000000)::text, 6, '0') AS setting,
       NULL::text AS unit,
       rpad('Synthetic Settings / Group ' || lpad((x % 20)::text, 2, '0'), 30) AS category,
       rpad('Sets what setting number ' || lpad(x::text, 4, '0') || ' of the synthetic settings stands for.', 97)
           AS short_desc,
       NULL::text AS extra_desc,
       (ARRAY['user      ', 'superuser ', 'sighup    ', 'postmaster'])[x % 4 + 1] AS context,
       (ARRAY['bool   ', 'integer', 'string ', 'enum   '])[x % 4 + 1] AS vartype,
       'default'::text AS source,
       '0'::text AS min_val,
       '1073741823'::text AS max_val,
       NULL::text[] AS enumvals,
       lpad((x * 4093 % 1000000)::text, 6, '0') AS boot_val,
       lpad((x * 8191 % 1000000)::text, 6, '0') AS reset_val,
       NULL::text AS sourcefile,
       x AS sourceline,
       false AS pending_restart
  FROM generate_series(1, 352) x
