/* Amounts of more than 100 million */
ALTER TABLE invoices ALTER COLUMN amount TYPE numeric(14, 2);
ALTER TABLE invoices ADD COLUMN total_cents bigint GENERATED ALWAYS AS (amount * 100) STORED;
