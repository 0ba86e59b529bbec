/**
 * Finds the types of the contexts that the nodes of a graph take as their second parameter: the
 * only source for a graph without a context schema.
 */
import type ts from "typescript";

/** The maximum number of syntax nodes visited per graph. */
const MAX_NODES = 200_000;

export function contextsOf(
    compiler: typeof ts,
    checker: ts.TypeChecker,
    graph: ts.Symbol,
): ts.Type[] {
    return new ContextFinder(compiler, checker).find(graph);
}

class ContextFinder {
    readonly #ts: typeof ts;
    readonly #checker: ts.TypeChecker;
    /** Graphs, their builders and the functions that build them. */
    readonly #makers = new Set<ts.Symbol>();
    readonly #files = new Set<ts.SourceFile>();
    readonly #found = new Set<ts.Type>();
    #left = MAX_NODES;

    constructor(compiler: typeof ts, checker: ts.TypeChecker) {
        this.#ts = compiler;
        this.#checker = checker;
    }

    find(graph: ts.Symbol): ts.Type[] {
        this.#follow(graph);
        // Separate statements: builder.addNode(…);
        for (const file of this.#files) this.#visit(file, (call) => this.#isOfMaker(call));
        return [...this.#found];
    }

    #follow(symbol: ts.Symbol): void {
        if (this.#makers.has(symbol)) return;
        this.#makers.add(symbol);
        for (const declaration of symbol.declarations ?? []) {
            const file = declaration.getSourceFile();
            if (file.isDeclarationFile) continue;
            this.#files.add(file);
            this.#visit(declaration, () => true);
        }
    }

    #visit(node: ts.Node, isOwn: (call: ts.CallExpression) => boolean): void {
        if (--this.#left < 0) return;
        if (this.#ts.isCallExpression(node) && isOwn(node)) {
            this.#call(node);
            const root = this.#rootOf(node);
            if (root !== undefined && this.#makes(root)) this.#follow(root);
        }
        this.#ts.forEachChild(node, (child) => this.#visit(child, isOwn));
    }

    /** The variable or function at the start of a chain of calls. */
    #rootOf(node: ts.Expression): ts.Symbol | undefined {
        let at = node;
        while (this.#ts.isCallExpression(at) || this.#ts.isPropertyAccessExpression(at))
            at = at.expression;
        if (!this.#ts.isIdentifier(at)) return undefined;
        const symbol = this.#checker.getSymbolAtLocation(at);
        return symbol && symbol.flags & this.#ts.SymbolFlags.Alias
            ? this.#checker.getAliasedSymbol(symbol)
            : symbol;
    }

    #isOfMaker(call: ts.CallExpression): boolean {
        const root = this.#rootOf(call);
        return root !== undefined && this.#makers.has(root);
    }

    /** Reports whether a symbol is a builder, a graph, or a function that returns one. */
    #makes(symbol: ts.Symbol): boolean {
        const type = this.#checker.getTypeOfSymbol(symbol);
        const made = type.getCallSignatures()[0]?.getReturnType() ?? type;
        return (
            made.getProperty("addNode") !== undefined ||
            made.getProperty("~InputType") !== undefined
        );
    }

    #call(call: ts.CallExpression): void {
        const { expression, arguments: given } = call;
        const name = this.#ts.isPropertyAccessExpression(expression)
            ? expression.name.text
            : expression.getText();
        if (name !== "addNode" && name !== "entrypoint") return;
        for (const argument of given) {
            const type = this.#checker.getTypeAtLocation(argument);
            this.#action(type);
            if (!this.#ts.isObjectLiteralExpression(argument)) continue;
            for (const member of type.getProperties())
                this.#action(this.#checker.getTypeOfSymbol(member));
        }
    }

    #action(type: ts.Type): void {
        const parameter = type.getCallSignatures()[0]?.parameters[1];
        const config =
            parameter && this.#checker.getNonNullableType(this.#checker.getTypeOfSymbol(parameter));
        const member = config?.getProperty("context") ?? config?.getProperty("configurable");
        if (member !== undefined)
            this.#found.add(
                this.#checker.getNonNullableType(this.#checker.getTypeOfSymbol(member)),
            );
    }
}
