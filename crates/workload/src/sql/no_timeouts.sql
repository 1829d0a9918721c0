SELECT set_config(name, '0', false)
  FROM pg_settings
 WHERE name IN ('statement_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout',
                'transaction_timeout')
   AND setting <> '0'
