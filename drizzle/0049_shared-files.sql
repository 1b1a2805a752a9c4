ALTER TABLE "upload_files" ADD COLUMN "sha256" text;--> statement-breakpoint
ALTER TABLE "upload_files" ADD COLUMN "shared_upload_id" uuid;--> statement-breakpoint
ALTER TABLE "upload_files" ADD COLUMN "shared_file_number" integer;--> statement-breakpoint
CREATE INDEX "upload_files_by_digest" ON "upload_files" USING btree ("sha256") WHERE sha256 is not null;