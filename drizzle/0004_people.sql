CREATE TABLE "group_bans" (
	"group_id" uuid NOT NULL,
	"identity_id" uuid NOT NULL,
	"ts" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "group_bans_group_id_identity_id_pk" PRIMARY KEY("group_id","identity_id")
);
--> statement-breakpoint
CREATE TABLE "group_invites" (
	"code" text PRIMARY KEY NOT NULL,
	"group_id" uuid NOT NULL,
	"create_ts" timestamp (3) with time zone NOT NULL,
	"expire_ts" timestamp (3) with time zone,
	"uses_left" integer
);
--> statement-breakpoint
CREATE TABLE "group_join_requests" (
	"group_id" uuid NOT NULL,
	"identity_id" uuid NOT NULL,
	"ts" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "group_join_requests_group_id_identity_id_pk" PRIMARY KEY("group_id","identity_id")
);
--> statement-breakpoint
CREATE TABLE "refresh_tokens" (
	"token_hash" text PRIMARY KEY NOT NULL,
	"identity_id" uuid NOT NULL,
	"expire_ts" timestamp (3) with time zone NOT NULL,
	"revoke_ts" timestamp (3) with time zone
);
--> statement-breakpoint
ALTER TABLE "groups" ADD COLUMN "avatar_upload_id" uuid;--> statement-breakpoint
ALTER TABLE "identities" ADD COLUMN "avatar_upload_id" uuid;--> statement-breakpoint
ALTER TABLE "identities" ADD COLUMN "delete_ts" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "identities" ADD COLUMN "is_deleted" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "group_bans" ADD CONSTRAINT "group_bans_group_id_groups_group_id_fk" FOREIGN KEY ("group_id") REFERENCES "public"."groups"("group_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "group_bans" ADD CONSTRAINT "group_bans_identity_id_identities_identity_id_fk" FOREIGN KEY ("identity_id") REFERENCES "public"."identities"("identity_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "group_invites" ADD CONSTRAINT "group_invites_group_id_groups_group_id_fk" FOREIGN KEY ("group_id") REFERENCES "public"."groups"("group_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "group_join_requests" ADD CONSTRAINT "group_join_requests_group_id_groups_group_id_fk" FOREIGN KEY ("group_id") REFERENCES "public"."groups"("group_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "group_join_requests" ADD CONSTRAINT "group_join_requests_identity_id_identities_identity_id_fk" FOREIGN KEY ("identity_id") REFERENCES "public"."identities"("identity_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "refresh_tokens" ADD CONSTRAINT "refresh_tokens_identity_id_identities_identity_id_fk" FOREIGN KEY ("identity_id") REFERENCES "public"."identities"("identity_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "refresh_tokens_by_identity" ON "refresh_tokens" USING btree ("identity_id");--> statement-breakpoint
CREATE INDEX "refresh_tokens_by_age" ON "refresh_tokens" USING btree ("expire_ts");--> statement-breakpoint
CREATE INDEX "identities_to_delete" ON "identities" USING btree ("delete_ts") WHERE delete_ts is not null and not is_deleted;