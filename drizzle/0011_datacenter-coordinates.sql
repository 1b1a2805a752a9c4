ALTER TABLE "datacenters" ADD COLUMN "latitude" double precision;--> statement-breakpoint
ALTER TABLE "datacenters" ADD COLUMN "longitude" double precision;--> statement-breakpoint
ALTER TABLE "datacenters" ADD CONSTRAINT "datacenters_coordinates" CHECK ((latitude is null) = (longitude is null));