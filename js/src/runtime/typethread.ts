/**
 * The thread that reads schemas from a project's TypeScript types. `types.ts` starts it, limits its
 * memory and its time, and takes one message for each graph.
 */
import type ts from "typescript";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { isMainThread, parentPort, workerData } from "node:worker_threads";
import type { Fields } from "./frame.js";
import { SchemaWriter } from "./jsonschema.js";
import { contextsOf } from "./typesources.js";

export interface TypedGraph {
    readonly id: string;
    readonly file: string;
    readonly name: string;
}

export interface TypeWork {
    /** The main file of the compiler. */
    readonly typescript: string;
    readonly graphs: readonly TypedGraph[];
}

export interface TypeAnswer {
    readonly id: string;
    readonly schemas?: Fields;
    readonly error?: string;
}

/** The compiler options for a project without a tsconfig.json. */
function defaultsOf({
    ScriptTarget,
    ModuleKind,
    ModuleResolutionKind,
}: typeof ts): ts.CompilerOptions {
    return {
        target: ScriptTarget.ES2022,
        module: ModuleKind.ESNext,
        moduleResolution: ModuleResolutionKind.Bundler,
        esModuleInterop: true,
        types: [],
    };
}

function optionsOf(compiler: typeof ts, file: string): ts.CompilerOptions {
    const path = compiler.findConfigFile(dirname(file), compiler.sys.fileExists);
    const read =
        path === undefined
            ? undefined
            : compiler.readConfigFile(path, compiler.sys.readFile).config;
    // Without its files: only those that the graphs import are read.
    const own =
        read &&
        compiler.parseJsonConfigFileContent(
            { ...read, files: [], include: [] },
            compiler.sys,
            dirname(path!),
        ).options;
    return {
        ...(own ?? defaultsOf(compiler)),
        strict: true,
        noEmit: true,
        skipLibCheck: true,
        allowJs: true,
        composite: false,
        incremental: false,
        declaration: false,
    };
}

class Reader {
    readonly #ts: typeof ts;
    readonly #program: ts.Program;
    readonly #checker: ts.TypeChecker;
    readonly #writer: SchemaWriter;

    constructor(compiler: typeof ts, files: readonly string[]) {
        this.#ts = compiler;
        this.#program = compiler.createProgram(files, optionsOf(compiler, files[0]!));
        this.#checker = this.#program.getTypeChecker();
        this.#writer = new SchemaWriter(compiler, this.#program);
    }

    read({ file, name }: TypedGraph): Fields {
        const source = this.#program.getSourceFile(file);
        const module = source && this.#checker.getSymbolAtLocation(source);
        const found =
            module && this.#checker.getExportsOfModule(module).find((each) => each.name === name);
        if (found === undefined) throw new Error(`${file} has no export "${name}"`);
        const symbol =
            found.flags & this.#ts.SymbolFlags.Alias
                ? this.#checker.getAliasedSymbol(found)
                : found;
        const graph = this.#graphOf(this.#checker.getTypeOfSymbol(symbol));
        const schemas: Fields = { config: this.#config(graph, symbol) };
        for (const [member, key] of [
            ["input", "~InputType"],
            ["output", "~OutputType"],
            ["state", "~RunOutput"],
        ] as const) {
            const type = this.#member(graph, key);
            const schema = type && this.#writer.write(this.#checker.getAwaitedType(type) ?? type);
            // A state may lack some of its values.
            if (schema !== undefined)
                schemas[member] = member === "input" ? schema : { ...schema, required: undefined };
        }
        return schemas;
    }

    /** The compiled graph of a graph, a builder, an agent or a function that builds one. */
    #graphOf(type: ts.Type): ts.Type {
        const [made] = type.getCallSignatures();
        if (made !== undefined) {
            const result = made.getReturnType();
            return this.#graphOf(this.#checker.getAwaitedType(result) ?? result);
        }
        const inner = this.#member(type, "graph");
        if (inner?.getProperty("~InputType") !== undefined) return inner;
        if (type.getProperty("~InputType") !== undefined) return type;
        const [compile] = this.#member(type, "compile")?.getCallSignatures() ?? [];
        return compile?.getReturnType() ?? type;
    }

    #member(type: ts.Type, name: string): ts.Type | undefined {
        const property = type.getProperty(name);
        return property && this.#writer.typeOf(property);
    }

    /** The context that the graph declares, or else the one that its nodes take. */
    #config(graph: ts.Type, symbol: ts.Symbol): Fields | undefined {
        const [invoke] = this.#member(graph, "invoke")?.getCallSignatures() ?? [];
        const options = invoke?.parameters[1] && this.#writer.typeOf(invoke.parameters[1]);
        const context =
            options && this.#member(this.#checker.getNonNullableType(options), "context");
        const declared = context && this.#writer.write(this.#checker.getNonNullableType(context));
        // Every member of an annotation is optional.
        if (declared?.properties !== undefined) return { ...declared, required: undefined };
        return this.#merged(contextsOf(this.#ts, this.#checker, symbol));
    }

    #merged(types: readonly ts.Type[]): Fields | undefined {
        const properties: Fields = {};
        const required = new Set<string>();
        for (const type of types) {
            const schema = this.#writer.write(type);
            Object.assign(properties, schema?.properties);
            for (const name of (schema?.required ?? []) as string[]) required.add(name);
        }
        if (Object.keys(properties).length === 0) return undefined;
        return {
            type: "object",
            properties,
            ...(required.size > 0 ? { required: [...required] } : {}),
        };
    }
}

function work({ typescript, graphs }: TypeWork, answer: (given: TypeAnswer) => void): void {
    const compiler = createRequire(import.meta.url)(typescript) as typeof ts;
    if (typeof compiler.createProgram !== "function") {
        throw new Error(
            `typescript ${String(compiler.version)} has no compiler API; versions 5 and 6 have it`,
        );
    }
    const reader = new Reader(compiler, [...new Set(graphs.map(({ file }) => file))]);
    for (const graph of graphs) {
        try {
            answer({ id: graph.id, schemas: reader.read(graph) });
        } catch (error) {
            answer({ id: graph.id, error: error instanceof Error ? error.message : String(error) });
        }
    }
}

// JSON omits undefined members.
if (!isMainThread && parentPort !== null)
    work(workerData as TypeWork, (given) => parentPort!.postMessage(JSON.stringify(given)));
