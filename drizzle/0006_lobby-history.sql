CREATE INDEX "lobbies_by_age" ON "lobbies" USING btree ("namespace_id","create_ts");--> statement-breakpoint
CREATE INDEX "lobbies_of_game" ON "lobbies" USING btree ("game_id","create_ts","lobby_id");