import type { ComponentChild, ComponentChildren } from 'preact';
import { useTitle } from '../../data/watched.ts';
import { Attention } from '../../parts/attention.tsx';
import { AuditLog } from '../../parts/audit-log.tsx';
import { Copyable } from '../../parts/copyable.tsx';
import { NotFoundPage } from '../../parts/not-found.tsx';
import { Section } from '../../parts/section.tsx';
import { Database } from './database.tsx';
import { ServiceLog } from './log.tsx';
import { Machines } from './machines.tsx';
import { Metrics } from './metrics.tsx';
import { Limits, Loops, Queue } from './process.tsx';

/** What an administrator operates, in parts: the service as a whole, and what it does now. */
export function OperatorPage({ part }: { part: string | undefined }) {
  const content = contentOf(part);
  if (!content) return <NotFoundPage what={`part of the operator's page: ${part}`} />;
  return <Part>{content}</Part>;
}

function Part({ children }: { children: ComponentChildren }) {
  useTitle('Operator');
  return (
    <>
      <div class="head">
        <h1>Operator</h1>
      </div>
      {children}
    </>
  );
}

/** Returns a part of the page; undefined if there is none of this name. */
function contentOf(part: string | undefined): ComponentChild {
  switch (part) {
    case undefined:
      return <Overview />;
    case 'database':
      return <Database />;
    case 'work':
      return <Loops />;
    case 'log':
      return <ServiceLog />;
    case 'changes':
      return (
        <Section title="Changes">
          <AuditLog path="/cloud/audit-log" parameters={{}} />
        </Section>
      );
    default:
      return undefined;
  }
}

function Overview() {
  return (
    <>
      <Attention games={[]} />
      <div class="row quiet">
        To check what only shows from outside, such as domains and ports, run: <Copyable text="muster doctor" />
      </div>
      <Machines />
      <Metrics />
      <Limits />
      <Queue />
    </>
  );
}
