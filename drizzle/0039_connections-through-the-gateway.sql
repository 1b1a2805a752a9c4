CREATE TABLE "gateway_connections" (
	"player_id" uuid PRIMARY KEY NOT NULL,
	"connection_id" uuid NOT NULL,
	"node_id" uuid NOT NULL
);
--> statement-breakpoint
CREATE INDEX "gateway_connections_of_node" ON "gateway_connections" USING btree ("node_id");