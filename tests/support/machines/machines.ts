import { join } from 'node:path';
import type { Api } from '../api.ts';
import { waitFor } from '../wait.ts';

/** A service with an administrator, whose database has machines. */
interface Operated {
  api: Api;
  administrator_token: string;
}

/** Returns the calls by which an operator manages the machines of a service's database. */
export function machinesOf({ api, administrator_token: token }: Operated) {
  const pathOf = (machine_id: string) => `/cloud/machines/${machine_id}`;
  const get = async (machine_id: string) => (await api.ok('GET', pathOf(machine_id), { token })).machine;
  return {
    get,
    async list() {
      return (await api.ok('GET', '/cloud/machines', { token })).machines;
    },
    drain: async (machine_id: string, body: object = {}) =>
      (await api.ok('PUT', `${pathOf(machine_id)}/drain`, { token, body })).machine,
    endDrain: async (machine_id: string) => (await api.ok('DELETE', `${pathOf(machine_id)}/drain`, { token })).machine,
    /** Waits until a machine is in a state, as the service of these calls sees it. */
    waitForState: (machine_id: string, state: string) =>
      waitFor(async () => (await get(machine_id)).state === state, `machine ${machine_id} to be ${state}`),
  };
}

/** Returns the id of the machine with a data directory. */
export async function machineIdOf(data_directory: string): Promise<string> {
  return (await Bun.file(join(data_directory, 'node-id')).text()).trim();
}
