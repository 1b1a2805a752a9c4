import { beforeAll, describe, expect, test } from 'bun:test';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import fc from 'fast-check';
import { CompactSign, importJWK } from 'jose';
import { ServiceError } from '../../src/platform/errors.ts';
import { decodeClaims, encodeClaims } from '../../src/platform/tokens/claims.ts';
import { makeTokenMaker, type TokenMaker } from '../support/token-maker.ts';

type Field = [number: number, value: number | string | Uint8Array];

/** Writes a message of any fields, also one that the service would not write. */
function writeMessage(fields: Field[]): Uint8Array {
  const writer = new BinaryWriter();
  for (const [number, value] of fields) {
    if (typeof value === 'number') writer.tag(number, WireType.Varint).int64(value);
    else if (typeof value === 'string') writer.tag(number, WireType.LengthDelimited).string(value);
    else writer.tag(number, WireType.LengthDelimited).bytes(value);
  }
  return writer.finish();
}

const writeUuid = (uuid: string) => writeMessage([[1, Uint8Array.fromHex(uuid.replaceAll('-', ''))]]);

let maker: TokenMaker;
beforeAll(async () => {
  maker = await makeTokenMaker();
});

describe('tokens: a signed message in another form is refused:', () => {
  const id = crypto.randomUUID();
  const entitlement = (number: number): Uint8Array => writeMessage([[number, writeMessage([[1, writeUuid(id)]])]]);
  const later = Date.parse('2030-01-01T00:00:00.000Z');
  const base: Parameters<typeof writeMessage>[0] = [
    [1, later],
    [2, 1],
    [3, writeUuid(id)],
    [4, entitlement(7)],
  ];
  const without = (number: number) => writeMessage(base.filter(([field]) => field !== number));
  const replaced = (number: number, value: number | string | Uint8Array) =>
    writeMessage(base.map(([field, old]) => [field, field === number ? value : old]));

  const WRONG: [name: string, bytes: Uint8Array][] = [
    ['nothing', new Uint8Array()],
    ['no expiry', without(1)],
    ['no issue time', without(2)],
    ['no id', without(3)],
    ['no entitlement', without(4)],
    ['an unknown entitlement', replaced(4, entitlement(15))],
    ['an unknown entitlement whose number takes two bytes', replaced(4, entitlement(70))],
    ['an empty entitlement', replaced(4, new Uint8Array())],
    ['two entitlements in one field', replaced(4, Buffer.concat([entitlement(7), entitlement(2)]))],
    ['two entitlements', writeMessage([...base, [4, entitlement(2)]])],
    ['the same entitlement twice', writeMessage([...base, [4, entitlement(7)]])],
    ['an unknown field', writeMessage([...base, [5, 1]])],
    [
      'an unknown field within the entitlement',
      replaced(
        4,
        writeMessage([
          [
            7,
            writeMessage([
              [1, writeUuid(id)],
              [9, 1],
            ]),
          ],
        ]),
      ),
    ],
    ['fields in another order', writeMessage([...base].reverse())],
    ['an expiry that is a string', replaced(1, 'never')],
    ['an id that is an integer', replaced(3, 7)],
    ['an id that is too short', replaced(3, writeMessage([[1, new Uint8Array(15)]]))],
    ['an id that is too long', replaced(3, writeMessage([[1, new Uint8Array(17)]]))],
    ['bytes after the end', Buffer.concat([writeMessage(base), new Uint8Array([0])])],
    ['a truncated message', writeMessage(base).slice(0, -1)],
    [
      'an expiry with an overlong encoding',
      Buffer.from(
        Buffer.from(writeMessage([[1, 1]]))
          .toString('hex')
          .replace(/01$/, '8100') + Buffer.from(without(1)).toString('hex'),
        'hex',
      ),
    ],
    ['JSON', Buffer.from(JSON.stringify({ exp: later, game_id: id }))],
  ];

  const isAccepted = async (bytes: Uint8Array): Promise<boolean> => {
    const key = await importJWK(maker.key, 'EdDSA');
    const signed = await new CompactSign(bytes).setProtectedHeader({ typ: 'JWT', alg: 'EdDSA' }).sign(key);
    return await maker.tokens.verify(`cloud.${signed}`).then(
      () => true,
      (error: unknown) => !(error instanceof ServiceError && error.code === 'TOKEN_INVALID'),
    );
  };

  test.each(WRONG)('%s', async (_name, bytes) => {
    expect(await isAccepted(bytes)).toBe(false);
  });

  test('tokens: the message that these cases change is accepted', async () => {
    expect(await isAccepted(writeMessage(base))).toBe(true);
  });

  test('tokens: arbitrary bytes are refused without a crash', () => {
    const mutated = fc
      .tuple(fc.nat({ max: 60 }), fc.uint8Array({ maxLength: 4 }), fc.nat({ max: 4 }))
      .map(([place, inserted, removed]) => {
        const bytes = writeMessage(base);
        return Buffer.concat([bytes.slice(0, place), inserted, bytes.slice(place + removed)]);
      });
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 100 }), mutated), (bytes) => {
        const read = decodeClaims(bytes);
        // Some changed bytes are those of another valid token, then in exactly its form.
        expect(read === undefined || Buffer.from(encodeClaims(read)).equals(bytes)).toBe(true);
      }),
      { numRuns: 10_000 },
    );
  });
});
