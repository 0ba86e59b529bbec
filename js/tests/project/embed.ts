/** The lengths of a text and of its first word. */
export async function embed(texts: string[]): Promise<number[][]> {
    return texts.map((text) => [text.length, text.split(" ")[0]!.length]);
}
