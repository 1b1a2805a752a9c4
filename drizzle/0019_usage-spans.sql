ALTER TABLE "server_meters" ADD COLUMN "read_ts" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "server_usage" ADD COLUMN "from_ts" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "server_usage" ADD COLUMN "until_ts" timestamp (3) with time zone;