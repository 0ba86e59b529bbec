// Parts of the page that load on first use. Waits for an unreachable server; a server upgraded
// meanwhile may no longer have the part.
import { lazy, Suspense, type ComponentType } from "react";
import { apiText } from "@/api/client";
import { untilReached } from "@/api/connection";
import { Boundary } from "./Boundary";
import styles from "./lazyPart.module.css";

async function whenReached<T>(load: () => Promise<T>): Promise<T> {
    try {
        return await load();
    } catch {
        await apiText("/ok", { as: null }).catch(() => untilReached());
        return load();
    }
}

export function lazyPart<Props extends object>(load: () => Promise<ComponentType<Props>>) {
    const Loaded = lazy(async () => ({ default: await whenReached(load) }));
    return function Part(props: Props) {
        return (
            <Boundary>
                <Suspense
                    fallback={
                        <p className={styles.loading} role="status">
                            Loading…
                        </p>
                    }
                >
                    <Loaded {...props} />
                </Suspense>
            </Boundary>
        );
    };
}
