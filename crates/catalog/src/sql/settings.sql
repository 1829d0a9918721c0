-- The server prints conditions and reads rows in the spelling of the session: one that all agree on.
SET LOCAL DateStyle = 'ISO, YMD';
SET LOCAL IntervalStyle = 'postgres';
SET LOCAL bytea_output = 'hex';
SET LOCAL lc_monetary = 'C';
SET LOCAL extra_float_digits = 1;
SET LOCAL quote_all_identifiers = off;
-- Compiling the query for a table's catalogs takes seconds, running it milliseconds.
SET LOCAL jit = off
