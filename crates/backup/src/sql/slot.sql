-- It keeps WAL from now on.
SELECT pg_create_physical_replication_slot('pgrig', true)
