// Names in the text of a chat message: "@name" anywhere at the beginning of a word. Pure.

export interface Named {
    id: string;
    name: string;
    type: "person" | "agent";
    about?: string;
}

/** The part of a name that is being typed before the caret. */
export interface Typed {
    /** The position of "@". */
    start: number;
    query: string;
}

const LONGEST = 60;

export function typedAt(text: string, caret: number): Typed | null {
    const start = text.lastIndexOf("@", caret - 1);
    if (start < 0 || caret - start > LONGEST) return null;
    if (start > 0 && /[\p{L}\p{N}_@.%+\\-]/u.test(text[start - 1]!)) return null;
    const query = text.slice(start + 1, caret).replace(/^"/, "");
    return /[\n"]/.test(query) || query.startsWith(" ") ? null : { start, query };
}

/** Names that begin with the typed text, then those with a word that does. */
export function namesFor<T extends Named>(query: string, all: readonly T[], most = 8): T[] {
    const wanted = query.toLowerCase();
    const begins = all.filter(({ name }) => name.toLowerCase().startsWith(wanted));
    const others = all.filter(
        (one) => !begins.includes(one) && one.name.toLowerCase().includes(` ${wanted}`),
    );
    const isWhole = begins.some(({ name }) => name.toLowerCase() === wanted.trimEnd());
    if (isWhole && wanted.endsWith(" ")) return [];
    return [...begins, ...others].slice(0, most);
}

/** The text with the chosen name, and the caret behind it. */
export function insertName(
    text: string,
    caret: number,
    { start }: Typed,
    name: string,
): { text: string; caret: number } {
    const before = `${text.slice(0, start)}@${name} `; // the server takes the longest name
    return { text: before + text.slice(caret).replace(/^ /, ""), caret: before.length };
}

/** The agents that answer a text: those it names, else the one it replies to, else the default. */
export function askedBy(
    text: string,
    all: readonly Named[],
    repliedTo: string | null,
    byDefault: string | null,
): string[] {
    const found: Named[] = [];
    const plain = text.replace(/```[\s\S]*?(```|$)|`[^`\n]*`/g, " ");
    for (const { index } of plain.matchAll(/(?<![\p{L}\p{N}_@.%+\\-])@"?/gu)) {
        const rest = plain
            .slice(index + 1)
            .replace(/^"/, "")
            .toLowerCase();
        const named = all
            .filter(({ name }) => {
                const next = rest[name.length] ?? " ";
                return rest.startsWith(name.toLowerCase()) && !/[\p{L}\p{N}_@]/u.test(next);
            })
            .toSorted((a, b) => b.name.length - a.name.length)[0];
        if (named && !found.includes(named)) found.push(named);
    }
    if (found.length > 0) return found.flatMap((one) => (one.type === "agent" ? one.id : []));
    const one = repliedTo ?? byDefault;
    return one ? [one] : [];
}
