import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { assert } from '../errors.ts';

/** A value in a protobuf message: an integer, or what has a length (text, a UUID's bytes, a message within). */
export type FieldValue = number | string | Uint8Array;

/** A message as a list of numbered fields, in the order they are written. */
export function writeMessage(fields: [number: number, value: FieldValue][]): Uint8Array {
  const writer = new BinaryWriter();
  for (const [number, value] of fields) {
    if (typeof value === 'number') writer.tag(number, WireType.Varint).int64(value);
    else if (typeof value === 'string') writer.tag(number, WireType.LengthDelimited).string(value);
    else writer.tag(number, WireType.LengthDelimited).bytes(value);
  }
  return writer.finish();
}

/** The fields of a message that was read. Each getter throws when the field is missing or of another type. */
export interface MessageFields {
  integer(number: number): number;
  text(number: number): string;
  message(number: number): MessageFields;
  messages(number: number): MessageFields[];
  uuid(number: number): string;
  bytesAsUuid(number: number): string;
  has(number: number): boolean;
  numbers(): number[];
}

/** Reads a message of integers and length-delimited fields; throws when the bytes are anything else. */
export function readMessage(bytes: Uint8Array): MessageFields {
  const fields = new Map<number, (number | Uint8Array)[]>();
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    assert(type === WireType.Varint || type === WireType.LengthDelimited, 'a field is of a type we never write');
    const value = type === WireType.Varint ? Number(reader.int64()) : reader.bytes();
    fields.set(number, [...(fields.get(number) ?? []), value]);
  }

  function bytesOf(number: number): Uint8Array {
    const value = fields.get(number)?.at(-1);
    assert(value instanceof Uint8Array, `field ${number} has a length`);
    return value;
  }

  return {
    integer(number) {
      const value = fields.get(number)?.at(-1);
      assert(typeof value === 'number', `field ${number} is an integer`);
      return value;
    },
    text: (number) => new TextDecoder('utf-8', { fatal: true }).decode(bytesOf(number)),
    message: (number) => readMessage(bytesOf(number)),
    messages: (number) =>
      (fields.get(number) ?? []).map((value) => {
        assert(value instanceof Uint8Array, `field ${number} has a length`);
        return readMessage(value);
      }),
    uuid: (number) => readMessage(bytesOf(number)).bytesAsUuid(1),
    bytesAsUuid: (number) => formatUuid(bytesOf(number)),
    has: (number) => fields.has(number),
    numbers: () => [...fields.keys()],
  };
}

/** A UUID is a message of its own with 16 bytes in field 1. */
export function writeUuid(uuid: string): Uint8Array {
  return Uint8Array.fromHex(UUID_HEAD + uuid.replaceAll('-', ''));
}

/** The tag of field 1, and the length of what follows. */
const UUID_HEAD = '0a10';

function formatUuid(bytes: Uint8Array): string {
  assert(bytes.length === 16, 'a UUID has 16 bytes');
  return bytes.toHex().replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
