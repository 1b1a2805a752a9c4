import { StartError } from './errors.ts';
import { parseAddress } from './networks.ts';

/** Kinds of addresses that many clients may share, or hide behind. */
const ADDRESS_CLASSES = ['vpn', 'proxy', 'tor', 'hosting'] as const;
export type AddressClass = (typeof ADDRESS_CLASSES)[number];

const FILE_BYTES_MAX = 128 * 1024 ** 2;

/** Classifies addresses. */
export interface AddressClasses {
  /** Returns the classes of an address, each once; an empty list if no line matches it. */
  classesOf(address: string): AddressClass[];
}

/** The networks of one prefix length: their classes, one bit each, by prefix. */
type Networks = Map<bigint, number>;

/**
 * Reads the operator's list: each line has a network and its class, like `192.0.2.0/24 vpn` or `2001:db8::1 tor`; a `#`
 * begins a comment. Throws {@link StartError} with the first invalid line. Without a file no address has a class.
 */
export async function readAddressClasses(path: string | undefined): Promise<AddressClasses> {
  return parseAddressClasses(path === undefined ? '' : await readList(path));
}

async function readList(path: string): Promise<string> {
  const file = Bun.file(path);
  const problem = (what: string) => new StartError(`MUSTER_ADDRESS_CLASSES names the file ${path}, ${what}.`);
  if (file.size > FILE_BYTES_MAX) throw problem(`which has more than ${FILE_BYTES_MAX} bytes: shorten it`);
  try {
    return await file.text();
  } catch (cause) {
    throw Object.assign(problem('which cannot be read: check that it exists and this user may read it'), { cause });
  }
}

/** Parses the text of the list. */
export function parseAddressClasses(text: string): AddressClasses {
  /** By the number of bits of an address, then by the prefix length. */
  const lists = new Map<number, Map<number, Networks>>([
    [32, new Map()],
    [128, new Map()],
  ]);
  for (const [index, line] of text.split('\n').entries()) {
    const [written = ''] = line.split('#');
    if (written.trim() === '') continue;
    const { size, bits, network, class_bit } = parseLine(written.trim(), index + 1);
    const sizes = lists.get(size);
    const networks = sizes?.get(bits) ?? new Map<bigint, number>();
    sizes?.set(bits, networks);
    networks.set(network, (networks.get(network) ?? 0) | class_bit);
  }
  const is_empty = [...lists.values()].every((sizes) => sizes.size === 0);
  return {
    // One step for each prefix length, so that a lookup in a list of millions stays fast.
    classesOf(address) {
      const parsed = is_empty ? undefined : parseAddress(address);
      if (!parsed) return [];
      const bytes = parsed.toByteArray();
      const number = toNumber(bytes);
      let found = 0;
      for (const [bits, networks] of lists.get(bytes.length * 8) ?? []) {
        found |= networks.get(number >> BigInt(bytes.length * 8 - bits)) ?? 0;
      }
      return ADDRESS_CLASSES.filter((_, index) => found & (1 << index));
    },
  };
}

function parseLine(line: string, number: number) {
  const refuse = (what: string) =>
    new StartError(
      `MUSTER_ADDRESS_CLASSES: line ${number}, "${line.slice(0, 80)}", ${what}. Expected a line like "192.0.2.0/24 vpn".`,
    );
  const [network = '', name = '', ...more] = line.split(/\s+/);
  const class_index = (ADDRESS_CLASSES as readonly string[]).indexOf(name);
  if (class_index < 0 || more.length > 0)
    throw refuse(`has no class (${ADDRESS_CLASSES.join(', ')}) after the network`);
  const [address = '', length, ...slashes] = network.split('/');
  const parsed = parseAddress(address);
  if (!parsed || address.includes('%')) throw refuse('does not begin with an address');
  const bytes = parsed.toByteArray();
  const size = bytes.length * 8;
  if (size === 32 && address.includes(':')) throw refuse('has an IPv4 address inside IPv6: write it as IPv4');
  const bits = length === undefined ? size : Number(length);
  if (slashes.length > 0 || !/^\d{1,3}$/.test(length ?? '0') || bits > size) {
    throw refuse(`has no length from 0 to ${size} after the slash`);
  }
  return { size, bits, network: toNumber(bytes) >> BigInt(size - bits), class_bit: 1 << class_index };
}

const toNumber = (bytes: number[]): bigint => bytes.reduce((number, byte) => (number << 8n) | BigInt(byte), 0n);
