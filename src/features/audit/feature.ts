import type { Feature } from '../../platform/feature.ts';
import type { Uploads } from '../uploads/uploads.ts';
import { type AuditDependencies, type AuditLog, createAuditLog } from './audit.ts';
import { auditRoutes } from './routes.ts';

type Dependencies = Omit<AuditDependencies, 'gameOfUpload'> & { uploads: Pick<Uploads, 'get'> };

/** Opens the audit log. */
export function openAudit(dependencies: Dependencies): Feature<AuditLog> {
  const { uploads } = dependencies;
  const audit = createAuditLog({
    ...dependencies,
    gameOfUpload: async (upload_id) => (await uploads.get(upload_id)).game_id ?? undefined,
  });
  return { api: audit, routes: auditRoutes(audit), startWork: (signal) => [audit.startDeletingOld(signal)] };
}
