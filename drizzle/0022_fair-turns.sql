DROP INDEX "servers_waiting";--> statement-breakpoint
ALTER TABLE "servers" ADD COLUMN "wait_reason" text;--> statement-breakpoint
CREATE INDEX "servers_ending_unplaced" ON "servers" USING btree ("datacenter_id","destroyed_at") WHERE node_id is null and ended_at is null and destroyed_at is not null;--> statement-breakpoint
CREATE INDEX "servers_waiting" ON "servers" USING btree ("datacenter_id","namespace_id","created_at") WHERE node_id is null and destroyed_at is null;