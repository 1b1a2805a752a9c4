import { type Static, Type } from '@sinclair/typebox';
import { Text, Timestamp, Uuid } from '../../platform/http/shapes.ts';
import { ACTIONS, VersionConfig } from './config.ts';
import type { VersionRow } from './tables.ts';
import type { Tier } from './tiers.ts';

export const CreateVersionBody = Type.Object({ display_name: Text, config: VersionConfig });
export const CreateVersionAnswer = Type.Object({ version_id: Uuid });
export const ReserveNameAnswer = Type.Object({ version_display_name: Type.String() });

export const VersionAnswer = Type.Object({
  version: Type.Object(
    {
      version_id: Uuid,
      create_ts: Timestamp,
      display_name: Type.String(),
      config: VersionConfig,
    },
    { title: 'Version' },
  ),
});

export const VersionSummary = Type.Object(
  { version_id: Uuid, create_ts: Timestamp, display_name: Type.String() },
  { title: 'VersionSummary' },
);

/** Shows secrets as empty texts, so that a version sent back unchanged is refused for its missing secrets. */
export function toVersion({ version_id, create_ts, display_name, config }: VersionRow) {
  return { version_id, create_ts: create_ts.toISOString(), display_name, config: hideSecrets(config) };
}

function hideSecrets({ matchmaker: kept, ...config }: VersionConfig): VersionConfig {
  if (!kept) return config;
  const matchmaker = structuredClone(kept);
  const { captcha, game_modes = {} } = matchmaker;
  const keys = [captcha?.hcaptcha, captcha?.turnstile, ...Object.values(captcha?.turnstile?.domains ?? {})];
  for (const one of keys) if (one?.secret_key !== undefined) one.secret_key = '';
  const actions = Object.values(game_modes).flatMap((mode) => ACTIONS.map((action) => mode.actions?.[action]));
  const verifications = actions.flatMap((action) => [action?.verification_config, action?.verification]);
  for (const one of verifications) if (one?.secret !== undefined) one.secret = '';
  return { ...config, matchmaker };
}

export function toVersionSummary(row: Pick<VersionRow, 'version_id' | 'create_ts' | 'display_name'>) {
  return { version_id: row.version_id, create_ts: row.create_ts.toISOString(), display_name: row.display_name };
}

const TierShape = Type.Object(
  {
    tier_name_id: Type.String(),
    rivet_cores_numerator: Type.Integer(),
    rivet_cores_denominator: Type.Integer(),
    cpu: Type.Integer({ description: 'Thousandths of a core.' }),
    memory: Type.Integer({ description: 'MiB (1,048,576 bytes).' }),
    disk: Type.Integer({ description: 'Megabytes.' }),
    bandwidth: Type.Integer({ description: 'Kilobytes per second.' }),
    price_per_second: Type.Integer(),
  },
  { title: 'Tier' },
);
export const TiersAnswer = Type.Object({ tiers: Type.Array(TierShape) });

/** Disk and bandwidth of a whole core in the reference API. */
const DISK_OF_CORE = 8_192;
const BANDWIDTH_OF_CORE = 2_000;

/** `basic-1d4` is one core divided by four. */
export function toTier([tier_name_id, { cpu, memory }]: [string, Tier]): Static<typeof TierShape> {
  const [numerator = 1, denominator = 1] = tier_name_id.split('-').at(-1)?.split('d').map(Number) ?? [];
  return {
    tier_name_id,
    rivet_cores_numerator: numerator,
    rivet_cores_denominator: denominator,
    cpu,
    memory,
    disk: Math.round((DISK_OF_CORE * numerator) / denominator),
    bandwidth: Math.round((BANDWIDTH_OF_CORE * numerator) / denominator),
    price_per_second: 0,
  };
}
