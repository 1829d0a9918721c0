BEGIN;

-- Running upgrade 1a2b3c4d5e6f -> 2b3c4d5e6f7a

ALTER TABLE accounts ADD COLUMN balance NUMERIC(12, 2) DEFAULT '0' NOT NULL;

UPDATE accounts SET name = 'it''s; unknown' WHERE name IS NULL;

ALTER TABLE accounts ALTER COLUMN name TYPE VARCHAR(80);

ALTER TABLE accounts ALTER COLUMN name SET NOT NULL;

COMMIT;

CREATE INDEX CONCURRENTLY accounts_name ON accounts (name);

BEGIN;

UPDATE alembic_version SET version_num='2b3c4d5e6f7a' WHERE alembic_version.version_num = '1a2b3c4d5e6f';

COMMIT;

