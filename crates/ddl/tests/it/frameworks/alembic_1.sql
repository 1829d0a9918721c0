BEGIN;

CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL, 
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

-- Running upgrade  -> 1a2b3c4d5e6f

CREATE TABLE accounts (
    id SERIAL NOT NULL, 
    name VARCHAR(50), 
    created TIMESTAMP WITHOUT TIME ZONE DEFAULT now(), 
    PRIMARY KEY (id)
);

INSERT INTO alembic_version (version_num) VALUES ('1a2b3c4d5e6f') RETURNING alembic_version.version_num;

COMMIT;

