ALTER TABLE invoices ADD COLUMN state text NOT NULL DEFAULT 'open';
UPDATE invoices SET state = 'paid' WHERE paid_at IS NOT NULL;
CREATE INDEX invoices_state ON invoices (state);
