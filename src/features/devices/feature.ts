import type { Feature } from '../../platform/feature.ts';
import { createDevices, type Devices, type DevicesDependencies } from './devices.ts';
import { deviceRoutes } from './routes.ts';

/** Opens device links, by which a tool gets a token. */
export function openDevices(dependencies: DevicesDependencies): Feature<Devices> {
  const devices = createDevices(dependencies);
  return { api: devices, routes: deviceRoutes(devices) };
}
