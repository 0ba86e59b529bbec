import { conformance } from "./lib/conformance.js";
import { databases } from "./lib/stores.js";

conformance(...databases[1]!);
