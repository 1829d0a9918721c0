-- Whether a crash would empty anything.
SELECT EXISTS (SELECT FROM pg_class WHERE relpersistence = 'u') AS unlogged
