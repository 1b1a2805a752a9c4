-- Processes of the release before still write the column until all are upgraded, so a later release drops it.
COMMENT ON COLUMN "servers"."user_id" IS 'unused';
