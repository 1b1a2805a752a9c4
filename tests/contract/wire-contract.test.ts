import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { CATALOGUE } from '../../src/platform/error-catalogue.ts';
import { contractProblems, OPERATIONS } from '../support/contract.ts';
import { openTestService, type TestService } from '../support/service.ts';
import { createContractClient } from './contract-client.ts';
import { callCloud } from './wire-contract-cloud.ts';
import { callMatchmaker } from './wire-contract-matchmaker.ts';
import { callPeople } from './wire-contract-people.ts';
import { callServers } from './wire-contract-servers.ts';

let opened: TestService;
beforeAll(async () => {
  opened = await openTestService();
}, 300_000);
afterAll(() => opened[Symbol.asyncDispose]());

describe("a client of the reference API's contract", () => {
  test('gets an answer of the shape it expects from every operation', async () => {
    const { api, administrator_token } = opened;
    const client = createContractClient(api);
    const created = await callCloud(client, opened, administrator_token);
    await callServers(client, created);
    await callMatchmaker(client, created);
    // Last, because a member who leaves the group loses the tokens of its games.
    await callPeople(client, opened, created);
    const missing = OPERATIONS.filter(({ operation }) => !client.called.has(operation));
    console.log(`${client.called.size} of ${OPERATIONS.length} operations`);
    expect(missing.map(({ operation }) => operation)).toEqual([]);
  }, 300_000);

  const open = /^(cloud_bootstrap|cloud_tiers_|cloud_devices_links_(prepare|get)|auth_tokens_)/;
  for (const { operation, method, path } of OPERATIONS.filter((one) => !open.test(one.operation))) {
    test(`${operation} without a token is refused by an error of the catalogue`, async () => {
      const url = path.replace(/\{\w+\}/g, crypto.randomUUID());
      const { status, body } = await opened.api.call(method, url, method === 'GET' ? {} : { body: {} });
      expect(contractProblems('ErrorBody', body)).toEqual([]);
      expect({ status, code: body.code }).toEqual({ status: 401, code: 'API_UNAUTHORIZED' });
      expect(Object.keys(CATALOGUE)).toContain(body.code);
    });
  }
});
