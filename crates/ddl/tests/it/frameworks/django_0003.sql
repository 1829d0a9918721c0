--
-- Concurrently create index order_created_idx on field(s) created of model Order
--
CREATE INDEX CONCURRENTLY "order_created_idx" ON "shop_order" ("created");
