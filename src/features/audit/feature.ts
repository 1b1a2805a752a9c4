import type { Feature } from '../../platform/feature.ts';
import { type AuditDependencies, type AuditLog, createAuditLog } from './audit.ts';
import { auditRoutes } from './routes.ts';

/** Opens the audit log. */
export function openAudit(dependencies: AuditDependencies): Feature<AuditLog> {
  const audit = createAuditLog(dependencies);
  return { api: audit, routes: auditRoutes(audit), startWork: (signal) => [audit.startForgetting(signal)] };
}
