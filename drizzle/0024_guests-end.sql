ALTER TABLE "identities" ADD COLUMN "keep_until_ts" timestamp (3) with time zone DEFAULT now() + interval '210 days' NOT NULL;--> statement-breakpoint
CREATE INDEX "group_invites_by_expiry" ON "group_invites" USING btree ("expire_ts") WHERE expire_ts is not null;--> statement-breakpoint
CREATE INDEX "group_invites_used_up" ON "group_invites" USING btree ("create_ts") WHERE uses_left = 0;--> statement-breakpoint
CREATE INDEX "identities_to_remove" ON "identities" USING btree ("keep_until_ts") WHERE not is_registered and not is_admin;