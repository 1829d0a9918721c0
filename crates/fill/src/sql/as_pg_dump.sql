-- A transaction that reads rows as pg_dump does, in their order on disk, and only the blocks that it names.
BEGIN READ ONLY;
SET LOCAL DateStyle = 'ISO';
SET LOCAL IntervalStyle = 'postgres';
SET LOCAL extra_float_digits = 3;
SET LOCAL max_parallel_workers_per_gather = 0;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_tidscan = on
