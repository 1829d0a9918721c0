-- Whether CREATE DATABASE knows STRATEGY, and whether FILE_COPY can leave the copying to the file system.
SELECT current_setting('server_version_num')::int >= 150000 AS has_strategies,
       EXISTS (SELECT FROM pg_settings WHERE name = 'file_copy_method' AND 'clone' = ANY (enumvals)) AS may_clone
