// Assigns a colour of the page to an agent: by a hash of its id, or the next free colour on a
// collision. Pure.

const COLOURS = 8;

export function hashOf(assistantId: string): number {
    let hash = 0;
    for (const char of assistantId) hash = (hash * 31 + char.charCodeAt(0)) >>> 0;
    return hash % COLOURS;
}

/** Older agents choose first, so that a new agent does not change existing colours. */
export function assignColours(ids: string[]): Map<string, number> {
    const colours = new Map<string, number>();
    const taken = new Set<number>();
    for (const id of ids) {
        let colour = hashOf(id);
        if (taken.size === COLOURS) taken.clear();
        while (taken.has(colour)) colour = (colour + 1) % COLOURS;
        taken.add(colour);
        colours.set(id, colour);
    }
    return colours;
}
