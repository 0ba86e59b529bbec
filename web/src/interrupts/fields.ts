// Converts tool call arguments to form fields and back. Pure.
import { isMembers, type Json, type Members } from "./question";

export type FieldKind = "text" | "number" | "boolean" | "choice" | "json";

export interface FormField {
    name: string;
    kind: FieldKind;
    label: string;
    hint: string;
    /** The typed text; "true" and "" for a boolean. */
    text: string;
    choices: string[];
    isRequired: boolean;
    isInteger: boolean;
}

function kindOf(value: Json): FieldKind {
    if (typeof value === "string") return "text";
    if (typeof value === "number") return "number";
    return typeof value === "boolean" ? "boolean" : "json";
}

function textOfValue(kind: FieldKind, value: Json | undefined): string {
    if (value === undefined) return "";
    if (kind === "boolean") return value === true ? "true" : "";
    if (kind === "text" || kind === "choice")
        return typeof value === "string" ? value : JSON.stringify(value);
    return JSON.stringify(value, null, 2);
}

/** Arguments from a model; each keeps its type. */
export function fieldsOf(args: Members): FormField[] {
    return Object.entries(args).map(([name, value]) => {
        const kind = kindOf(value);
        return {
            name,
            kind,
            label: name,
            hint: "",
            text: textOfValue(kind, value),
            choices: [],
            isRequired: true,
            isInteger: false,
        };
    });
}

function choicesOf(schema: Members): string[] {
    if (Array.isArray(schema.enum)) return schema.enum.filter((one) => typeof one === "string");
    const options = Array.isArray(schema.oneOf) ? schema.oneOf : [];
    return options.flatMap((one) =>
        isMembers(one) && typeof one.const === "string" ? one.const : [],
    );
}

/** Fields for a JSON Schema. */
export function fieldsOfSchema(
    properties: Record<string, Members>,
    required: string[],
): FormField[] {
    return Object.entries(properties).map(([name, schema]) => {
        const { type } = schema;
        const choices = choicesOf(schema);
        const kind: FieldKind =
            choices.length > 0
                ? "choice"
                : type === "string"
                  ? "text"
                  : type === "number" || type === "integer"
                    ? "number"
                    : type === "boolean"
                      ? "boolean"
                      : "json";
        return {
            name,
            kind,
            choices,
            label: typeof schema.title === "string" ? schema.title : name,
            hint: typeof schema.description === "string" ? schema.description : "",
            text: textOfValue(kind, schema.default),
            isRequired: required.includes(name),
            isInteger: type === "integer",
        };
    });
}

/** A JSON number with optional white space around it. */
function numberOf(text: string): number | null {
    const trimmed = text.trim();
    if (!/^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(trimmed)) return null;
    const value = Number(trimmed);
    return Number.isFinite(value) ? value : null;
}

export function parseJson(text: string): { value: Json } | { error: string } {
    try {
        return { value: JSON.parse(text) as Json };
    } catch (error) {
        return {
            error: `Invalid JSON: ${error instanceof Error ? error.message : "it cannot be parsed"}`,
        };
    }
}

/** The validation error of a field; null: valid. */
export function errorOf(field: FormField): string | null {
    const isEmpty = field.text.trim() === "";
    if (field.kind === "boolean") return null;
    if (isEmpty && !field.isRequired) return null;
    if (field.kind === "number") {
        const value = numberOf(field.text);
        if (value === null) return "Enter a number.";
        return field.isInteger && !Number.isInteger(value) ? "Enter a whole number." : null;
    }
    if (field.kind === "choice") return isEmpty ? "Choose one." : null;
    if (field.kind === "json") {
        const parsed = parseJson(field.text);
        return "error" in parsed ? parsed.error : null;
    }
    return null;
}

/** The arguments; only for fields without errors. */
export function valuesOf(fields: FormField[]): Members {
    const values: Members = {};
    for (const field of fields) {
        const isEmpty = field.text.trim() === "";
        if (isEmpty && !field.isRequired && field.kind !== "boolean") continue;
        if (field.kind === "boolean") values[field.name] = field.text === "true";
        else if (field.kind === "number") values[field.name] = numberOf(field.text);
        else if (field.kind === "json") values[field.name] = JSON.parse(field.text) as Json;
        else values[field.name] = field.text;
    }
    return values;
}
