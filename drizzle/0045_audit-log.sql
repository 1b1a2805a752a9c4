CREATE TABLE "audit_entries" (
	"entry_id" uuid PRIMARY KEY NOT NULL,
	"create_ts" timestamp (3) with time zone NOT NULL,
	"operation" text NOT NULL,
	"caller_kind" text NOT NULL,
	"caller_id" uuid NOT NULL,
	"token_issued_ts" timestamp (3) with time zone,
	"address" text NOT NULL,
	"user_agent" text,
	"game_id" uuid,
	"namespace_id" uuid,
	"group_id" uuid,
	"details" jsonb NOT NULL,
	"outcome" text NOT NULL,
	"code" text
);
--> statement-breakpoint
CREATE INDEX "audit_entries_of_games" ON "audit_entries" USING btree ("game_id","entry_id") WHERE game_id is not null;--> statement-breakpoint
CREATE INDEX "audit_entries_of_groups" ON "audit_entries" USING btree ("group_id","entry_id") WHERE group_id is not null;--> statement-breakpoint
CREATE INDEX "audit_entries_by_age" ON "audit_entries" USING btree ("create_ts");