import { ptr } from 'bun:ffi';
import { closeFile, ENOTDIR, OPEN, tryOpenFile } from './files.ts';
import { systemCall, trySystemCall } from './system-calls.ts';

/** What a process may still do after it restricts itself (landlock(7)). Everything else that Landlock knows is refused. */
export interface Allowed {
  /** Files and directories to read and execute. Missing ones are skipped. */
  read: string[];
  /** Directories to do everything in. */
  write: string[];
  /** Devices and files to read and write, without execution. */
  use: string[];
  /** Ports to listen on. */
  tcp_ports: number[];
}

const CREATE_RULESET_VERSION = 1;
const RULE_PATH_BENEATH = 1;
const RULE_NET_PORT = 2;
const NET_BIND_TCP = 1;
const SCOPE_ABSTRACT_UNIX_SOCKET = 1;
const SCOPE_SIGNAL = 2;

const EXECUTE = 1 << 0;
const WRITE_FILE = 1 << 1;
const READ_FILE = 1 << 2;
const READ_DIRECTORY = 1 << 3;
const MAKE_CHARACTER_DEVICE = 1 << 6;
const MAKE_BLOCK_DEVICE = 1 << 11;
const TRUNCATE = 1 << 14;
const IOCTL_DEVICE = 1 << 15;
/** Rights that apply to files; the others apply to directories only. */
const OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE;
/** The number of rights that each version of the interface knows. */
const RIGHTS_BY_ABI = [0, 13, 14, 15, 15, 16];
const ABI_WITH_PORTS = 4;
const ABI_WITH_SCOPES = 6;

/** Returns the version of Landlock's interface in this kernel; 0 if it is missing or turned off. */
export function readLandlockAbi(): number {
  return Math.max(0, trySystemCall('landlock_create_ruleset', 0, 0, CREATE_RULESET_VERSION));
}

export const restrictsPorts = (abi: number): boolean => abi >= ABI_WITH_PORTS;
export const restrictsSignals = (abi: number): boolean => abi >= ABI_WITH_SCOPES;

/** Restricts this thread, and the program that it executes, forever. `no_new_privs` must be set. */
export function restrictByLandlock(allowed: Allowed): void {
  const abi = readLandlockAbi();
  const all = 2 ** (RIGHTS_BY_ABI[Math.min(abi, RIGHTS_BY_ABI.length - 1)] ?? 0) - 1;
  const attributes = new BigUint64Array([
    BigInt(all),
    ...(restrictsPorts(abi) ? [BigInt(NET_BIND_TCP)] : []),
    ...(restrictsSignals(abi) ? [BigInt(SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL)] : []),
  ]);
  const ruleset = systemCall('landlock_create_ruleset', ptr(attributes), attributes.byteLength, 0);
  const everything = all & ~(MAKE_CHARACTER_DEVICE | MAKE_BLOCK_DEVICE);
  for (const path of allowed.read) allowPath(ruleset, path, all & (EXECUTE | READ_FILE | READ_DIRECTORY));
  for (const path of allowed.write) allowPath(ruleset, path, everything);
  for (const path of allowed.use) allowPath(ruleset, path, all & (READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEVICE));
  if (restrictsPorts(abi)) for (const port of allowed.tcp_ports) allowPort(ruleset, port);
  systemCall('landlock_restrict_self', ruleset, 0);
  closeFile(ruleset);
}

function allowPath(ruleset: number, path: string, rights: number): void {
  const directory = tryOpenFile(path, OPEN.name | OPEN.directory);
  const is_file = directory === -ENOTDIR;
  const file = is_file ? tryOpenFile(path, OPEN.name) : directory;
  if (file < 0) return;
  const applicable = is_file ? rights & OF_FILES : rights;
  // struct landlock_path_beneath_attr, which is packed: rights, descriptor.
  const rule = new DataView(new ArrayBuffer(12));
  rule.setBigUint64(0, BigInt(applicable), true);
  rule.setInt32(8, file, true);
  systemCall('landlock_add_rule', ruleset, RULE_PATH_BENEATH, ptr(rule), 0);
  closeFile(file);
}

function allowPort(ruleset: number, port: number): void {
  const rule = new BigUint64Array([BigInt(NET_BIND_TCP), BigInt(port)]);
  systemCall('landlock_add_rule', ruleset, RULE_NET_PORT, ptr(rule), 0);
}
