ALTER TABLE "upload_files" RENAME COLUMN "receipts" TO "object_ids";--> statement-breakpoint
ALTER TABLE "object_storage" RENAME COLUMN "place" TO "location";