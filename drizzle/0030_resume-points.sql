ALTER TABLE "server_log_chunks" ALTER COLUMN "end_offset" SET DEFAULT 0;--> statement-breakpoint
ALTER TABLE "server_log_chunks" ADD COLUMN "resume_point" text;