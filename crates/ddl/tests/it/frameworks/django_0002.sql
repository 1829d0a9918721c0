BEGIN;
--
-- Add field note to Order
--
ALTER TABLE "shop_order" ADD COLUMN "note" varchar(200) DEFAULT '' NOT NULL;
ALTER TABLE "shop_order" ALTER COLUMN "note" DROP DEFAULT;
--
-- Alter field total on Order
--
ALTER TABLE "shop_order" ALTER COLUMN "total" TYPE bigint USING "total"::bigint;
--
-- Alter field email on Customer
--
ALTER TABLE "shop_customer" ALTER COLUMN "email" SET DEFAULT '';
UPDATE "shop_customer" SET "email" = '' WHERE "email" IS NULL; SET CONSTRAINTS ALL IMMEDIATE;
ALTER TABLE "shop_customer" ALTER COLUMN "email" SET NOT NULL;
ALTER TABLE "shop_customer" ALTER COLUMN "email" DROP DEFAULT;
--
-- Create constraint total_not_negative on model Order
--
ALTER TABLE "shop_order" ADD CONSTRAINT "total_not_negative" CHECK ("total" >= 0);
--
-- Raw Python operation
--
-- THIS OPERATION CANNOT BE WRITTEN AS SQL
--
-- Create index order_status_idx on field(s) status, -created of model Order
--
CREATE INDEX "order_status_idx" ON "shop_order" ("status", "created" DESC);
COMMIT;
