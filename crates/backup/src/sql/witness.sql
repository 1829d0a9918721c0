-- A table of pgrig's own, in a database that pgrig has made.
DROP SCHEMA IF EXISTS pgrig_pitr CASCADE;
CREATE SCHEMA pgrig_pitr;
CREATE TABLE pgrig_pitr.witness (id bigint PRIMARY KEY, at timestamptz NOT NULL)
