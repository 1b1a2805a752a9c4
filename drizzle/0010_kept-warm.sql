ALTER TABLE "versions" ADD COLUMN "keeps_warm" boolean DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX "namespaces_of_version" ON "namespaces" USING btree ("version_id");--> statement-breakpoint
CREATE INDEX "versions_kept_warm" ON "versions" USING btree ("version_id") WHERE keeps_warm;