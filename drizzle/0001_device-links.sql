CREATE TABLE "device_links" (
	"device_link_id" uuid PRIMARY KEY NOT NULL,
	"game_id" uuid NOT NULL,
	"complete_ts" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "device_links" ADD CONSTRAINT "device_links_game_id_games_game_id_fk" FOREIGN KEY ("game_id") REFERENCES "public"."games"("game_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "device_links_by_age" ON "device_links" USING btree ("complete_ts");