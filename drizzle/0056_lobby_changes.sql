CREATE TABLE "lobby_changes" (
	"namespace_id" uuid NOT NULL,
	"slot" integer NOT NULL,
	"version" bigint NOT NULL,
	"lobby_ids" uuid[] NOT NULL,
	CONSTRAINT "lobby_changes_namespace_id_slot_pk" PRIMARY KEY("namespace_id","slot")
);
--> statement-breakpoint
-- Room on the pages for the next versions of their rows: only on the same page they need no entries in the index.
ALTER TABLE "lobby_changes" SET (fillfactor = 50);--> statement-breakpoint
DROP INDEX "lobbies_changed";