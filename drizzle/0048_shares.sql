CREATE TABLE "shares" (
	"share_id" uuid PRIMARY KEY NOT NULL,
	"game_id" uuid NOT NULL,
	"namespace_id" uuid NOT NULL,
	"lobby_id" uuid,
	"display_name" text NOT NULL,
	"create_ts" timestamp (3) with time zone NOT NULL,
	"expire_ts" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "shares" ADD CONSTRAINT "shares_namespace_id_namespaces_namespace_id_fk" FOREIGN KEY ("namespace_id") REFERENCES "public"."namespaces"("namespace_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "shares_of_namespaces" ON "shares" USING btree ("namespace_id");--> statement-breakpoint
CREATE INDEX "shares_by_age" ON "shares" USING btree ("expire_ts");