-- The settings that decide what a write costs and what a crash leaves.
SELECT name, current_setting(name) AS shown
  FROM unnest(ARRAY['wal_level', 'fsync', 'synchronous_commit', 'full_page_writes']) AS g (name)
