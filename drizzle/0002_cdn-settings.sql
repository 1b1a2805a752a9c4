CREATE TABLE "namespace_auth_users" (
	"namespace_id" uuid NOT NULL,
	"user" text NOT NULL,
	"password" text NOT NULL,
	CONSTRAINT "namespace_auth_users_namespace_id_user_pk" PRIMARY KEY("namespace_id","user")
);
--> statement-breakpoint
CREATE TABLE "namespace_domains" (
	"domain" text PRIMARY KEY NOT NULL,
	"namespace_id" uuid NOT NULL,
	"create_ts" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "namespaces" ADD COLUMN "auth_type" text DEFAULT 'none' NOT NULL;--> statement-breakpoint
ALTER TABLE "namespace_auth_users" ADD CONSTRAINT "namespace_auth_users_namespace_id_namespaces_namespace_id_fk" FOREIGN KEY ("namespace_id") REFERENCES "public"."namespaces"("namespace_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "namespace_domains" ADD CONSTRAINT "namespace_domains_namespace_id_namespaces_namespace_id_fk" FOREIGN KEY ("namespace_id") REFERENCES "public"."namespaces"("namespace_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "namespace_domains_by_namespace" ON "namespace_domains" USING btree ("namespace_id");