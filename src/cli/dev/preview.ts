/** Reads a variable of the environment. */
type Read = (name: string) => string | undefined;

/** A development machine of a host such as Codespaces. People reach each of its ports at an https address of its own. */
export interface Preview {
  name: string;
  addressOf(port: number | string): string;
  /** Returns the command that makes ports public. Missing if this host's command is not known. */
  writePublishCommand: ((ports: number[]) => string) | undefined;
}

/** The ports of game servers on such a machine: few, so that all of them can be made public beforehand. */
const SERVER_PORTS = { min: 25_900, max: 25_919 };
export const PREVIEW_SERVER_PORTS = `${SERVER_PORTS.min}-${SERVER_PORTS.max}`;

/** Returns the preview in which this program runs; undefined on any other machine. */
export function detectPreview(read: Read): Preview | undefined {
  const [codespace, codespaces_domain] = [read('CODESPACE_NAME'), read('GITHUB_CODESPACES_PORT_FORWARDING_DOMAIN')];
  if (codespace !== undefined && codespaces_domain !== undefined) {
    return {
      name: 'GitHub Codespaces',
      addressOf: (port) => `https://${codespace}-${port}.${codespaces_domain}`,
      writePublishCommand: (ports) =>
        `gh codespace ports visibility ${ports.map((port) => `${port}:public`).join(' ')}`,
    };
  }
  const workspace = read('GITPOD_WORKSPACE_URL');
  if (workspace !== undefined && URL.canParse(workspace)) {
    return {
      name: 'Gitpod',
      addressOf: (port) => `https://${port}-${new URL(workspace).host}`,
      writePublishCommand: (ports) => ports.map((port) => `gp ports visibility ${port}:public`).join(' && '),
    };
  }
  const template = read('VSCODE_PROXY_URI');
  if (template?.startsWith('https://') && template.includes('{{port}}')) {
    const addressOf = (port: number | string) => template.replace('{{port}}', String(port)).replace(/\/$/, '');
    return { name: 'this workspace', addressOf, writePublishCommand: undefined };
  }
  return undefined;
}

/** Returns lines about how players reach the service and its game servers in a preview. */
export function describePreview(
  { name, addressOf, writePublishCommand }: Preview,
  { service_port, server_ports }: { service_port: number; server_ports: string },
): string[] {
  const { min, max } = SERVER_PORTS;
  const ports = [service_port, ...Array.from({ length: max - min + 1 }, (_, index) => min + index)];
  const command = server_ports === PREVIEW_SERVER_PORTS ? writePublishCommand?.(ports) : undefined;
  return [
    `preview       ${name} shows each port at an https address of its own:`,
    `  the service     ${addressOf(service_port)}`,
    `  a game server   ${addressOf('PORT')}, where PORT is the port in the answer to a find; WebSockets begin with wss://`,
    'Pages there cannot connect to 127.0.0.1 or without TLS, so let your client use these addresses.',
    command === undefined
      ? `Make the ports ${service_port} and ${server_ports} public first.`
      : `Make the ports public first: ${command}`,
  ];
}
