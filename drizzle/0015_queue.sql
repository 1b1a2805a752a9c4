CREATE TABLE "client_counts" (
	"namespace_id" uuid NOT NULL,
	"client" text NOT NULL,
	"player_count" integer NOT NULL,
	"player_max" integer NOT NULL,
	CONSTRAINT "client_counts_namespace_id_client_pk" PRIMARY KEY("namespace_id","client"),
	CONSTRAINT "client_counts_max" CHECK (player_count >= 0 and player_count <= player_max)
);
--> statement-breakpoint
CREATE TABLE "queued_finds" (
	"namespace_id" uuid NOT NULL,
	"ticket" uuid NOT NULL,
	"place" bigint GENERATED ALWAYS AS IDENTITY (sequence name "queued_finds_place_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"owner" uuid NOT NULL,
	"lease_ts" timestamp (3) with time zone NOT NULL,
	"client" text NOT NULL,
	"seats" integer NOT NULL,
	"version_id" uuid NOT NULL,
	"game_modes" text[] NOT NULL,
	"regions" text[] NOT NULL,
	"tags" jsonb NOT NULL,
	CONSTRAINT "queued_finds_namespace_id_ticket_pk" PRIMARY KEY("namespace_id","ticket")
);
--> statement-breakpoint
ALTER TABLE "players" ADD COLUMN "client" text;--> statement-breakpoint
CREATE INDEX "queued_finds_in_order" ON "queued_finds" USING btree ("namespace_id","place");--> statement-breakpoint
CREATE INDEX "queued_finds_by_lease" ON "queued_finds" USING btree ("lease_ts");--> statement-breakpoint
CREATE INDEX "queued_finds_of_owner" ON "queued_finds" USING btree ("owner");