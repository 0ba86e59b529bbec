// The settings schema of a graph, fetched once.
import { useEffect, useState } from "react";
import { apiRequest } from "@/api/client";

const known = new Map<string, Promise<unknown>>();

/** By graph id, which is also the id of the graph's default assistant. */
export function loadSchema(graphId: string): Promise<unknown> {
    let schema = known.get(graphId);
    if (!schema) {
        schema = apiRequest<{ config_schema?: unknown }>(
            `/assistants/${encodeURIComponent(graphId)}/schemas`,
        ).then((schemas) => schemas.config_schema ?? null);
        known.set(graphId, schema);
        schema.catch(() => known.delete(graphId));
    }
    return schema;
}

export interface Schema {
    /** undefined: not loaded yet; null: the graph has none. */
    schema: unknown;
    error: unknown;
}

export function useSchema(graphId: string): Schema {
    const [state, setState] = useState<Schema & { graphId: string }>({
        graphId,
        schema: undefined,
        error: null,
    });
    useEffect(() => {
        let isUnmounted = false;
        loadSchema(graphId).then(
            (schema) => !isUnmounted && setState({ graphId, schema, error: null }),
            (error: unknown) => !isUnmounted && setState({ graphId, schema: null, error }),
        );
        return () => {
            isUnmounted = true;
        };
    }, [graphId]);
    return state.graphId === graphId ? state : { schema: undefined, error: null };
}
