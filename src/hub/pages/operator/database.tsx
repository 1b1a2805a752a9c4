import type { Answer } from '../../data/api.ts';
import { Facts } from '../../parts/facts.tsx';
import { Polled } from '../../parts/polled.tsx';
import { Section } from '../../parts/section.tsx';
import { sizeOf } from '../../parts/size.ts';
import { Table } from '../../parts/table.tsx';
import { Age } from '../../parts/time.tsx';

const DATABASE = '/cloud/service/database';
const REFRESH_MS = 15_000;
/** From this share of all connections on, their number is marked. */
const NEARLY = 0.9;

type State = Answer<typeof DATABASE, 'get'>['database'];

/** The database of all processes: its connections, its largest tables and its standbys. */
export function Database() {
  return (
    <Polled path={DATABASE} every_ms={REFRESH_MS}>
      {({ database }) => (
        <>
          <Summary of={database} />
          <Programs of={database.programs} />
          <Tables of={database.tables} />
          <Replicas of={database.replicas} />
        </>
      )}
    </Polled>
  );
}

function Summary({ of }: { of: State }) {
  const { connections, connections_max, oldest_transaction: oldest } = of;
  return (
    <Section title="Database">
      <Facts
        of={[
          [
            'PostgreSQL',
            <>
              {of.version}, started <Age of={of.start_ts} /> ago
            </>,
          ],
          ['Role', <Role key="role" of={of} />],
          ['Size', sizeOf(of.size_bytes)],
          [
            'Connections',
            <>
              {connections} <span class="quiet">of {connections_max}</span>{' '}
              <meter
                aria-label="Connections"
                value={connections}
                max={connections_max}
                high={connections_max * NEARLY}
              />
            </>,
          ],
          [
            'Oldest transaction',
            oldest ? (
              <>
                <Age of={oldest.begin_ts} /> old, of {oldest.program || 'a program without a name'}, {oldest.state}
              </>
            ) : (
              'none is open'
            ),
          ],
        ]}
      />
    </Section>
  );
}

function Role({ of: { is_standby, is_read_only } }: { of: State }) {
  if (is_standby) return <span class="badge bad">standby, takes no writes</span>;
  if (is_read_only) return <span class="badge bad">read-only</span>;
  return <span class="badge good">primary, takes writes</span>;
}

function Programs({ of }: { of: State['programs'] }) {
  return (
    <Section title="Programs">
      <Table heads={['Program', 'From', 'Connections', 'Active', 'Idle in a transaction']}>
        {of.map(({ name, address = 'this machine', connections, active, in_transaction }) => (
          <tr key={`${name} ${address}`}>
            <td>{name}</td>
            <td class="whole">{address}</td>
            <td>{connections}</td>
            <td>{active}</td>
            <td>{in_transaction}</td>
          </tr>
        ))}
      </Table>
    </Section>
  );
}

function Tables({ of }: { of: State['tables'] }) {
  return (
    <Section title="Largest tables">
      <Table heads={['Table', 'Size', 'Rows', 'Dead rows', 'Vacuumed']}>
        {of.map(({ name, size_bytes, rows, dead_rows, vacuum_ts }) => (
          <tr key={name}>
            <td class="whole">{name}</td>
            <td class="whole">{sizeOf(size_bytes)}</td>
            <td>{rows.toLocaleString()}</td>
            <td>{dead_rows.toLocaleString()}</td>
            <td class="whole">
              {vacuum_ts === undefined ? (
                <span class="quiet">not yet</span>
              ) : (
                <>
                  <Age of={vacuum_ts} /> ago
                </>
              )}
            </td>
          </tr>
        ))}
      </Table>
    </Section>
  );
}

function Replicas({ of }: { of: State['replicas'] }) {
  return (
    <Section title="Standbys">
      {of.length === 0 ? (
        <p class="card pad">No standby follows this database.</p>
      ) : (
        <Table heads={['Standby', 'From', 'State', 'Behind']}>
          {of.map(({ name, address = 'this machine', state, lag_bytes }) => (
            <tr key={`${name} ${address}`}>
              <td>{name}</td>
              <td class="whole">{address}</td>
              <td>{state}</td>
              <td class="whole">{lag_bytes === undefined ? 'unknown' : sizeOf(lag_bytes)}</td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  );
}
