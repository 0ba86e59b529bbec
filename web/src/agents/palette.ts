// Which of the page's colours an agent has: by a hash of its id, and the next free one where two
// meet. Pure.

const COLOURS = 8;

export function hashOf(assistantId: string): number {
    let hash = 0;
    for (const char of assistantId) hash = (hash * 31 + char.charCodeAt(0)) >>> 0;
    return hash % COLOURS;
}

/** Older agents choose first, so that a new one changes nobody's colour. */
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
