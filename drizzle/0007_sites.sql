CREATE TABLE "sites" (
	"site_id" uuid PRIMARY KEY NOT NULL,
	"game_id" uuid NOT NULL,
	"upload_id" uuid NOT NULL,
	"display_name" text NOT NULL,
	"content_length" bigint NOT NULL,
	"create_ts" timestamp (3) with time zone NOT NULL,
	"complete_ts" timestamp (3) with time zone
);
--> statement-breakpoint
ALTER TABLE "sites" ADD CONSTRAINT "sites_game_id_games_game_id_fk" FOREIGN KEY ("game_id") REFERENCES "public"."games"("game_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "sites" ADD CONSTRAINT "sites_upload_id_uploads_upload_id_fk" FOREIGN KEY ("upload_id") REFERENCES "public"."uploads"("upload_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "sites_by_game" ON "sites" USING btree ("game_id","create_ts");--> statement-breakpoint
CREATE INDEX "sites_by_upload" ON "sites" USING btree ("upload_id");