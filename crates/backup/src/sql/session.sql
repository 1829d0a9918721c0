-- The text of a value is the same on both servers.
SET search_path = pg_catalog;
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';
SET TimeZone = 'UTC';
SET bytea_output = 'hex';
SET extra_float_digits = 1;
SET row_security = off;
SET lc_monetary = 'C';
SET default_transaction_read_only = off;
SET xmloption = 'content';
SET jit = off
