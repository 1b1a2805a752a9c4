ALTER TABLE "queued_finds" ADD COLUMN "enter_ts" timestamp (3) with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
ALTER TABLE "machines" ADD COLUMN "cluster_id" uuid;