CREATE TABLE "version_numbers" (
	"game_id" uuid NOT NULL,
	"day" text NOT NULL,
	"number" integer NOT NULL,
	CONSTRAINT "version_numbers_game_id_day_pk" PRIMARY KEY("game_id","day")
);
--> statement-breakpoint
ALTER TABLE "version_numbers" ADD CONSTRAINT "version_numbers_game_id_games_game_id_fk" FOREIGN KEY ("game_id") REFERENCES "public"."games"("game_id") ON DELETE no action ON UPDATE no action;