// Every save creates a version. An older version can become current again.
import type { AssistantVersion } from "@langchain/langgraph-sdk";
import { useEffect, useState } from "react";
import { client, reasonOf } from "@/api/client";
import { Button } from "@/ui/Button";
import { toast } from "@/ui/toast";
import styles from "./AgentForm.module.css";

const MOST = 100;

interface VersionsProps {
    assistantId: string;
    version: number;
    isFixed: boolean;
    onChange(): Promise<void>;
}

export function Versions({ assistantId, version, isFixed, onChange }: VersionsProps) {
    const [list, setList] = useState<AssistantVersion[] | null>(null);
    useEffect(() => {
        let isUnmounted = false;
        client.assistants.getVersions(assistantId, { limit: MOST }).then(
            (versions) => !isUnmounted && setList(versions),
            () => !isUnmounted && setList([]),
        );
        return () => {
            isUnmounted = true;
        };
    }, [assistantId, version]);

    const use = async (one: AssistantVersion) => {
        try {
            await client.assistants.setLatest(assistantId, one.version);
            await onChange();
            toast(`Now using version ${one.version}.`);
        } catch (error) {
            toast(reasonOf(error), { kind: "error" });
        }
    };
    if (!list || list.length === 0) return null;
    return (
        <details className={styles.versions}>
            <summary>Versions ({list.length})</summary>
            <ol>
                {list.map((one) => (
                    <li key={one.version}>
                        <span>Version {one.version}</span>
                        <time dateTime={one.created_at}>
                            {new Date(one.created_at).toLocaleString()}
                        </time>
                        {one.version === version ? (
                            <span className={styles.current}>current</span>
                        ) : (
                            <Button
                                kind="quiet"
                                disabled={isFixed}
                                aria-label={`Use version ${one.version}`}
                                onClick={() => void use(one)}
                            >
                                Use
                            </Button>
                        )}
                    </li>
                ))}
            </ol>
        </details>
    );
}
