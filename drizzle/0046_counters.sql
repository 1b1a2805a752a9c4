CREATE TABLE "hour_counters" (
	"namespace_id" uuid NOT NULL,
	"start_ts" timestamp (3) with time zone NOT NULL,
	"players" integer NOT NULL,
	"lobbies" integer NOT NULL,
	"seated" jsonb NOT NULL,
	"refused" jsonb NOT NULL,
	"find_times" jsonb NOT NULL,
	CONSTRAINT "hour_counters_namespace_id_start_ts_pk" PRIMARY KEY("namespace_id","start_ts")
);
--> statement-breakpoint
CREATE TABLE "minute_counters" (
	"namespace_id" uuid NOT NULL,
	"start_ts" timestamp (3) with time zone NOT NULL,
	"counted_by" uuid NOT NULL,
	"players" integer NOT NULL,
	"lobbies" integer NOT NULL,
	"seated" jsonb NOT NULL,
	"refused" jsonb NOT NULL,
	"find_times" jsonb NOT NULL,
	CONSTRAINT "minute_counters_namespace_id_start_ts_counted_by_pk" PRIMARY KEY("namespace_id","start_ts","counted_by")
);
--> statement-breakpoint
CREATE INDEX "hour_counters_by_age" ON "hour_counters" USING btree ("start_ts");--> statement-breakpoint
CREATE INDEX "minute_counters_by_age" ON "minute_counters" USING btree ("start_ts");