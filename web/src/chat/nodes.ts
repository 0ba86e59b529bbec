// The running nodes of the graph, from task events while the graph is visible.
import { useCallback, useMemo, useState } from "react";

interface TaskEvent {
    id: string;
    name: string;
}

interface ActiveNodes {
    active: ReadonlySet<string>;
    onTaskEvent: ((data: unknown) => void) | undefined;
    clear(): void;
}

const none: ReadonlyMap<string, string> = new Map();

export function useActiveNodes(watches: boolean): ActiveNodes {
    const [tasks, setTasks] = useState(none);
    const onTaskEvent = useCallback((data: unknown) => {
        const task = data as TaskEvent;
        const isEnd = "result" in (data as object) || "error" in (data as object);
        setTasks((before) => {
            const next = new Map(before);
            if (isEnd) next.delete(task.id);
            else next.set(task.id, task.name);
            return next;
        });
    }, []);
    const clear = useCallback(() => setTasks(none), []);
    const active = useMemo(() => new Set(tasks.values()), [tasks]);
    return { active, onTaskEvent: watches ? onTaskEvent : undefined, clear };
}
