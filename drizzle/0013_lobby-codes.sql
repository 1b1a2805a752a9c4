ALTER TABLE "lobbies" ADD COLUMN "code" text;--> statement-breakpoint
CREATE UNIQUE INDEX "lobbies_code" ON "lobbies" USING btree ("namespace_id","code") WHERE stop_ts is null;