import { Type } from '@sinclair/typebox';
import { Timestamp, Uuid } from '../../platform/http/shapes.ts';
import { VersionConfig } from './config.ts';
import type { VersionRow } from './tables.ts';

export const CreateVersionBody = Type.Object({ display_name: Type.String(), config: VersionConfig });
export const CreateVersionAnswer = Type.Object({ version_id: Uuid });
export const ReserveNameAnswer = Type.Object({ version_display_name: Type.String() });

export const VersionAnswer = Type.Object({
  version: Type.Object({
    version_id: Uuid,
    create_ts: Timestamp,
    display_name: Type.String(),
    config: VersionConfig,
  }),
});

export const VersionSummary = Type.Object({ version_id: Uuid, create_ts: Timestamp, display_name: Type.String() });

export function toVersion({ version_id, create_ts, display_name, config }: VersionRow) {
  return { version_id, create_ts: create_ts.toISOString(), display_name, config };
}

export function toVersionSummary(row: Pick<VersionRow, 'version_id' | 'create_ts' | 'display_name'>) {
  return { version_id: row.version_id, create_ts: row.create_ts.toISOString(), display_name: row.display_name };
}
