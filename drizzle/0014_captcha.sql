CREATE TABLE "captcha_windows" (
	"namespace_id" uuid NOT NULL,
	"connection" text NOT NULL,
	"verify_ts" timestamp (3) with time zone NOT NULL,
	"request_count" integer NOT NULL,
	"expire_ts" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "captcha_windows_namespace_id_connection_pk" PRIMARY KEY("namespace_id","connection")
);
--> statement-breakpoint
CREATE TABLE "used_captchas" (
	"captcha_id" text PRIMARY KEY NOT NULL,
	"expire_ts" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE INDEX "captcha_windows_by_end" ON "captcha_windows" USING btree ("expire_ts");--> statement-breakpoint
CREATE INDEX "used_captchas_by_end" ON "used_captchas" USING btree ("expire_ts");