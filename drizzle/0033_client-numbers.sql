-- Processes of earlier releases count on during an upgrade. A count falls below zero when a player leaves whom they did not seat.
ALTER TABLE "client_counts" DROP CONSTRAINT "client_counts_max";--> statement-breakpoint
ALTER TABLE "client_counts" ADD CONSTRAINT "client_counts_max" CHECK (player_count <= player_max);--> statement-breakpoint
ALTER TABLE "players" ADD COLUMN "client_number" integer;--> statement-breakpoint
UPDATE "players" SET "client_number" = numbered.number FROM (
  SELECT "player_id", row_number() OVER (PARTITION BY "namespace_id", "client" ORDER BY "create_ts", "player_id") AS number
  FROM "players" WHERE "remove_ts" IS NULL AND "client" IS NOT NULL
) AS numbered WHERE "players"."player_id" = numbered."player_id";--> statement-breakpoint
ALTER TABLE "players" ALTER COLUMN "client_number" SET DEFAULT 1000000000 + (random() * 1000000000)::integer;--> statement-breakpoint
CREATE UNIQUE INDEX "players_of_client" ON "players" USING btree ("namespace_id","client","client_number") WHERE remove_ts is null;
