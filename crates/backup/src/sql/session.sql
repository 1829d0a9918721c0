-- The text of a value, and the meaning of a statement, are the same on both servers, whatever the role or the database has as its own
-- settings. `Session::open` sets those of names and timeouts.
SET search_path = pg_catalog;
SET DateStyle = 'ISO, YMD';
SET IntervalStyle = 'postgres';
SET TimeZone = 'UTC';
SET bytea_output = 'hex';
SET extra_float_digits = 1;
SET lc_monetary = 'C';
SET lc_numeric = 'C';
SET xmlbinary = 'base64';
SET xmloption = 'content';
SET array_nulls = on;
SET standard_conforming_strings = on;
SET transform_null_equals = off;
SET row_security = off;
SET default_transaction_read_only = off;
SET jit = off
