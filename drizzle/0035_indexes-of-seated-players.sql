DROP INDEX "players_seated";--> statement-breakpoint
DROP INDEX "players_of_client";--> statement-breakpoint
CREATE INDEX "players_seated" ON "players" USING btree ("lobby_id") WHERE remove_ts is null and lobby_id is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "players_of_client" ON "players" USING btree ("namespace_id","client","client_number") WHERE remove_ts is null and client_number > 0;