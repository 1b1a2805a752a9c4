ALTER TABLE "uploads" ALTER COLUMN "game_id" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "games" ADD COLUMN "logo_upload_id" uuid;--> statement-breakpoint
ALTER TABLE "games" ADD COLUMN "banner_upload_id" uuid;--> statement-breakpoint
ALTER TABLE "uploads" ADD COLUMN "identity_id" uuid;--> statement-breakpoint
CREATE INDEX "uploads_of_game" ON "uploads" USING btree ("game_id","kind","create_ts");--> statement-breakpoint
ALTER TABLE "upload_files" ADD CONSTRAINT "upload_files_path" UNIQUE("upload_id","path");