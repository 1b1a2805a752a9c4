CREATE TABLE "gateway_traffic" (
	"server_id" uuid NOT NULL,
	"node_id" uuid NOT NULL,
	"requests" bigint NOT NULL,
	"sockets" bigint NOT NULL,
	"connections" bigint NOT NULL,
	"open" integer NOT NULL,
	"received_bytes" bigint NOT NULL,
	"sent_bytes" bigint NOT NULL,
	"answers" bigint[] NOT NULL,
	CONSTRAINT "gateway_traffic_server_id_node_id_pk" PRIMARY KEY("server_id","node_id")
);
--> statement-breakpoint
ALTER TABLE "gateway_traffic" ADD CONSTRAINT "gateway_traffic_server_id_servers_server_id_fk" FOREIGN KEY ("server_id") REFERENCES "public"."servers"("server_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "gateway_traffic_open" ON "gateway_traffic" USING btree ("node_id") WHERE open > 0;