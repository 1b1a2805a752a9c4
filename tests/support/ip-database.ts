/** An address and its location. */
interface Placed {
  address: string;
  location: { latitude: number; longitude: number };
}

const MARKER = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1');
const ADDRESS_BITS = 32;
const RECORD_BITS = 24;
const NOTHING = new Uint8Array(16);

/** Returns a file in MaxMind's format (MaxMind DB 2.0) with single IPv4 addresses. */
export function writeIpDatabase(placed: Placed[]): Buffer {
  const nodes: [number, number][] = [[-1, -1]];
  const data: Buffer[] = [];
  let data_length = 0;
  for (const { address, location } of placed) {
    const bits = address
      .split('.')
      .map((octet) => Number(octet).toString(2).padStart(8, '0'))
      .join('');
    let node = 0;
    for (const [depth, bit] of [...bits].entries()) {
      const side = bit === '1' ? 1 : 0;
      const row = nodes[node] ?? [-1, -1];
      if (depth === ADDRESS_BITS - 1) row[side] = -2 - data_length;
      else {
        if (row[side] < 0) row[side] = nodes.push([-1, -1]) - 1;
        node = row[side];
      }
    }
    const encoded = encode({ location });
    data.push(encoded);
    data_length += encoded.length;
  }
  const toPointer = (record: number) =>
    record >= 0 ? record : nodes.length + (record === -1 ? 0 : NOTHING.length - 2 - record);
  const tree = Buffer.alloc((nodes.length * RECORD_BITS * 2) / 8);
  for (const [index, [left, right]] of nodes.entries()) {
    tree.writeUIntBE(toPointer(left), index * 6, 3);
    tree.writeUIntBE(toPointer(right), index * 6 + 3, 3);
  }
  const metadata = {
    node_count: nodes.length,
    record_size: RECORD_BITS,
    ip_version: 4,
    database_type: 'Test-City',
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: 1,
  };
  return Buffer.concat([tree, NOTHING, ...data, MARKER, encode(metadata)]);
}

type Field = string | number | { [name: string]: Field };

/** Encodes whole numbers as uint32 and others as double. No text is longer than 28 bytes. */
function encode(field: Field): Buffer {
  if (typeof field === 'string') return Buffer.concat([Buffer.of((2 << 5) | field.length), Buffer.from(field)]);
  if (typeof field === 'object') {
    const members = Object.entries(field);
    const encoded = members.flatMap(([name, member]) => [encode(name), encode(member)]);
    return Buffer.concat([Buffer.of((7 << 5) | members.length), ...encoded]);
  }
  if (Number.isInteger(field)) {
    const number = Buffer.alloc(5);
    number[0] = (6 << 5) | 4;
    number.writeUInt32BE(field, 1);
    return number;
  }
  const number = Buffer.alloc(9);
  number[0] = (3 << 5) | 8;
  number.writeDoubleBE(field, 1);
  return number;
}
