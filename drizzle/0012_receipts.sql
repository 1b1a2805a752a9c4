CREATE TABLE "receipts" (
	"ray_id" uuid PRIMARY KEY NOT NULL,
	"namespace_id" uuid NOT NULL,
	"create_ts" timestamp (3) with time zone NOT NULL,
	"receipt" jsonb NOT NULL
);
--> statement-breakpoint
CREATE INDEX "receipts_of_namespace" ON "receipts" USING btree ("namespace_id","create_ts","ray_id");--> statement-breakpoint
CREATE INDEX "receipts_by_age" ON "receipts" USING btree ("create_ts");