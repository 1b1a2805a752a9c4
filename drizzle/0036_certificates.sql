CREATE TABLE "acme_accounts" (
	"directory" text PRIMARY KEY NOT NULL,
	"key" text NOT NULL,
	"url" text
);
--> statement-breakpoint
CREATE TABLE "acme_challenges" (
	"token" text PRIMARY KEY NOT NULL,
	"host" text NOT NULL,
	"answer" text NOT NULL,
	"expire_ts" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "certificates" (
	"host" text NOT NULL,
	"directory" text NOT NULL,
	"certificate" text,
	"key" text,
	"due_ts" timestamp (3) with time zone NOT NULL,
	"claimed_until_ts" timestamp (3) with time zone,
	"failures" integer DEFAULT 0 NOT NULL,
	CONSTRAINT "certificates_directory_host_pk" PRIMARY KEY("directory","host")
);
--> statement-breakpoint
CREATE INDEX "acme_challenges_by_expiry" ON "acme_challenges" USING btree ("expire_ts");