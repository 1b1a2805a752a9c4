// Files that are imported for their path: `import path from '…' with { type: 'file' }`.
declare module '*.css' {
  const path: string;
  export default path;
}
declare module '*.svg' {
  const path: string;
  export default path;
}
declare module 'swagger-ui-dist/swagger-ui-bundle.js' {
  const path: string;
  export default path;
}
// The published types of this package lack `preferred`, which came with 1.0.
declare module 'negotiator' {
  export default class Negotiator {
    constructor(request: { headers: Record<string, string> });
    /** Returns the available encodings that the client accepts, best first. `preferred` breaks ties. */
    encodings(available: string[], options: { preferred: string[] }): string[];
  }
}
