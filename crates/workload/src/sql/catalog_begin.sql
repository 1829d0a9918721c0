-- Looking changes nothing, and constants come in the spelling that every server reads.
SET TRANSACTION READ ONLY;
SET LOCAL DateStyle = 'ISO, YMD';
SET LOCAL IntervalStyle = 'postgres';
SET LOCAL bytea_output = 'hex';
SET LOCAL lc_monetary = 'C'
