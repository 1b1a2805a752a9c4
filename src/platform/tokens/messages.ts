import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { assert } from '../errors.ts';

/** An encoded UUID begins with the tag of field 1 and the length of its bytes. */
const UUID_HEAD = [0x0a, 16] as const;
const UUID_HEAD_HEX = Uint8Array.of(...UUID_HEAD).toHex();
const UTF_8 = new TextDecoder('utf-8', { fatal: true });

/** Writes a protobuf message of numbered fields, in the order of the calls. */
export class MessageWriter {
  readonly #writer = new BinaryWriter();

  integer(number: number, value: number): void {
    this.#writer.tag(number, WireType.Varint).int64(value);
  }

  text(number: number, value: string): void {
    this.#writer.tag(number, WireType.LengthDelimited).string(value);
  }

  /** Writes a UUID as a message with 16 bytes in field 1. */
  uuid(number: number, value: string): void {
    const bytes = Uint8Array.fromHex(UUID_HEAD_HEX + value.replaceAll('-', ''));
    this.#writer.tag(number, WireType.LengthDelimited).bytes(bytes);
  }

  /** Begins a field that is a message. The fields up to `end` are its own. */
  begin(number: number): void {
    this.#writer.tag(number, WireType.LengthDelimited).fork();
  }

  end(): void {
    this.#writer.join();
  }

  finish(): Uint8Array {
    return this.#writer.finish();
  }
}

/** The fields of a message. Each getter throws if the field is missing or has another type. */
export class MessageFields {
  readonly #fields: ReadonlyMap<number, (number | Uint8Array)[]>;

  constructor(fields: ReadonlyMap<number, (number | Uint8Array)[]>) {
    this.#fields = fields;
  }

  integer(number: number): number {
    const value = this.#last(number);
    assert(typeof value === 'number', `field ${number} is an integer`);
    return value;
  }

  text(number: number): string {
    return UTF_8.decode(this.#bytes(number));
  }

  message(number: number): MessageFields {
    return readMessage(this.#bytes(number));
  }

  messages(number: number): MessageFields[] {
    return (this.#fields.get(number) ?? []).map((value) => {
      assert(value instanceof Uint8Array, `field ${number} has a length`);
      return readMessage(value);
    });
  }

  uuid(number: number): string {
    const bytes = this.#bytes(number);
    assert(bytes.length === UUID_HEAD.length + 16, 'a UUID has 16 bytes');
    assert(bytes[0] === UUID_HEAD[0] && bytes[1] === UUID_HEAD[1], 'a UUID is a message with one field');
    const hex = bytes.toHex().slice(2 * UUID_HEAD.length);
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
  }

  has(number: number): boolean {
    return this.#fields.has(number);
  }

  numbers(): number[] {
    return [...this.#fields.keys()];
  }

  /** Returns the last value of a field, because protobuf ignores the earlier ones. */
  #last(number: number): number | Uint8Array | undefined {
    return this.#fields.get(number)?.at(-1);
  }

  #bytes(number: number): Uint8Array {
    const value = this.#last(number);
    assert(value instanceof Uint8Array, `field ${number} has a length`);
    return value;
  }
}

/** Reads a message of integers and length-delimited fields. Throws for any other bytes. */
export function readMessage(bytes: Uint8Array): MessageFields {
  const fields = new Map<number, (number | Uint8Array)[]>();
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    assert(type === WireType.Varint || type === WireType.LengthDelimited, 'a field is an integer or has a length');
    const value = type === WireType.Varint ? Number(reader.int64()) : reader.bytes();
    const values = fields.get(number);
    if (values) values.push(value);
    else fields.set(number, [value]);
  }
  return new MessageFields(fields);
}
