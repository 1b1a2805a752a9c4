import { Type } from '@sinclair/typebox';
import { Uuid } from '../../platform/http/shapes.ts';
import type { DatacenterRow } from './tables.ts';

const Datacenter = Type.Object({ id: Uuid, slug: Type.String(), name: Type.String() }, { title: 'Datacenter' });

export const DatacentersAnswer = Type.Object({ datacenters: Type.Array(Datacenter) });

export function toDatacenter({ datacenter_id, slug, name }: DatacenterRow) {
  return { id: datacenter_id, slug, name };
}
