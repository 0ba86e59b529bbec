// Converts a drawing from the server to an element of the page. Keeps only drawing elements.

const KEPT = new Set([
    "svg",
    "g",
    "path",
    "rect",
    "circle",
    "ellipse",
    "line",
    "polyline",
    "polygon",
    "text",
    "tspan",
    "defs",
    "marker",
    "title",
]);

function isKeptAttribute(attribute: Attr): boolean {
    const name = attribute.name.toLowerCase();
    if (name.startsWith("on") || name === "style" || name.endsWith("href")) return false;
    // Only references within the drawing, such as markers.
    return !/url\(\s*["']?(?!#)/i.test(attribute.value);
}

function clean(element: Element) {
    for (const child of [...element.children]) {
        if (KEPT.has(child.localName)) clean(child);
        else child.remove();
    }
    for (const attribute of [...element.attributes])
        if (!isKeptAttribute(attribute)) element.removeAttributeNode(attribute);
}

/** null: the text is not a drawing. */
export function drawingOf(text: string): SVGSVGElement | null {
    const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
    const root = parsed.documentElement;
    if (parsed.querySelector("parsererror") || !(root instanceof SVGSVGElement)) return null;
    clean(root);
    return document.adoptNode(root);
}

/** Names of the nodes, in the order of the drawing. */
export function nodesOf(drawing: SVGSVGElement): string[] {
    const names = [...drawing.querySelectorAll("[data-node]")].map(
        (node) => node.getAttribute("data-node") ?? "",
    );
    return [...new Set(names)].filter(
        (name) => name !== "" && name !== "__start__" && name !== "__end__",
    );
}
