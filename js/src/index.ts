export { CanonicalSerializer } from "./canonical.js";
export { ForeignValue } from "./foreign.js";
export { HeddleSaver } from "./saver.js";
export type {
    CheckpointHeader,
    HeddleSaverOptions,
    ListThreadsOptions,
    PruneOptions,
} from "./saver.js";
export { HeddleStore } from "./store.js";
export type { ThreadInfo, ThreadUsage } from "./store.js";
