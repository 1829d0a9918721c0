-- For a session that looks for damage in a restored server: settings of the database hide no damage and no rows. Texts keep the spelling of
-- the database, with which expressions of its indexes were evaluated.
SET default_transaction_read_only = off;
SET row_security = off;
SET jit = off;
SET lock_timeout = 0;
SELECT pg_catalog.set_config(name, 'off', false)
  FROM pg_catalog.pg_settings
 WHERE name IN ('zero_damaged_pages', 'ignore_checksum_failure')
   AND setting = 'on'
   AND pg_catalog.current_setting('is_superuser') = 'on'
