-- Room on the pages of the table for the next version of each row: only on the same page it needs no entry in the indexes.
ALTER TABLE "lobbies" SET (fillfactor = 70);--> statement-breakpoint
DROP INDEX "lobbies_changed";--> statement-breakpoint
ALTER TABLE "lobbies" ADD COLUMN "changed_step" bigint GENERATED ALWAYS AS (changed / 16) STORED NOT NULL;--> statement-breakpoint
CREATE INDEX "lobbies_changed" ON "lobbies" USING btree ("namespace_id","changed_step");--> statement-breakpoint
ANALYZE "lobbies";
