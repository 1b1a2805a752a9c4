CREATE TABLE "upload_quotas" (
	"scope" text PRIMARY KEY NOT NULL,
	"day" text NOT NULL,
	"day_bytes" bigint NOT NULL,
	"kept_bytes" bigint NOT NULL
);
--> statement-breakpoint
ALTER TABLE "identities" ADD COLUMN "namespace_id" uuid;--> statement-breakpoint
ALTER TABLE "uploads" ADD COLUMN "quota_scope" text;--> statement-breakpoint
ALTER TABLE "uploads" ADD COLUMN "discard_ts" timestamp (3) with time zone;--> statement-breakpoint
CREATE INDEX "uploads_discarded" ON "uploads" USING btree ("upload_id") WHERE discard_ts is not null;--> statement-breakpoint
UPDATE "uploads" SET "discard_ts" = now()
WHERE "complete_ts" IS NOT NULL AND (
	("kind" = 'identity_avatar' AND NOT EXISTS (SELECT FROM "identities" WHERE "avatar_upload_id" = "uploads"."upload_id"))
	OR ("kind" = 'group_avatar' AND NOT EXISTS (SELECT FROM "groups" WHERE "avatar_upload_id" = "uploads"."upload_id"))
	OR ("kind" = 'game_logo' AND NOT EXISTS (SELECT FROM "games" WHERE "logo_upload_id" = "uploads"."upload_id"))
	OR ("kind" = 'game_banner' AND NOT EXISTS (SELECT FROM "games" WHERE "banner_upload_id" = "uploads"."upload_id"))
);
