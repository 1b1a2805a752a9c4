import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { parse } from 'yaml';
import { StartError } from '../../../../platform/errors.ts';
import { omitUndefined } from '../../../../platform/omit-undefined.ts';

/** Where Kubernetes puts the credentials of a pod's service account. */
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
/** The name of the API server inside of a cluster. */
const OWN_CLUSTER = 'https://kubernetes.default.svc';
/** Kubernetes replaces the files of a service account before they expire. */
const READ_AGAIN_AFTER_MS = 60_000;
/** The value of the setting for the cluster in which this process runs. */
export const IN_CLUSTER = 'in-cluster';

/** What a call to the API server needs. */
export interface Access {
  /** Without a slash at the end. */
  url: string;
  token: string | undefined;
  tls: { ca?: string; cert?: string; key?: string; serverName?: string };
}

/** Credentials that may change while the service runs. */
export interface Credentials {
  /** The namespace of the credentials, if they have one. */
  namespace: string | undefined;
  /** Returns the current access. Files are read again every minute. */
  access(): Access;
}

/** Reads the credentials of a kubeconfig, or of the pod in which this process runs. Throws StartError. */
export function openCredentials(kubeconfig: string): Credentials {
  const read = kubeconfig === IN_CLUSTER ? readServiceAccount : () => readKubeconfig(kubeconfig);
  let current = attempt(kubeconfig, read);
  let read_at = performance.now();
  return {
    namespace: current.namespace,
    access() {
      if (performance.now() - read_at < READ_AGAIN_AFTER_MS) return current.access;
      read_at = performance.now();
      try {
        current = read();
      } catch {
        // A file is being replaced. The last credentials stay valid for a while.
      }
      return current.access;
    },
  };
}

interface LoadedCredentials {
  namespace: string | undefined;
  access: Access;
}

function attempt(kubeconfig: string, read: () => LoadedCredentials): LoadedCredentials {
  try {
    return read();
  } catch (cause) {
    if (cause instanceof StartError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new StartError(
      `MUSTER_KUBERNETES is "${kubeconfig}", which cannot be used (${reason}): set it to the path of a kubeconfig with a token or a client certificate, or to "${IN_CLUSTER}" if Muster runs in a pod of the cluster.`,
      { cause },
    );
  }
}

function readServiceAccount(): LoadedCredentials {
  const file = (name: string) => readFileSync(`${SERVICE_ACCOUNT}/${name}`, 'utf8').trim();
  return {
    namespace: file('namespace'),
    access: { url: OWN_CLUSTER, token: file('token'), tls: { ca: file('ca.crt') } },
  };
}

const Text = Type.Optional(Type.String());
const named = <Shape extends TSchema>(name: string, shape: Shape) =>
  Type.Array(Type.Intersect([Type.Object({ name: Type.String() }), Type.Object({ [name]: shape })]));

const Context = Type.Object({ cluster: Type.String(), user: Type.String(), namespace: Text });
const Cluster = Type.Object({
  server: Type.String({ pattern: '^https://' }),
  'certificate-authority': Text,
  'certificate-authority-data': Text,
  'tls-server-name': Text,
});
const User = Type.Object({
  token: Text,
  tokenFile: Text,
  'client-certificate': Text,
  'client-certificate-data': Text,
  'client-key': Text,
  'client-key-data': Text,
  exec: Type.Optional(Type.Unknown()),
  'auth-provider': Type.Optional(Type.Unknown()),
});
const Kubeconfig = Type.Object({
  'current-context': Type.String(),
  contexts: named('context', Context),
  clusters: named('cluster', Cluster),
  users: named('user', User),
});

function readKubeconfig(file: string): LoadedCredentials {
  const value: unknown = parse(readFileSync(file, 'utf8'));
  const problem = Value.Errors(Kubeconfig, value).First();
  if (problem || !Value.Check(Kubeconfig, value)) {
    throw new Error(`it is not a kubeconfig (${problem?.path}: ${problem?.message})`);
  }
  const pick = <Found>(kind: 'contexts' | 'clusters' | 'users', key: string, name: string): Found => {
    const found = value[kind].find((one) => one.name === name) as Record<string, Found> | undefined;
    if (found?.[key] === undefined) throw new Error(`it has no entry "${name}" in ${kind}`);
    return found[key];
  };
  const context = pick<Static<typeof Context>>('contexts', 'context', value['current-context']);
  const cluster = pick<Static<typeof Cluster>>('clusters', 'cluster', context.cluster);
  const user = pick<Static<typeof User>>('users', 'user', context.user);
  if (user.exec !== undefined || user['auth-provider'] !== undefined) {
    throw new Error('its user logs in by a program, which Muster does not run');
  }
  const readBeside = (path: string) => readFileSync(resolve(dirname(file), path), 'utf8').trim();
  const contentOf = (path: string | undefined, base64: string | undefined) =>
    base64 !== undefined ? Buffer.from(base64, 'base64').toString() : path === undefined ? undefined : readBeside(path);
  const ca = contentOf(cluster['certificate-authority'], cluster['certificate-authority-data']);
  const cert = contentOf(user['client-certificate'], user['client-certificate-data']);
  const key = contentOf(user['client-key'], user['client-key-data']);
  const serverName = cluster['tls-server-name'];
  const token = user.tokenFile === undefined ? user.token : readBeside(user.tokenFile);
  return {
    namespace: context.namespace,
    access: {
      url: cluster.server.replace(/\/+$/, ''),
      token,
      tls: omitUndefined({ ca, cert, key, serverName }),
    },
  };
}
