// The start page of a new conversation.
import { AgentBadge } from "@/agents/AgentBadge";
import { useAssistants } from "@/api/assistants";
import { startRoom } from "@/room/start";
import { Button } from "@/ui/Button";
import { fill } from "./fill";
import { useOpenThread } from "./openThread";
import styles from "./Welcome.module.css";

const examples = [
    { title: "Say hello", text: "Hello, who are you and what can you do?" },
    { title: "Plan something", text: "Plan a weekend by the sea for two, as a table with times." },
    {
        title: "Write code",
        text: "Write a function that finds the longest word of a text, and explain it.",
    },
];

export function Welcome() {
    const { activeId } = useOpenThread();
    const { list } = useAssistants();
    const agent = list.find((one) => one.assistant_id === activeId);
    return (
        <div className={styles.welcome}>
            <h2>How can I help you?</h2>
            {agent && (
                <p className={styles.agent}>
                    You are talking to <AgentBadge assistantId={agent.assistant_id} />
                </p>
            )}
            {agent?.description && <p className={styles.about}>{agent.description}</p>}
            <ul className={styles.examples} aria-label="Examples">
                {examples.map(({ title, text }) => (
                    <li key={title}>
                        <button
                            type="button"
                            className={styles.example}
                            onClick={() => fill.set({ text, images: [] })}
                        >
                            <strong>{title}</strong>
                            <span>{text}</span>
                        </button>
                    </li>
                ))}
            </ul>
            <p className={styles.hint}>
                You can edit or retry every message later. Each version is kept as a branch.
            </p>
            <Button
                kind="quiet"
                icon="people"
                className={styles.room}
                onClick={() => void startRoom(activeId)}
            >
                Start a room for several people and agents
            </Button>
        </div>
    );
}
