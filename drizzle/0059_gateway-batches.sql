CREATE TABLE "gateway_batches" (
	"node_id" uuid PRIMARY KEY NOT NULL,
	"batch" bigint NOT NULL
);
--> statement-breakpoint
ALTER TABLE "gateway_batches" ADD CONSTRAINT "gateway_batches_node_id_machines_node_id_fk" FOREIGN KEY ("node_id") REFERENCES "public"."machines"("node_id") ON DELETE cascade ON UPDATE no action;