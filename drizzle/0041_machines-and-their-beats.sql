CREATE TABLE "machines" (
	"node_id" uuid PRIMARY KEY NOT NULL,
	"datacenter_id" uuid NOT NULL,
	"name" text NOT NULL,
	"place" text NOT NULL,
	"holder" uuid NOT NULL,
	"beat" bigint NOT NULL,
	"beat_ts" timestamp (3) with time zone NOT NULL,
	"state" text NOT NULL,
	"state_ts" timestamp (3) with time zone NOT NULL,
	"lost_after_ms" integer NOT NULL,
	"drain_ts" timestamp (3) with time zone,
	"drain_deadline_ts" timestamp (3) with time zone
);
--> statement-breakpoint
ALTER TABLE "servers" ADD COLUMN "has_lost_machine" boolean DEFAULT false NOT NULL;