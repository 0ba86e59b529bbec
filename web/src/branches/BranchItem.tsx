// A branch: its label, time and length. A click shows it. It can be renamed and pruned.
import { useEffect, useRef, useState } from "react";
import { reasonOf } from "@/api/client";
import { nameBranch } from "@/api/heddle";
import type { AgentChat } from "@/chat/agentChat";
import { Menu, type MenuItem } from "@/ui/Menu";
import { toast } from "@/ui/toast";
import { announced } from "./turnFocus";
import styles from "./BranchItem.module.css";
import { agoOf, canPrune, plural, shorten, type Node } from "./model";
import { RenameForm } from "./RenameForm";

interface ItemProps {
    node: Node;
    chat: AgentChat;
    threadId: string;
    canWrite: boolean;
    onChosen(): void;
    onChange(): void;
    onPrune(node: Node): void;
}

const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });
const DAY_MS = 86_400_000;
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

function Facts({ node }: { node: Node }) {
    const { branch, isHere, isAlike } = node;
    const now = Date.now();
    const time = Date.parse(branch.updated_at);
    const full = Number.isNaN(time) ? undefined : DATE.format(time);
    return (
        <span className={styles.facts}>
            {isHere && <span className={styles.here}>Shown</span>}
            {node.of > 1 && (
                <span>
                    {node.number} of {node.of}
                </span>
            )}
            <time dateTime={branch.updated_at} title={full}>
                {isAlike && now - time < DAY_MS
                    ? CLOCK.format(time)
                    : agoOf(branch.updated_at, now)}
            </time>
            <span>{plural(branch.checkpoints, "step")}</span>
        </span>
    );
}

export function BranchItem(props: ItemProps) {
    const { node, chat, threadId, canWrite, onChosen, onChange, onPrune } = props;
    const [isNaming, setNaming] = useState(false);
    const button = useRef<HTMLButtonElement>(null);
    const { branch, label, isNamed, isAlike } = node;
    const name = isAlike ? `${label}, ${node.number} of ${node.of}` : label;

    // Scrolls the shown branch into view.
    const { isHere } = node;
    useEffect(() => {
        if (isHere) button.current?.scrollIntoView({ block: "nearest" });
    }, [isHere]);

    const wasNaming = useRef(false);
    useEffect(() => {
        if (wasNaming.current && !isNaming) button.current?.focus();
        wasNaming.current = isNaming;
    }, [isNaming]);
    const stopNaming = () => setNaming(false);
    const rename = async (name: string | null) => {
        try {
            await nameBranch(threadId, chat.assistantId, branch.branch_id, name);
            onChange();
        } catch (error) {
            toast(`Could not rename the branch: ${reasonOf(error)}`, { kind: "error" });
        }
        stopNaming();
    };
    const items: MenuItem[] = [
        { label: "Rename", icon: "edit", onSelect: () => setNaming(true) },
        ...(canPrune(node)
            ? [
                  {
                      label: "Prune",
                      icon: "trash" as const,
                      isDanger: true,
                      onSelect: () => onPrune(node),
                  },
              ]
            : []),
    ];

    if (isNaming)
        return <RenameForm name={branch.name ?? ""} onSave={rename} onCancel={stopNaming} />;
    return (
        <div className={styles.item}>
            <button
                ref={button}
                type="button"
                data-branch={branch.branch_id}
                aria-current={node.isHere || undefined}
                className={styles.go}
                onClick={() => {
                    announced.set(`Branch: ${name}`);
                    chat.show(node.leaf);
                    onChosen();
                }}
            >
                <span className={`${styles.label} ${isNamed ? styles.named : ""}`} dir="auto">
                    {label}
                </span>
                {isAlike && branch.answer && (
                    <span className={styles.answer} dir="auto">
                        {shorten(branch.answer)}
                    </span>
                )}
                <Facts node={node} />
            </button>
            {canWrite && (
                <Menu label={`Actions for ${name}`} items={items} className={styles.menu} />
            )}
        </div>
    );
}
