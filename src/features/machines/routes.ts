import { route } from '../../platform/http/route.ts';
import type { Machines } from './machines.ts';
import { DrainBody, MachineAnswer, MachinesAnswer, toMachine } from './wire.ts';

const MACHINE = '/cloud/machines/:machine_id';

export function machineRoutes(machines: Machines) {
  return [
    route(
      'GET',
      '/cloud/machines',
      {
        operation: 'listMachines',
        summary: 'Lists the machines that run game servers, and what runs on each. For administrators.',
        allow: ['identity'],
        response: MachinesAnswer,
        errors: ['IDENTITY_NOT_ADMIN'],
      },
      async ({ caller }) => ({ machines: (await machines.list(caller)).map(toMachine) }),
    ),
    route(
      'GET',
      MACHINE,
      {
        operation: 'getMachine',
        summary: 'Returns a machine, for example to see how far its drain is. For administrators.',
        allow: ['identity'],
        response: MachineAnswer,
        errors: ['IDENTITY_NOT_ADMIN', 'MACHINE_NOT_FOUND'],
      },
      async ({ caller, params }) => ({ machine: toMachine(await machines.get(caller, params.machine_id)) }),
    ),
    route(
      'PUT',
      `${MACHINE}/drain`,
      {
        operation: 'setMachineDrain',
        recorded: ['deadline_ms'],
        summary:
          'Drains a machine: it gets no new servers and its lobbies end when they are empty, or at the deadline. For administrators.',
        allow: ['identity'],
        body: DrainBody,
        response: MachineAnswer,
        errors: ['IDENTITY_NOT_ADMIN', 'MACHINE_NOT_FOUND'],
      },
      async ({ caller, params, body }) => ({
        machine: toMachine(await machines.drain(caller, params.machine_id, body.deadline_ms)),
      }),
    ),
    route(
      'DELETE',
      `${MACHINE}/drain`,
      {
        operation: 'cancelMachineDrain',
        summary: 'Ends the drain of a machine, which takes new servers again. For administrators.',
        allow: ['identity'],
        response: MachineAnswer,
        errors: ['IDENTITY_NOT_ADMIN', 'MACHINE_NOT_FOUND'],
      },
      async ({ caller, params }) => ({ machine: toMachine(await machines.endDrain(caller, params.machine_id)) }),
    ),
  ];
}
