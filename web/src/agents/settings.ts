// The settings of a graph that get an input each, by its schema. Pure.
import { isMembers, type Json, type Members } from "@/interrupts/items";

/** Multi-line settings and lists, which have their own inputs. */
export const SPECIAL = ["mcp_config", "a2a", "assistants", "http_tools", "approval"];

/** Never stored, so the form has no input for it. */
const KEYS = ["custom_api_key", "apiKeys"];

export interface Setting {
    name: string;
    label: string;
    hint: string;
    kind: "text" | "number" | "integer" | "boolean" | "json";
    /** The value that applies while the setting is empty. */
    preset: string;
    minimum: number | null;
    maximum: number | null;
}

function kindOf(schema: Members): Setting["kind"] {
    const types = Array.isArray(schema.type) ? schema.type : [schema.type];
    if (types.includes("string")) return "text";
    if (types.includes("integer")) return "integer";
    if (types.includes("number")) return "number";
    return types.includes("boolean") && types.every((type) => type === "boolean" || type === "null")
        ? "boolean"
        : "json";
}

export const textOf = (value: Json | undefined) => (typeof value === "string" ? value : "");
const numberOrNull = (value: Json | undefined) => (typeof value === "number" ? value : null);

/** The settings of a graph that get an input each. */
export function settingsOf(schema: unknown): Setting[] {
    const properties = isMembers(schema) && isMembers(schema.properties) ? schema.properties : {};
    return Object.entries(properties).flatMap(([name, property]) => {
        if (SPECIAL.includes(name) || KEYS.includes(name) || !isMembers(property)) return [];
        const preset =
            property.default === undefined || property.default === null ? "" : property.default;
        return {
            name,
            label: textOf(property.title) || name,
            hint: textOf(property.description),
            kind: kindOf(property),
            preset: typeof preset === "string" ? preset : JSON.stringify(preset),
            minimum: numberOrNull(property.minimum),
            maximum: numberOrNull(property.maximum),
        };
    });
}

export function hasSetting(schema: unknown, name: string): boolean {
    return isMembers(schema) && isMembers(schema.properties) && name in schema.properties;
}
