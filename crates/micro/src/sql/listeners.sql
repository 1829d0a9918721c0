-- Loaded or switched on, and at work in every statement.
SELECT ARRAY(SELECT library FROM unnest(ARRAY['auto_explain', 'pg_stat_statements', 'pgaudit']) AS library
              WHERE EXISTS (SELECT FROM pg_settings s
                             WHERE s.name IN ('shared_preload_libraries', 'session_preload_libraries',
                                              'local_preload_libraries')
                               AND strpos(s.setting, library) > 0))
       || ARRAY(SELECT 'track_functions' WHERE current_setting('track_functions') <> 'none') AS names
