// Read-only values: members as a table, nested values as JSON.
import styles from "./ArgTable.module.css";
import { isMembers, type Json } from "./question";

function Value({ value }: { value: Json }) {
    if (typeof value === "string") {
        if (value === "") return <span className={styles.soft}>empty</span>;
        return <span className={styles.text}>{value}</span>;
    }
    if (value !== null && typeof value === "object")
        return <pre className={styles.json}>{JSON.stringify(value, null, 2)}</pre>;
    return <code>{String(value)}</code>;
}

export function ArgTable({ value, label }: { value: Json; label: string }) {
    if (!isMembers(value)) return <Value value={value} />;
    const members = Object.entries(value);
    if (members.length === 0) return <p className={styles.soft}>No arguments.</p>;
    return (
        <table className={styles.table} aria-label={label}>
            <tbody>
                {members.map(([name, member]) => (
                    <tr key={name}>
                        <th scope="row">{name}</th>
                        <td>
                            <Value value={member} />
                        </td>
                    </tr>
                ))}
            </tbody>
        </table>
    );
}
