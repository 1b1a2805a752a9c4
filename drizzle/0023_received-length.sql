ALTER TABLE "uploads" ADD COLUMN "received_length" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
UPDATE "uploads" SET "received_length" = (
  SELECT coalesce(sum(CASE WHEN "uploads"."is_multipart" THEN least(104857600, file.content_length - 104857600 * (part - 1)) ELSE file.content_length END), 0)
  FROM "upload_files" AS file CROSS JOIN LATERAL generate_subscripts(file.receipts, 1) AS part
  WHERE file.upload_id = "uploads"."upload_id" AND file.receipts[part] IS NOT NULL
) WHERE "complete_ts" IS NULL;
