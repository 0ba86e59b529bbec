// One agent's branches as a tree of nested lists of buttons, which screen readers can navigate.
// Arrow keys move up and down, Home and End to the first and the last.
import type { CSSProperties, KeyboardEvent } from "react";
import { colourOf } from "@/agents/colours";
import type { AgentChat } from "@/chat/agentChat";
import { BranchItem } from "./BranchItem";
import styles from "./BranchTree.module.css";
import type { Node } from "./model";

interface TreeProps {
    chat: AgentChat;
    threadId: string;
    nodes: Node[];
    canWrite: boolean;
    /** Called when a branch was selected. */
    onChosen(): void;
    onChange(): void;
    onPrune(node: Node): void;
}

function walk(event: KeyboardEvent<HTMLElement>) {
    const list = [...event.currentTarget.querySelectorAll<HTMLElement>("[data-branch]")];
    const at = list.indexOf(event.target as HTMLElement);
    if (at < 0) return; // in a menu, or in the rename field
    const moves: Record<string, number> = {
        ArrowDown: at + 1,
        ArrowUp: at - 1,
        Home: 0,
        End: list.length - 1,
    };
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    list[Math.min(Math.max(to, 0), list.length - 1)]?.focus();
}

function stemOf(node: Node): string {
    if (node.children.length === 0) return "";
    return `${styles.stem} ${node.children.some((child) => child.isOnPath) ? styles.taken : ""}`;
}

function Level({ nodes, depth, ...rest }: TreeProps & { depth: number }) {
    return (
        <ul className={`${styles.level} ${depth > 0 ? styles.inner : ""}`}>
            {nodes.map((node) => (
                <li
                    key={node.branch.branch_id}
                    className={`${styles.item} ${node.isOnPath ? styles.path : ""}`}
                >
                    <div className={stemOf(node)}>
                        <BranchItem
                            node={node}
                            chat={rest.chat}
                            threadId={rest.threadId}
                            canWrite={rest.canWrite}
                            onChosen={rest.onChosen}
                            onChange={rest.onChange}
                            onPrune={rest.onPrune}
                        />
                    </div>
                    {node.children.length > 0 && (
                        <Level {...rest} nodes={node.children} depth={depth + 1} />
                    )}
                </li>
            ))}
        </ul>
    );
}

export function BranchTree(props: TreeProps) {
    const colour = { "--agent": colourOf(props.chat.assistantId) } as CSSProperties;
    return (
        <div className={styles.tree} style={colour} onKeyDown={walk}>
            {props.nodes.length > 1 && <p className={styles.start}>The beginning</p>}
            <Level {...props} depth={props.nodes.length > 1 ? 1 : 0} />
        </div>
    );
}
