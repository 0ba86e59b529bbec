/**
 * For the code of graphs that run in a worker: `import { assistant } from "heddle/runtime"`.
 */
export { assistant, DelegateError } from "./delegate.js";
export type { Assistant } from "./delegate.js";
