CREATE TABLE "builds" (
	"build_id" uuid PRIMARY KEY NOT NULL,
	"game_id" uuid NOT NULL,
	"namespace_id" uuid,
	"upload_id" uuid NOT NULL,
	"name" text NOT NULL,
	"kind" text NOT NULL,
	"image_tag" text,
	"file_name" text NOT NULL,
	"command" jsonb NOT NULL,
	"tags" jsonb NOT NULL,
	"content_length" bigint NOT NULL,
	"create_ts" timestamp (3) with time zone NOT NULL,
	"complete_ts" timestamp (3) with time zone
);
--> statement-breakpoint
CREATE TABLE "datacenters" (
	"datacenter_id" uuid PRIMARY KEY NOT NULL,
	"slug" text NOT NULL,
	"name" text NOT NULL,
	"create_ts" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "datacenters_slug" UNIQUE("slug")
);
--> statement-breakpoint
CREATE TABLE "games" (
	"game_id" uuid PRIMARY KEY NOT NULL,
	"name_id" text NOT NULL,
	"display_name" text NOT NULL,
	"developer_group_id" uuid NOT NULL,
	"create_ts" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "games_name_id" UNIQUE("name_id")
);
--> statement-breakpoint
CREATE TABLE "group_members" (
	"group_id" uuid NOT NULL,
	"identity_id" uuid NOT NULL,
	"join_ts" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "group_members_group_id_identity_id_pk" PRIMARY KEY("group_id","identity_id")
);
--> statement-breakpoint
CREATE TABLE "groups" (
	"group_id" uuid PRIMARY KEY NOT NULL,
	"display_name" text NOT NULL,
	"bio" text DEFAULT '' NOT NULL,
	"publicity" text DEFAULT 'open' NOT NULL,
	"owner_identity_id" uuid NOT NULL,
	"create_ts" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "identities" (
	"identity_id" uuid PRIMARY KEY NOT NULL,
	"display_name" text NOT NULL,
	"account_number" integer NOT NULL,
	"bio" text DEFAULT '' NOT NULL,
	"is_registered" boolean NOT NULL,
	"is_admin" boolean NOT NULL,
	"create_ts" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "lobbies" (
	"lobby_id" uuid PRIMARY KEY NOT NULL,
	"game_id" uuid NOT NULL,
	"namespace_id" uuid NOT NULL,
	"version_id" uuid NOT NULL,
	"game_mode" text NOT NULL,
	"region" text NOT NULL,
	"server_id" uuid NOT NULL,
	"max_players_normal" integer NOT NULL,
	"max_players_direct" integer NOT NULL,
	"max_players_party" integer NOT NULL,
	"player_count" integer NOT NULL,
	"tags" jsonb NOT NULL,
	"is_closed" boolean NOT NULL,
	"state" text,
	"ports" jsonb,
	"create_ts" timestamp (3) with time zone NOT NULL,
	"ready_ts" timestamp (3) with time zone,
	"idle_ts" timestamp (3) with time zone,
	"stop_ts" timestamp (3) with time zone,
	"stop_reason" text,
	"changed" bigint NOT NULL,
	CONSTRAINT "lobbies_seats" CHECK (player_count >= 0 and player_count <= greatest(max_players_normal, max_players_direct, max_players_party))
);
--> statement-breakpoint
CREATE TABLE "lobby_counts" (
	"namespace_id" uuid PRIMARY KEY NOT NULL,
	"lobby_count" integer NOT NULL,
	CONSTRAINT "lobby_counts_not_negative" CHECK (lobby_count >= 0)
);
--> statement-breakpoint
CREATE TABLE "players" (
	"player_id" uuid PRIMARY KEY NOT NULL,
	"lobby_id" uuid NOT NULL,
	"namespace_id" uuid NOT NULL,
	"address" text NOT NULL,
	"create_ts" timestamp (3) with time zone NOT NULL,
	"seat_deadline_ts" timestamp (3) with time zone,
	"connect_ts" timestamp (3) with time zone,
	"remove_ts" timestamp (3) with time zone,
	"remove_reason" text
);
--> statement-breakpoint
CREATE TABLE "namespace_versions" (
	"deploy_id" uuid PRIMARY KEY NOT NULL,
	"namespace_id" uuid NOT NULL,
	"version_id" uuid NOT NULL,
	"deploy_ts" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "namespaces" (
	"namespace_id" uuid PRIMARY KEY NOT NULL,
	"game_id" uuid NOT NULL,
	"name_id" text NOT NULL,
	"display_name" text NOT NULL,
	"version_id" uuid NOT NULL,
	"create_ts" timestamp (3) with time zone NOT NULL,
	"lobby_count_max" integer DEFAULT 128 NOT NULL,
	"max_players_per_client" integer DEFAULT 8 NOT NULL,
	"max_players_per_client_vpn" integer DEFAULT 4 NOT NULL,
	"max_players_per_client_proxy" integer DEFAULT 2 NOT NULL,
	"max_players_per_client_tor" integer DEFAULT 2 NOT NULL,
	"max_players_per_client_hosting" integer DEFAULT 2 NOT NULL,
	"enable_domain_public_auth" boolean DEFAULT true NOT NULL,
	CONSTRAINT "namespaces_name_id" UNIQUE("game_id","name_id")
);
--> statement-breakpoint
CREATE TABLE "server_log_chunks" (
	"server_id" uuid NOT NULL,
	"stream" text NOT NULL,
	"first_line" bigint NOT NULL,
	"line_count" integer NOT NULL,
	"ts" timestamp (3) with time zone NOT NULL,
	"end_offset" bigint NOT NULL,
	"total_bytes" bigint NOT NULL,
	"content" "bytea" NOT NULL,
	CONSTRAINT "server_log_chunks_server_id_stream_first_line_pk" PRIMARY KEY("server_id","stream","first_line")
);
--> statement-breakpoint
CREATE TABLE "server_ports" (
	"node_id" uuid NOT NULL,
	"port" integer NOT NULL,
	"server_id" uuid NOT NULL,
	"release_ts" timestamp (3) with time zone,
	CONSTRAINT "server_ports_node_id_port_pk" PRIMARY KEY("node_id","port")
);
--> statement-breakpoint
CREATE TABLE "servers" (
	"server_id" uuid PRIMARY KEY NOT NULL,
	"game_id" uuid NOT NULL,
	"namespace_id" uuid NOT NULL,
	"datacenter_id" uuid NOT NULL,
	"build_id" uuid NOT NULL,
	"tags" jsonb NOT NULL,
	"arguments" jsonb NOT NULL,
	"environment" jsonb NOT NULL,
	"service_environment" jsonb NOT NULL,
	"token_caller" jsonb,
	"network_mode" text NOT NULL,
	"ports" jsonb NOT NULL,
	"cpu" integer NOT NULL,
	"memory" integer NOT NULL,
	"kill_timeout_ms" bigint NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"node_id" uuid,
	"user_id" integer,
	"process" jsonb,
	"started_at" timestamp (3) with time zone,
	"destroyed_at" timestamp (3) with time zone,
	"kill_at" timestamp (3) with time zone,
	"ended_at" timestamp (3) with time zone,
	"exit_code" integer,
	"exit_signal" text,
	"failure" text
);
--> statement-breakpoint
CREATE TABLE "upload_files" (
	"upload_id" uuid NOT NULL,
	"file_number" integer NOT NULL,
	"path" text NOT NULL,
	"content_type" text,
	"content_length" bigint NOT NULL,
	CONSTRAINT "upload_files_upload_id_file_number_pk" PRIMARY KEY("upload_id","file_number")
);
--> statement-breakpoint
CREATE TABLE "uploads" (
	"upload_id" uuid PRIMARY KEY NOT NULL,
	"game_id" uuid NOT NULL,
	"kind" text NOT NULL,
	"is_multipart" boolean NOT NULL,
	"content_length" bigint NOT NULL,
	"create_ts" timestamp (3) with time zone NOT NULL,
	"completing_until" timestamp (3) with time zone,
	"complete_ts" timestamp (3) with time zone
);
--> statement-breakpoint
CREATE TABLE "versions" (
	"version_id" uuid PRIMARY KEY NOT NULL,
	"game_id" uuid NOT NULL,
	"display_name" text NOT NULL,
	"config" jsonb NOT NULL,
	"create_ts" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "versions_display_name" UNIQUE("game_id","display_name")
);
--> statement-breakpoint
CREATE TABLE "signing_keys" (
	"key_id" uuid PRIMARY KEY NOT NULL,
	"purpose" text NOT NULL,
	"key" jsonb NOT NULL,
	"create_ts" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "signing_keys_one_of_each" UNIQUE("purpose")
);
--> statement-breakpoint
CREATE TABLE "epochs" (
	"is_only" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"epoch" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "topics" (
	"topic" text PRIMARY KEY NOT NULL,
	"version" bigint NOT NULL
);
--> statement-breakpoint
ALTER TABLE "builds" ADD CONSTRAINT "builds_game_id_games_game_id_fk" FOREIGN KEY ("game_id") REFERENCES "public"."games"("game_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "builds" ADD CONSTRAINT "builds_upload_id_uploads_upload_id_fk" FOREIGN KEY ("upload_id") REFERENCES "public"."uploads"("upload_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "games" ADD CONSTRAINT "games_developer_group_id_groups_group_id_fk" FOREIGN KEY ("developer_group_id") REFERENCES "public"."groups"("group_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "group_members" ADD CONSTRAINT "group_members_group_id_groups_group_id_fk" FOREIGN KEY ("group_id") REFERENCES "public"."groups"("group_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "group_members" ADD CONSTRAINT "group_members_identity_id_identities_identity_id_fk" FOREIGN KEY ("identity_id") REFERENCES "public"."identities"("identity_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "groups" ADD CONSTRAINT "groups_owner_identity_id_identities_identity_id_fk" FOREIGN KEY ("owner_identity_id") REFERENCES "public"."identities"("identity_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "lobbies" ADD CONSTRAINT "lobbies_namespace_id_namespaces_namespace_id_fk" FOREIGN KEY ("namespace_id") REFERENCES "public"."namespaces"("namespace_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "lobbies" ADD CONSTRAINT "lobbies_server_id_servers_server_id_fk" FOREIGN KEY ("server_id") REFERENCES "public"."servers"("server_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "players" ADD CONSTRAINT "players_lobby_id_lobbies_lobby_id_fk" FOREIGN KEY ("lobby_id") REFERENCES "public"."lobbies"("lobby_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "namespace_versions" ADD CONSTRAINT "namespace_versions_namespace_id_namespaces_namespace_id_fk" FOREIGN KEY ("namespace_id") REFERENCES "public"."namespaces"("namespace_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "namespace_versions" ADD CONSTRAINT "namespace_versions_version_id_versions_version_id_fk" FOREIGN KEY ("version_id") REFERENCES "public"."versions"("version_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "namespaces" ADD CONSTRAINT "namespaces_game_id_games_game_id_fk" FOREIGN KEY ("game_id") REFERENCES "public"."games"("game_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "namespaces" ADD CONSTRAINT "namespaces_version_id_versions_version_id_fk" FOREIGN KEY ("version_id") REFERENCES "public"."versions"("version_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "server_log_chunks" ADD CONSTRAINT "server_log_chunks_server_id_servers_server_id_fk" FOREIGN KEY ("server_id") REFERENCES "public"."servers"("server_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "server_ports" ADD CONSTRAINT "server_ports_server_id_servers_server_id_fk" FOREIGN KEY ("server_id") REFERENCES "public"."servers"("server_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "servers" ADD CONSTRAINT "servers_namespace_id_namespaces_namespace_id_fk" FOREIGN KEY ("namespace_id") REFERENCES "public"."namespaces"("namespace_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "upload_files" ADD CONSTRAINT "upload_files_upload_id_uploads_upload_id_fk" FOREIGN KEY ("upload_id") REFERENCES "public"."uploads"("upload_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "uploads" ADD CONSTRAINT "uploads_game_id_games_game_id_fk" FOREIGN KEY ("game_id") REFERENCES "public"."games"("game_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "versions" ADD CONSTRAINT "versions_game_id_games_game_id_fk" FOREIGN KEY ("game_id") REFERENCES "public"."games"("game_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "builds_by_game" ON "builds" USING btree ("game_id","create_ts");--> statement-breakpoint
CREATE INDEX "builds_by_namespace" ON "builds" USING btree ("namespace_id","create_ts");--> statement-breakpoint
CREATE INDEX "builds_by_upload" ON "builds" USING btree ("upload_id");--> statement-breakpoint
CREATE INDEX "games_by_group" ON "games" USING btree ("developer_group_id");--> statement-breakpoint
CREATE INDEX "group_members_by_identity" ON "group_members" USING btree ("identity_id");--> statement-breakpoint
CREATE INDEX "lobbies_changed" ON "lobbies" USING btree ("namespace_id","changed");--> statement-breakpoint
CREATE INDEX "lobbies_running" ON "lobbies" USING btree ("namespace_id") WHERE stop_ts is null;--> statement-breakpoint
CREATE INDEX "lobbies_not_ready" ON "lobbies" USING btree ("create_ts") WHERE ready_ts is null and stop_ts is null;--> statement-breakpoint
CREATE INDEX "lobbies_idle" ON "lobbies" USING btree ("idle_ts") WHERE idle_ts is not null and stop_ts is null;--> statement-breakpoint
CREATE INDEX "players_seated" ON "players" USING btree ("lobby_id") WHERE remove_ts is null;--> statement-breakpoint
CREATE INDEX "players_awaited" ON "players" USING btree ("seat_deadline_ts") WHERE connect_ts is null and remove_ts is null;--> statement-breakpoint
CREATE INDEX "players_by_age" ON "players" USING btree ("create_ts") WHERE remove_ts is null;--> statement-breakpoint
CREATE INDEX "namespace_versions_by_time" ON "namespace_versions" USING btree ("namespace_id","deploy_ts");--> statement-breakpoint
CREATE INDEX "server_log_chunks_by_age" ON "server_log_chunks" USING btree ("ts");--> statement-breakpoint
CREATE INDEX "server_ports_by_server" ON "server_ports" USING btree ("server_id");--> statement-breakpoint
CREATE INDEX "servers_by_namespace" ON "servers" USING btree ("namespace_id","created_at","server_id");--> statement-breakpoint
CREATE INDEX "servers_waiting" ON "servers" USING btree ("datacenter_id","created_at") WHERE node_id is null and ended_at is null;--> statement-breakpoint
CREATE INDEX "servers_of_node" ON "servers" USING btree ("node_id") WHERE ended_at is null;--> statement-breakpoint
CREATE INDEX "uploads_by_age" ON "uploads" USING btree ("create_ts");