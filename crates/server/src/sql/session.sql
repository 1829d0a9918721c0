SELECT set_config(name, '0', false)
  FROM pg_settings
 WHERE name IN ('statement_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout',
                'transaction_timeout')
   AND setting <> '0';
-- A statement sees what was committed before it, whatever the role or database has as its default.
SET default_transaction_isolation = 'read committed';
-- The server quotes names only where SQL needs it: they are compared, and looked for in other texts.
SET quote_all_identifiers = off
