ALTER TABLE "servers" ADD COLUMN "restarts_max" integer;--> statement-breakpoint
ALTER TABLE "servers" ADD COLUMN "chain_id" uuid;--> statement-breakpoint
ALTER TABLE "servers" ADD COLUMN "restart_of" uuid;--> statement-breakpoint
ALTER TABLE "servers" ADD COLUMN "restarted_as" uuid;--> statement-breakpoint
ALTER TABLE "servers" ADD COLUMN "restart_count" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "servers" ADD COLUMN "start_after" timestamp (3) with time zone;--> statement-breakpoint
CREATE INDEX "servers_delayed" ON "servers" USING btree ("datacenter_id","start_after") WHERE node_id is null and destroyed_at is null and start_after is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "servers_open_of_chain" ON "servers" USING btree ("chain_id") WHERE chain_id is not null and ended_at is null;