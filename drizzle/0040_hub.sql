CREATE TABLE "hub_secrets" (
	"secret_hash" text PRIMARY KEY NOT NULL,
	"is_link" boolean NOT NULL,
	"identity_id" uuid,
	"game_id" uuid,
	"issued_at" timestamp (3) with time zone,
	"expire_ts" timestamp (3) with time zone NOT NULL,
	"session_until_ts" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "hub_secrets" ADD CONSTRAINT "hub_secrets_identity_id_identities_identity_id_fk" FOREIGN KEY ("identity_id") REFERENCES "public"."identities"("identity_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "hub_secrets" ADD CONSTRAINT "hub_secrets_game_id_games_game_id_fk" FOREIGN KEY ("game_id") REFERENCES "public"."games"("game_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "hub_secrets_by_age" ON "hub_secrets" USING btree ("expire_ts");