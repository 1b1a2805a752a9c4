// Files that are imported for their path: `import path from '…' with { type: 'file' }`.
declare module '*.css' {
  const path: string;
  export default path;
}
declare module 'swagger-ui-dist/swagger-ui-bundle.js' {
  const path: string;
  export default path;
}
