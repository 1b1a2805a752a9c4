CREATE TABLE "game_usage" (
	"game_id" uuid NOT NULL,
	"datacenter_id" uuid NOT NULL,
	"interval_start" timestamp (3) with time zone NOT NULL,
	"cpu_ms" double precision NOT NULL,
	CONSTRAINT "game_usage_game_id_interval_start_datacenter_id_pk" PRIMARY KEY("game_id","interval_start","datacenter_id")
);
--> statement-breakpoint
ALTER TABLE "players" DROP CONSTRAINT "players_lobby_id_lobbies_lobby_id_fk";
--> statement-breakpoint
CREATE INDEX "lobbies_of_server" ON "lobbies" USING btree ("server_id");--> statement-breakpoint
CREATE INDEX "lobbies_stopped" ON "lobbies" USING btree ("stop_ts") WHERE stop_ts is not null;--> statement-breakpoint
CREATE INDEX "server_usage_by_age" ON "server_usage" USING btree ("interval_start");--> statement-breakpoint
CREATE INDEX "servers_ended" ON "servers" USING btree ("ended_at") WHERE ended_at is not null;