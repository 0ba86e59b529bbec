// A branch: what was said in it, when, how long it is; a click goes there. It can be named and
// pruned.
import { useEffect, useRef, useState } from "react";
import { reasonOf } from "@/api/client";
import { nameBranch } from "@/api/heddle";
import type { Line } from "@/talk/line";
import { Menu, type MenuItem } from "@/ui/Menu";
import { toast } from "@/ui/toast";
import { spoken } from "./attention";
import styles from "./BranchItem.module.css";
import { agoOf, canPrune, plural, type Node } from "./model";
import { RenameForm } from "./RenameForm";

interface ItemProps {
    node: Node;
    line: Line;
    threadId: string;
    canWrite: boolean;
    onChange(): void;
    onPrune(node: Node): void;
}

const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });

function Facts({ node }: { node: Node }) {
    const { branch, isHere } = node;
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
                {agoOf(branch.updated_at, Date.now())}
            </time>
            <span>{plural(branch.checkpoints, "step")}</span>
        </span>
    );
}

export function BranchItem({ node, line, threadId, canWrite, onChange, onPrune }: ItemProps) {
    const [isNaming, setNaming] = useState(false);
    const button = useRef<HTMLButtonElement>(null);
    const { branch, label, isNamed } = node;

    // Among many branches the one that is shown is found at once.
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
            await nameBranch(threadId, line.assistantId, branch.branch_id, name);
            onChange();
        } catch (error) {
            toast(`The branch can't be renamed: ${reasonOf(error)}`, { kind: "error" });
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
                    spoken.set(`Branch: ${label}`);
                    line.show(node.leaf);
                }}
            >
                <span className={`${styles.label} ${isNamed ? styles.named : ""}`} dir="auto">
                    {label}
                </span>
                <Facts node={node} />
            </button>
            {canWrite && (
                <Menu label={`Actions for ${label}`} items={items} className={styles.menu} />
            )}
        </div>
    );
}
