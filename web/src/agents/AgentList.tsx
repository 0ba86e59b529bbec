// All assistants; system assistants are marked.
import type { Assistant } from "@langchain/langgraph-sdk";
import { useState, type CSSProperties } from "react";
import { nameOf } from "@/api/assistants";
import { formatRoute } from "@/app/route";
import { Menu } from "@/ui/Menu";
import { Search } from "@/ui/Search";
import { AgentBadge } from "./AgentBadge";
import styles from "./AgentsView.module.css";
import { colourOf } from "./colours";
import { NEW, useDrafts } from "./drafts";

const SEARCHED_FROM = 8;

interface ListProps {
    list: Assistant[];
    chosen: string | null;
    onTry(assistant: Assistant): void;
    onDuplicate(assistant: Assistant): void;
    onDelete(assistant: Assistant): void;
}

export function AgentList({ list, chosen, onTry, onDuplicate, onDelete }: ListProps) {
    const drafts = useDrafts();
    const [text, setText] = useState("");
    const wanted = text.trim().toLowerCase();
    const shown = list.filter((one) =>
        `${nameOf(one)} ${one.description ?? ""} ${one.graph_id}`.toLowerCase().includes(wanted),
    );
    return (
        <>
            {list.length >= SEARCHED_FROM && (
                <Search label="Search agents" text={text} onText={setText} />
            )}
            {drafts.has(NEW) && chosen !== NEW && (
                <p className={styles.unsaved}>
                    <a href={formatRoute({ view: "agents", assistantId: NEW })}>
                        New agent (not saved)
                    </a>
                </p>
            )}
            {shown.length === 0 && <p className={styles.soft}>No matching agents.</p>}
            <ul className={styles.list} aria-label="Agents">
                {shown.map((one) => {
                    const isSystem = one.metadata?.created_by === "system";
                    return (
                        <li
                            key={one.assistant_id}
                            className={styles.item}
                            data-chosen={one.assistant_id === chosen || undefined}
                            style={{ "--agent": colourOf(one.assistant_id) } as CSSProperties}
                        >
                            <a
                                className={styles.link}
                                href={formatRoute({
                                    view: "agents",
                                    assistantId: one.assistant_id,
                                })}
                                aria-current={one.assistant_id === chosen ? "page" : undefined}
                            >
                                <AgentBadge assistantId={one.assistant_id} />
                                {one.description && (
                                    <span className={styles.about}>{one.description}</span>
                                )}
                                <span className={styles.marks}>
                                    {one.graph_id !== one.name && <span>{one.graph_id}</span>}
                                    {isSystem && <span>system</span>}
                                    <span>version {one.version}</span>
                                    {drafts.has(one.assistant_id) && (
                                        <span className={styles.dirty}>not saved</span>
                                    )}
                                </span>
                            </a>
                            <Menu
                                label={`Actions for ${nameOf(one)}`}
                                className={styles.menu}
                                items={[
                                    { label: "Try", icon: "send", onSelect: () => onTry(one) },
                                    {
                                        label: "Duplicate",
                                        icon: "copy",
                                        onSelect: () => onDuplicate(one),
                                    },
                                    ...(isSystem
                                        ? []
                                        : [
                                              {
                                                  label: "Delete",
                                                  icon: "trash" as const,
                                                  isDanger: true,
                                                  onSelect: () => onDelete(one),
                                              },
                                          ]),
                                ]}
                            />
                        </li>
                    );
                })}
            </ul>
        </>
    );
}
