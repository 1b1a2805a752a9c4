-- Room on the pages for the next versions of their rows: when a player connects, no index changes then.
ALTER TABLE "players" SET (fillfactor = 60);--> statement-breakpoint
DROP INDEX "players_awaited";--> statement-breakpoint
DROP INDEX "players_by_age";--> statement-breakpoint
ALTER TABLE "lobbies" ADD COLUMN "seats_check_ts" timestamp (3) with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
CREATE INDEX "lobbies_seats_check" ON "lobbies" USING btree ("seats_check_ts") WHERE stop_ts is null;
