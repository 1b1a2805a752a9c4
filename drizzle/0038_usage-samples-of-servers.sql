CREATE TABLE "server_samples" (
	"server_id" uuid NOT NULL,
	"hour_start" timestamp (3) with time zone NOT NULL,
	"minutes" integer[] NOT NULL,
	"cpu_ms" integer[] NOT NULL,
	"memory_kib" integer[] NOT NULL,
	"received_bytes" bigint[] NOT NULL,
	"sent_bytes" bigint[] NOT NULL,
	CONSTRAINT "server_samples_server_id_hour_start_pk" PRIMARY KEY("server_id","hour_start")
);
--> statement-breakpoint
ALTER TABLE "server_samples" ADD CONSTRAINT "server_samples_server_id_servers_server_id_fk" FOREIGN KEY ("server_id") REFERENCES "public"."servers"("server_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "server_samples_by_age" ON "server_samples" USING btree ("hour_start");