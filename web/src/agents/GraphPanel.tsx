// The graph of the selected agent, with running nodes highlighted.
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { nameOf, useAssistants } from "@/api/assistants";
import { apiText, reasonOf } from "@/api/client";
import type { AgentChat } from "@/chat/agentChat";
import { useOpenThread } from "@/chat/openThread";
import { Button } from "@/ui/Button";
import { AgentBadge } from "./AgentBadge";
import styles from "./GraphPanel.module.css";
import { drawingOf, nodesOf } from "./svg";

interface Drawing {
    element: SVGSVGElement | null;
    error: string | null;
}

function useDrawing(assistantId: string | null, version: number | undefined): Drawing {
    const [drawing, setDrawing] = useState<Drawing>({ element: null, error: null });
    useEffect(() => {
        if (!assistantId) return;
        const controller = new AbortController();
        const path = `/assistants/${encodeURIComponent(assistantId)}/graph`;
        apiText(path, { query: { format: "svg" }, signal: controller.signal }).then(
            (text) => {
                const element = drawingOf(text);
                setDrawing({
                    element,
                    error: element ? null : "The server returned no drawing of the graph.",
                });
            },
            (error: unknown) => {
                if (!controller.signal.aborted)
                    setDrawing({ element: null, error: reasonOf(error) });
            },
        );
        return () => controller.abort();
    }, [assistantId, version]);
    return drawing;
}

const none: ReadonlySet<string> = new Set();

/** Nodes whose tasks are interrupted. */
function waitingOf(chat: AgentChat | null): ReadonlySet<string> {
    if (!chat || chat.interrupts.length === 0) return none;
    const tasks = chat.state?.tasks ?? [];
    return new Set(
        tasks.filter((task) => (task.interrupts?.length ?? 0) > 0).map((task) => task.name),
    );
}

function mark(drawing: SVGSVGElement, name: string, nodes: ReadonlySet<string>) {
    for (const node of drawing.querySelectorAll("[data-node]"))
        node.toggleAttribute(name, nodes.has(node.getAttribute("data-node") ?? ""));
}

const ZOOMS = [0.5, 0.75, 1, 1.5, 2, 3];
const FIT = ZOOMS.indexOf(1);

function Picture({
    element,
    label,
    active,
    waiting,
}: {
    element: SVGSVGElement;
    label: string;
    active: ReadonlySet<string>;
    waiting: ReadonlySet<string>;
}) {
    const host = useRef<HTMLDivElement>(null);
    const [zoom, setZoom] = useState(FIT);
    useLayoutEffect(() => {
        element.setAttribute("role", "img");
        element.setAttribute("aria-label", label);
        host.current?.replaceChildren(element);
    }, [element, label]);
    useLayoutEffect(() => {
        mark(element, "data-active", active);
        mark(element, "data-waiting", waiting);
    }, [element, active, waiting]);
    useLayoutEffect(() => {
        // At most the drawn size: a small graph does not fill the panel.
        const drawn = element.viewBox.baseVal.width || 300;
        element.removeAttribute("height");
        element.setAttribute("width", `${Math.round(drawn * ZOOMS[zoom]!)}`);
        element.toggleAttribute("data-fit", zoom === FIT);
    }, [element, zoom]);
    return (
        <>
            <div
                ref={host}
                className={styles.paper}
                tabIndex={0}
                role="group"
                aria-label="Drawing"
            />
            <div className={styles.zoom} role="group" aria-label="Size">
                <Button
                    kind="quiet"
                    aria-label="Smaller"
                    disabled={zoom === 0}
                    onClick={() => setZoom(zoom - 1)}
                >
                    −
                </Button>
                <Button kind="quiet" disabled={zoom === FIT} onClick={() => setZoom(FIT)}>
                    Fit
                </Button>
                <Button
                    kind="quiet"
                    aria-label="Larger"
                    disabled={zoom === ZOOMS.length - 1}
                    onClick={() => setZoom(zoom + 1)}
                >
                    +
                </Button>
            </div>
        </>
    );
}

function stateOf(node: string, active: ReadonlySet<string>, waiting: ReadonlySet<string>): string {
    if (active.has(node)) return "running";
    return waiting.has(node) ? "waiting for your reply" : "";
}

export function GraphPanel() {
    const { active: chat, activeId, watchNodes } = useOpenThread();
    const { list } = useAssistants();
    const assistant = list.find((one) => one.assistant_id === activeId);
    const { element, error } = useDrawing(activeId, assistant?.version);
    const active = chat?.activeNodes ?? none;
    const waiting = waitingOf(chat);

    useEffect(() => {
        watchNodes(true);
        return () => watchNodes(false);
    }, [watchNodes]);

    if (!activeId) return <p className={styles.soft}>No agent is selected.</p>;
    return (
        <div className={styles.panel}>
            <p className={styles.head}>
                <AgentBadge assistantId={activeId} />
                {assistant && assistant.graph_id !== nameOf(assistant) && (
                    <span className={styles.soft}>{assistant.graph_id}</span>
                )}
            </p>
            {error && (
                <p className={styles.error} role="alert">
                    {error}
                </p>
            )}
            {!element && !error && <p className={styles.soft}>Drawing…</p>}
            {element && (
                <>
                    <Picture
                        element={element}
                        label={`Graph of ${nameOf(assistant)}`}
                        active={active}
                        waiting={waiting}
                    />
                    <ul className={styles.nodes} aria-label="Nodes">
                        {nodesOf(element).map((node) => {
                            const state = stateOf(node, active, waiting);
                            return (
                                <li
                                    key={node}
                                    data-state={
                                        active.has(node)
                                            ? "active"
                                            : waiting.has(node)
                                              ? "waiting"
                                              : undefined
                                    }
                                >
                                    <code>{node}</code>
                                    {state && <span> {state}</span>}
                                </li>
                            );
                        })}
                    </ul>
                </>
            )}
        </div>
    );
}
