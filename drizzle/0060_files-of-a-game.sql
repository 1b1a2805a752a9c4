DROP INDEX "upload_files_by_digest";--> statement-breakpoint
ALTER TABLE "upload_files" ADD COLUMN "game_id" uuid;--> statement-breakpoint
UPDATE "upload_files" SET "game_id" = "uploads"."game_id"
  FROM "uploads" WHERE "uploads"."upload_id" = "upload_files"."upload_id" AND "uploads"."game_id" IS NOT NULL;--> statement-breakpoint
CREATE INDEX "upload_files_of_game_by_digest" ON "upload_files" USING btree ("game_id","sha256") WHERE sha256 is not null;
