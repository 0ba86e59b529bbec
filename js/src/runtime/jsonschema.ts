/**
 * JSON Schemas of TypeScript types. Runs in the thread of `typethread.ts`, with the compiler of the
 * project.
 */
import type ts from "typescript";
import type { Fields } from "./frame.js";

/** Types nested deeper than this, and members beyond this count, are left undescribed. */
const MAX_DEPTH = 8;
const MAX_MEMBERS = 4000;
/** A longer union of literals is described by its type alone. */
const MAX_LITERALS = 500;

const MESSAGE = { type: "object" };

export class SchemaWriter {
    readonly #ts: typeof ts;
    readonly #program: ts.Program;
    readonly #checker: ts.TypeChecker;
    /** The enclosing types: a recursive type is not expanded again. */
    readonly #open: ts.Type[] = [];
    #members = 0;

    constructor(compiler: typeof ts, program: ts.Program) {
        this.#ts = compiler;
        this.#program = program;
        this.#checker = program.getTypeChecker();
    }

    /** The schema of one type; undefined when the type allows everything (`any`) or is not data. */
    write(type: ts.Type): Fields | undefined {
        this.#members = 0;
        const schema = this.#schemaOf(type);
        return schema !== undefined && Object.keys(schema).length > 0 ? schema : undefined;
    }

    #schemaOf(type: ts.Type): Fields | undefined {
        const message = this.#messages(type);
        if (message !== undefined) return message;
        if (type.isUnion()) return this.#union(type.types);
        const { TypeFlags } = this.#ts;
        if (type.flags & TypeFlags.TypeParameter) {
            const constraint = this.#checker.getBaseConstraintOfType(type);
            return constraint === undefined || constraint === type
                ? {}
                : this.#schemaOf(constraint);
        }
        if (type.isIntersection()) {
            const primitive = type.types
                .map((each) => this.#primitive(each))
                .find((each) => each !== undefined);
            if (primitive !== undefined) return primitive;
        }
        return this.#primitive(type) ?? this.#object(type);
    }

    #primitive(type: ts.Type): Fields | undefined {
        const { TypeFlags } = this.#ts;
        const { flags } = type;
        if (type.isStringLiteral()) return { type: "string", const: type.value };
        if (type.isNumberLiteral()) return { type: "number", const: type.value };
        if (flags & TypeFlags.BooleanLiteral)
            return { type: "boolean", const: this.#checker.typeToString(type) === "true" };
        if (flags & TypeFlags.StringLike) return { type: "string" };
        if (flags & TypeFlags.NumberLike) return { type: "number" };
        if (flags & TypeFlags.BigIntLike) return { type: "integer" };
        if (flags & TypeFlags.BooleanLike) return { type: "boolean" };
        if (flags & TypeFlags.Null) return { type: "null" };
        if (flags & (TypeFlags.Any | TypeFlags.Unknown)) return {};
        return undefined;
    }

    /** Literals of one kind become an enum; the others become alternatives. */
    #union(types: readonly ts.Type[]): Fields | undefined {
        const literals = new Map<string, Set<unknown>>();
        const others = new Map<string, Fields>();
        for (const type of types.filter((each) => !this.#isOverwrite(each))) {
            const schema = this.#schemaOf(type);
            if (schema === undefined) continue;
            if (Object.keys(schema).length === 0) return {};
            if ("const" in schema) {
                const kind = String(schema.type);
                literals.set(kind, (literals.get(kind) ?? new Set()).add(schema.const));
            } else {
                others.set(JSON.stringify(schema), schema);
            }
        }
        const choices = [
            ...[...literals].map(([kind, values]) => literalsOf(kind, [...values])),
            ...others.values(),
        ];
        if (choices.length < 2) return choices[0];
        const kinds = choices.map((choice) =>
            Object.keys(choice).length === 1 ? choice.type : undefined,
        );
        return kinds.every((kind) => typeof kind === "string")
            ? { type: kinds }
            : { anyOf: choices };
    }

