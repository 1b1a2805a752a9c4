const NOT_LOADED = 'A script of this page could not be loaded. Reload the page, and try again.';

/** Returns why a script of the page could not be loaded: mostly, an upgraded service no longer has those of an open page. */
export function notLoaded(options?: ErrorOptions): Error {
  return new Error(NOT_LOADED, options);
}

/** Loads a script of the page when it is needed. Throws an Error that says what to do. */
export async function loadScript<Script>(load: () => Promise<Script>): Promise<Script> {
  try {
    return await load();
  } catch (cause) {
    throw notLoaded({ cause });
  }
}
