CREATE INDEX "lobbies_running_by_id" ON "lobbies" USING btree ("namespace_id","lobby_id") WHERE stop_ts is null;--> statement-breakpoint
DROP INDEX "lobbies_running";
