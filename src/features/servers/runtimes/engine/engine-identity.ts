import type { Identity } from '../runtime.ts';
import { nameOf } from './engine-container.ts';

/** Returns the identity of a container by its name, which no other container of the engine has. */
export const writeEngineIdentity = (server_id: string): Identity => ({ engine_container: nameOf(server_id) });
