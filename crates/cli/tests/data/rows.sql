-- All rows of all tables, and where sequences are.
SELECT format('SELECT %L, t::text FROM ONLY %s t ORDER BY 2', oid::regclass, oid::regclass)
FROM pg_class
WHERE relkind IN ('r', 'm') AND relnamespace::regnamespace::text IN ('app', 'public', '"Größe"')
ORDER BY oid::regclass::text \gexec
SELECT * FROM pg_sequences ORDER BY schemaname, sequencename;
