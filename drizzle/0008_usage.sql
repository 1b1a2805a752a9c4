CREATE TABLE "server_meters" (
	"server_id" uuid PRIMARY KEY NOT NULL,
	"cpu_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "server_usage" (
	"server_id" uuid NOT NULL,
	"interval_start" timestamp (3) with time zone NOT NULL,
	"game_id" uuid NOT NULL,
	"datacenter_id" uuid NOT NULL,
	"cpu_ms" bigint NOT NULL,
	CONSTRAINT "server_usage_server_id_interval_start_pk" PRIMARY KEY("server_id","interval_start")
);
--> statement-breakpoint
ALTER TABLE "server_meters" ADD CONSTRAINT "server_meters_server_id_servers_server_id_fk" FOREIGN KEY ("server_id") REFERENCES "public"."servers"("server_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "server_usage" ADD CONSTRAINT "server_usage_server_id_servers_server_id_fk" FOREIGN KEY ("server_id") REFERENCES "public"."servers"("server_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "server_usage_of_game" ON "server_usage" USING btree ("game_id","interval_start");