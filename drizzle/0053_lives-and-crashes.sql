CREATE INDEX "players_who_left" ON "players" USING btree ("lobby_id","remove_ts") WHERE remove_ts is not null and lobby_id is not null;--> statement-breakpoint
CREATE INDEX "servers_crashed" ON "servers" USING btree ("namespace_id","ended_at") WHERE ended_at is not null and not has_lost_machine and (
  failure is not null or kill_at is null and (exit_signal is not null or exit_code <> 0)
);--> statement-breakpoint
ALTER TABLE "lobbies" ADD COLUMN "closed_ts" timestamp (3) with time zone;