CREATE TABLE "object_storage" (
	"is_only" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"mark" uuid NOT NULL,
	"place" text NOT NULL
);
