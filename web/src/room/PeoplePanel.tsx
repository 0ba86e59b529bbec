// Who takes part in the room: people, who of them is here, and agents.
import { useState } from "react";
import { nameOf, useAssistants } from "@/api/assistants";
import { reasonOf } from "@/api/client";
import { Button, IconButton } from "@/ui/Button";
import { toast } from "@/ui/toast";
import { changeRoom } from "./api";
import { useOpenRoom, useRoomAccess, useSession } from "./context";
import { Face } from "./Face";
import styles from "./Panels.module.css";
import type { Room, RoomAgent } from "./types";

function AddAgent({ room, onAdd }: { room: Room; onAdd(agent: RoomAgent): void }) {
    const { list } = useAssistants();
    const [id, setId] = useState("");
    const others = list.filter(
        (one) => !room.agents.some((agent) => agent.assistant_id === one.assistant_id),
    );
    const chosen = others.find((one) => one.assistant_id === id);
    if (others.length === 0) return null;
    return (
        <form
            className={styles.add}
            onSubmit={(event) => {
                event.preventDefault();
                if (!chosen) return;
                onAdd({ assistant_id: chosen.assistant_id, name: nameOf(chosen) });
                setId("");
            }}
        >
            <select
                aria-label="Agent to add"
                value={id}
                onChange={(event) => setId(event.target.value)}
            >
                <option value="">Add an agent…</option>
                {others.map((one) => (
                    <option key={one.assistant_id} value={one.assistant_id}>
                        {nameOf(one)}
                    </option>
                ))}
            </select>
            <Button type="submit" icon="plus" disabled={!chosen}>
                Add
            </Button>
        </form>
    );
}

export function PeoplePanel({ onSettings }: { onSettings(): void }) {
    const session = useSession();
    const { room, state } = useOpenRoom();
    const { canWrite } = useRoomAccess();
    if (!room) return <p role="status">Loading…</p>;
    const here = new Set(state.present.map((one) => one.id));
    const setAgents = (agents: RoomAgent[]) =>
        changeRoom(session.threadId, { agents }).then(
            session.putRoom,
            (error: unknown) => void toast(`Not changed. ${reasonOf(error)}`, { kind: "error" }),
        );
    return (
        <>
            <section className={styles.section}>
                <h3>People</h3>
                <ul className={styles.list}>
                    {room.people.map((person) => (
                        <li key={person.id} className={styles.item}>
                            <Face sender={person} isHere={here.has(person.id)} />
                            <span className={styles.who}>
                                {person.name || person.id || "Former member"}
                                {person.id === room.me.id && " (you)"}
                                <small>{here.has(person.id) ? "here now" : ""}</small>
                            </span>
                        </li>
                    ))}
                </ul>
            </section>
            <section className={styles.section}>
                <h3>Agents</h3>
                {room.agents.length === 0 && (
                    <p className={styles.soft}>Agents join the room by being asked with @name.</p>
                )}
                <ul className={styles.list}>
                    {room.agents.map((agent) => (
                        <li key={agent.assistant_id} className={styles.item}>
                            <Face
                                sender={{ type: "agent", id: agent.assistant_id, name: agent.name }}
                            />
                            <span className={styles.who}>
                                {agent.name}
                                {agent.assistant_id === room.default_assistant_id && (
                                    <small>answers messages that name no agent</small>
                                )}
                            </span>
                            {canWrite && (
                                <IconButton
                                    icon="trash"
                                    label={`Remove ${agent.name}`}
                                    tip="right"
                                    onClick={() =>
                                        void setAgents(room.agents.filter((one) => one !== agent))
                                    }
                                />
                            )}
                        </li>
                    ))}
                </ul>
                {canWrite && (
                    <AddAgent
                        room={room}
                        onAdd={(agent) => void setAgents([...room.agents, agent])}
                    />
                )}
            </section>
            {canWrite && (
                <section className={styles.section}>
                    <Button icon="settings" onClick={onSettings}>
                        Room settings
                    </Button>
                </section>
            )}
        </>
    );
}
