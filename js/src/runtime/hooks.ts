/** Module hooks: this package imports the project's @langchain packages. */
import type { ResolveFnOutput, ResolveHookContext } from "node:module";

const SHARED = /^@langchain\/(core|langgraph|langgraph-checkpoint)(\/|$)/;
const own = new URL("../", import.meta.url).href;
let project: string | undefined;

export function initialize(data: { readonly folder: string }): void {
    project = data.folder;
}

type Next = (specifier: string, context?: Partial<ResolveHookContext>) => Promise<ResolveFnOutput>;

export async function resolve(
    specifier: string,
    context: ResolveHookContext,
    next: Next,
): Promise<ResolveFnOutput> {
    const isOurs = SHARED.test(specifier) && context.parentURL?.startsWith(own) === true;
    if (!isOurs || project === undefined) return next(specifier, context);
    try {
        return await next(specifier, { ...context, parentURL: project });
    } catch {
        // Some installers put the checkpoint package where only LangGraph finds it.
        return viaLangGraph(specifier, context, next);
    }
}

async function viaLangGraph(
    specifier: string,
    context: ResolveHookContext,
    next: Next,
): Promise<ResolveFnOutput> {
    try {
        const { url } = await next("@langchain/langgraph", { ...context, parentURL: project });
        return await next(specifier, { ...context, parentURL: url });
    } catch {
        return next(specifier, context);
    }
}
