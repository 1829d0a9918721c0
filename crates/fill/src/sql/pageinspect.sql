-- pageinspect's get_raw_page with its schema, NULL where it is not there or may not be called.
SELECT current_setting('block_size')::int AS block_size,
       (SELECT format('%I.get_raw_page', n.nspname)
          FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
         WHERE e.extname = 'pageinspect' AND current_setting('is_superuser')::bool) AS get_raw_page
