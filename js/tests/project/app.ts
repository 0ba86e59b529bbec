/** An app without a framework. */
export const app = {
    async fetch(request: Request): Promise<Response> {
        const { pathname, searchParams } = new URL(request.url);
        if (pathname === "/echo") {
            const body = await request.text();
            return Response.json({
                method: request.method,
                body,
                q: searchParams.get("q"),
                via: request.headers.get("x-via"),
            });
        }
        if (pathname === "/stream") {
            const parts = ["one ", "two ", "three"];
            const body = new ReadableStream({
                pull(controller) {
                    const part = parts.shift();
                    if (part === undefined) controller.close();
                    else controller.enqueue(new TextEncoder().encode(part));
                },
            });
            return new Response(body, { headers: { "content-type": "text/plain" } });
        }
        if (pathname === "/fail") throw new Error("the app failed");
        return new Response("no", { status: 404 });
    },
};
