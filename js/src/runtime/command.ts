/** Commands in the format of API clients. */
import type { Fields } from "./frame.js";
import type { LangGraph } from "./graph.js";

export function commandOf({ resume, update, goto }: Fields, { Command, Send }: LangGraph): object {
    const fields: Fields = {};
    if (resume !== undefined && resume !== null) fields.resume = resume;
    if (update !== undefined && update !== null) fields.update = update;
    if (goto !== undefined && goto !== null) {
        fields.goto = [goto].flat().map((target) => {
            if (typeof target === "string") return target;
            const { node, input, arg, args } = target as Fields;
            return new Send(String(node), input ?? arg ?? args ?? null);
        });
    }
    return new Command(fields);
}
