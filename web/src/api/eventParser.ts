// Splits the text of an event stream into events.

export interface ParsedEvent {
    /** The event's source text, with its final empty line. */
    text: string;
    id: string | null;
    event: string;
    data: string;
}

export interface EventParser {
    push(piece: string): ParsedEvent[];
}

function parse(text: string): ParsedEvent {
    const parsed: ParsedEvent = { text, id: null, event: "", data: "" };
    const data: string[] = [];
    for (const line of text.split(/\r\n|\n|\r/)) {
        const colon = line.indexOf(":");
        if (colon <= 0) continue;
        const value = line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
        const field = line.slice(0, colon);
        if (field === "id") parsed.id = value;
        else if (field === "event") parsed.event = value;
        else if (field === "data") data.push(value);
    }
    parsed.data = data.join("\n");
    return parsed;
}

const LONGEST_END = 4;

export function createEventParser(): EventParser {
    const ends = /\r\n\r\n|\n\n|\r\r(?!\n)/g;
    // Comments, such as heartbeats, and empty lines between events.
    const between = /^(?:(?::[^\r\n]*)?(?:\r\n|\n|\r(?=[^\n])))+/;
    let rest = "";
    let searched = 0; // in `rest`: avoids searching a long event again with each chunk
    return {
        push(piece) {
            const events: ParsedEvent[] = [];
            rest += piece;
            // A lone \r at the end may be half of a \r\n: wait for the next chunk.
            for (;;) {
                const skipped = between.exec(rest)?.[0].length ?? 0;
                rest = rest.slice(skipped);
                searched = Math.max(0, searched - skipped);
                ends.lastIndex = searched;
                const end = ends.exec(rest);
                if (!end || (end[0] === "\r\r" && end.index + 2 === rest.length)) break;
                const length = end.index + end[0].length;
                events.push(parse(rest.slice(0, length)));
                rest = rest.slice(length);
                searched = 0;
            }
            searched = Math.max(0, rest.length - LONGEST_END);
            return events;
        },
    };
}
