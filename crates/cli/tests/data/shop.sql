CREATE TYPE status AS ENUM ('new', 'paid', 'shipped', 'cancelled');
CREATE TABLE customers (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email text NOT NULL UNIQUE,
    name varchar(60) NOT NULL,
    born date CHECK (born BETWEEN '1930-01-01' AND '2010-12-31'),
    address jsonb,
    tags text[],
    created timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE products (
    warehouse smallint NOT NULL CHECK (warehouse BETWEEN 1 AND 4),
    sku char(8) NOT NULL,
    price numeric(8,2) NOT NULL CHECK (price > 0),
    weight real,
    description text,
    PRIMARY KEY (warehouse, sku)
);
CREATE TABLE orders (
    id int PRIMARY KEY,
    customer bigint NOT NULL REFERENCES customers,
    status status NOT NULL DEFAULT 'new',
    placed timestamp NOT NULL,
    shipped timestamp,
    total numeric(10,2) NOT NULL CHECK (total >= 0),
    CHECK (shipped > placed)
);
CREATE INDEX ON orders (customer);
CREATE INDEX ON orders (placed);
CREATE TABLE order_items (
    "order" int NOT NULL REFERENCES orders,
    line smallint NOT NULL,
    warehouse smallint NOT NULL,
    sku char(8) NOT NULL,
    quantity int NOT NULL CHECK (quantity BETWEEN 1 AND 20),
    price numeric(8,2) NOT NULL CHECK (price > 0),
    amount numeric GENERATED ALWAYS AS (quantity * price) STORED,
    PRIMARY KEY ("order", line),
    FOREIGN KEY (warehouse, sku) REFERENCES products
);
CREATE TABLE visits (
    id bigserial,
    customer bigint REFERENCES customers ON DELETE SET NULL,
    at timestamptz NOT NULL,
    agent inet,
    PRIMARY KEY (id, at)
) PARTITION BY RANGE (at);
CREATE TABLE visits_1 PARTITION OF visits FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
CREATE TABLE visits_2 PARTITION OF visits FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
CREATE TABLE returns (
    country char(2) NOT NULL,
    reason text,
    sum money NOT NULL
) PARTITION BY LIST (country);
CREATE TABLE returns_eu PARTITION OF returns FOR VALUES IN ('at', 'de', 'fr');
CREATE TABLE returns_us PARTITION OF returns FOR VALUES IN ('us');
CREATE TABLE carts (
    id uuid PRIMARY KEY,
    content jsonb NOT NULL
) PARTITION BY HASH (id);
CREATE TABLE carts_0 PARTITION OF carts FOR VALUES WITH (MODULUS 3, REMAINDER 0);
CREATE TABLE carts_1 PARTITION OF carts FOR VALUES WITH (MODULUS 3, REMAINDER 1);
CREATE TABLE carts_2 PARTITION OF carts FOR VALUES WITH (MODULUS 3, REMAINDER 2);