    #object(type: ts.Type): Fields | undefined {
        const { TypeFlags, SymbolFlags } = this.#ts;
        if (!(type.flags & (TypeFlags.Object | TypeFlags.Intersection | TypeFlags.NonPrimitive)))
            return undefined;
        if (type.getCallSignatures().length > 0 || type.getConstructSignatures().length > 0)
            return undefined;
        if (this.#open.includes(type) || this.#open.length >= MAX_DEPTH) return { type: "object" };
        this.#open.push(type);
        try {
            const list = this.#list(type);
            if (list !== undefined) return list;
            const name = type.symbol?.name;
            if (name === "Date" && this.#isBuiltIn(type))
                return { type: "string", format: "date-time" };
            if (
                type.symbol?.flags & (SymbolFlags.Class | SymbolFlags.Interface) &&
                this.#isBuiltIn(type)
            )
                return { type: "object" };
            return this.#properties(type);
        } finally {
            this.#open.pop();
        }
    }

    #list(type: ts.Type): Fields | undefined {
        const checker = this.#checker;
        if (checker.isTupleType(type)) {
            const { minLength, hasRestElement } = (type as ts.TupleTypeReference).target;
            const items = checker
                .getTypeArguments(type as ts.TypeReference)
                .map((each) => this.#schemaOf(each) ?? {});
            return {
                type: "array",
                items,
                minItems: minLength,
                ...(hasRestElement ? {} : { maxItems: items.length }),
            };
        }
        if (!checker.isArrayType(type)) return undefined;
        const [element] = checker.getTypeArguments(type as ts.TypeReference);
        const items = element === undefined ? {} : (this.#schemaOf(element) ?? {});
        return { type: "array", items };
    }

    #properties(type: ts.Type): Fields {
        const properties: Fields = {};
        const required: string[] = [];
        for (const property of this.#checker.getPropertiesOfType(type)) {
            const { name } = property;
            if (name.startsWith("__@") || name.startsWith("#") || ++this.#members > MAX_MEMBERS)
                continue;
            const of = this.typeOf(property);
            const schema = of === undefined ? {} : this.#schemaOf(of);
            if (schema === undefined) continue;
            const description = this.#ts.displayPartsToString(
                property.getDocumentationComment(this.#checker),
            );
            properties[name] = description === "" ? schema : { ...schema, description };
            if (!this.#isOptional(property, of)) required.push(name);
        }
        const index = this.#checker.getIndexInfoOfType(type, this.#ts.IndexKind.String);
        const rest = index === undefined ? undefined : this.#schemaOf(index.type);
        return {
            type: "object",
            ...(Object.keys(properties).length > 0 ? { properties } : {}),
            ...(required.length > 0 ? { required } : {}),
            ...(rest !== undefined && Object.keys(rest).length > 0
                ? { additionalProperties: rest }
                : {}),
        };
    }

    /** The type of a property, declared or from a mapped type. */
    typeOf(property: ts.Symbol): ts.Type | undefined {
        return this.#checker.getTypeOfSymbol(property);
    }

    #isOptional(property: ts.Symbol, type: ts.Type | undefined): boolean {
        if (property.flags & this.#ts.SymbolFlags.Optional) return true;
        return (
            type?.isUnion() === true &&
            type.types.some((each) => each.flags & this.#ts.TypeFlags.Undefined)
        );
    }

    #isBuiltIn({ symbol }: ts.Type): boolean {
        const file = symbol?.declarations?.[0]?.getSourceFile();
        return (
            file !== undefined &&
            (this.#program.isSourceFileDefaultLibrary(file) ||
                /\/node_modules\/@types\/node\//.test(file.fileName))
        );
    }

    /**
     * Messages in any form that LangGraph accepts: the members of their classes are too many to be
     * useful.
     */
    #messages(type: ts.Type): Fields | undefined {
        const types = type.isUnion() ? type.types : [type];
        const lists = types.filter((each) => this.#checker.isArrayType(each));
        const ofMessages = lists.some((list) => {
            const [element] = this.#checker.getTypeArguments(list as ts.TypeReference);
            return (
                element !== undefined &&
                (element.isUnion() ? element.types : [element]).some((each) =>
                    this.#isMessage(each),
                )
            );
        });
        if (ofMessages) return { type: "array", items: MESSAGE };
        return types.some((each) => this.#isMessage(each)) ? MESSAGE : undefined;
    }

    #isMessage(type: ts.Type): boolean {
        return (
            type.getProperty("lc_namespace") !== undefined &&
            type.getProperty("_getType") !== undefined
        );
    }

    /** LangGraph adds it to the updates of every channel with a reducer. */
    #isOverwrite(type: ts.Type): boolean {
        return (
            type.aliasSymbol?.name === "OverwriteValue" ||
            type.getProperty("__overwrite__") !== undefined
        );
    }
}

function literalsOf(kind: string, values: readonly unknown[]): Fields {
    if ((kind === "boolean" && values.length === 2) || values.length > MAX_LITERALS)
        return { type: kind };
    return values.length === 1 ? { type: kind, const: values[0] } : { type: kind, enum: values };
}
