-- Flyway: each file is a transaction.
CREATE TABLE invoices (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    amount  numeric(10, 2) NOT NULL,
    paid_at timestamptz
);
